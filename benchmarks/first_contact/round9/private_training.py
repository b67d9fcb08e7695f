"""Differentially private SGD: per-sample gradients by torch.func, clipped, summed and noised."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")


class Classifier(nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.fc1 = nn.Linear(features, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.fc3 = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.fc3(F.silu(self.fc2(F.silu(self.fc1(x)))))


def per_sample_gradients(model, params, x, y):
    def loss(p, xi, yi):
        logits = functional_call(model, p, (xi.unsqueeze(0),))
        return F.cross_entropy(logits, yi.unsqueeze(0))

    return vmap(grad(loss), in_dims=(None, 0, 0))(params, x, y)


def clipped_sum(grads, max_norm):
    """Sum over the samples after scaling every sample's gradient to at most max_norm."""
    flat = [g.flatten(1) for g in grads.values()]
    norms = torch.stack([torch.linalg.vector_norm(g, dim=1) for g in flat], dim=1).norm(dim=1)
    weight = (max_norm / (norms + 1e-6)).clamp_max(1.0)
    return {name: (weight @ f).view(g.shape[1:]) for (name, g), f in zip(grads.items(), flat)}


class PrivateOptimizer:
    def __init__(self, model, lr, max_norm, noise_multiplier, batch):
        self.inner = torch.optim.AdamW(model.parameters(), lr=lr, fused=CUDA)
        self.model = model
        self.max_norm = max_norm
        self.noise_std = noise_multiplier * max_norm
        self.batch = batch

    def step(self, grads):
        summed = clipped_sum(grads, self.max_norm)
        for name, p in self.model.named_parameters():
            p.grad = torch.randn_like(p).mul_(self.noise_std).add_(summed[name]).div_(self.batch)
        self.inner.step()


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    features, hidden, classes, batch, steps = (1024, 2048, 256, 512, 300) if CUDA else (16, 32, 4, 8, 5)
    rows = 50 * batch
    centres = torch.randn(classes, features, device=DEVICE)
    labels = torch.randint(classes, (rows,), device=DEVICE)
    inputs = centres[labels] + 3.0 * torch.randn(rows, features, device=DEVICE)

    model = Classifier(features, hidden, classes).to(DEVICE)
    opt = PrivateOptimizer(model, lr=2e-3, max_norm=1.0, noise_multiplier=0.6, batch=batch)
    for step in range(1, steps + 1):
        pick = torch.randint(rows, (batch,), device=DEVICE)
        params = {k: p.detach() for k, p in model.named_parameters()}
        opt.step(per_sample_gradients(model, params, inputs[pick], labels[pick]))
        if step % 50 == 0 or step == steps:
            with torch.inference_mode():
                hits = (model(inputs[:batch]).argmax(1) == labels[:batch]).float().mean()
            print(f"step {step}: accuracy {hits.item():.3f}")


if __name__ == "__main__":
    main()
