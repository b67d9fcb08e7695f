import torch
import torch.nn as nn
import torch.nn.functional as F


class Hooks(dict):
    def on(self, event):
        def register(fn):
            self.setdefault(event, []).append(fn)
            return fn
        return register

    def fire(self, event, **info):
        for fn in self.get(event, ()):
            fn(**info)


hooks = Hooks()


@hooks.on("epoch")
def report(epoch, accuracy):
    print(f"epoch {epoch} accuracy {accuracy.item():.3f}")


class PatchNet(nn.Module):
    def __init__(self, d=1024, n=6, classes=64):
        super().__init__()
        self.emb = nn.Linear(768, d)
        self.layers = nn.ModuleList(nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d)) for _ in range(n))
        self.head = nn.Linear(d, classes)

    def forward(self, x):
        x = self.emb(x)
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x.mean(1))


def train(model, opt, x, y, steps, device):
    model.train()
    for i in range(steps):
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x[i % len(x)]), y[i % len(y)])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()


@torch.inference_mode()
def evaluate(model, x, y, device):
    model.eval()
    right = torch.zeros((), device=device)
    for a, b in zip(x, y):
        with torch.autocast(device, dtype=torch.bfloat16):
            right += (model(a).argmax(-1) == b).sum()
    return right / y.numel()


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    batch = 128
    model = PatchNet().to(device)
    opt = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, fused=True)
    x = torch.randn(6, batch, 128, 768, device=device, dtype=torch.bfloat16)
    y = torch.randint(0, 64, (6, batch), device=device)
    for epoch in range(8):
        train(model, opt, x[:4], y[:4], 50, device)
        hooks.fire("epoch", epoch=epoch, accuracy=evaluate(model, x[4:], y[4:], device))
