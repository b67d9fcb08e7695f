"""Proxy-based metric learning (normalised softmax) over product feature sequences."""
import torch
import torch.nn as nn
import torch.nn.functional as F

REGISTRY = {}


def register(name):
    def add(cls):
        REGISTRY[name] = cls
        return cls

    return add


@register("set_encoder")
class SetEncoder(nn.Module):
    """Attention over the views of one product, mean pooled."""

    def __init__(self, features, width, depth, embed):
        super().__init__()
        self.heads = max(1, width // 64)
        self.inp = nn.Linear(features, width)
        self.layers = nn.ModuleList(
            nn.ModuleList([nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width),
                           nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)])
            for _ in range(depth)
        )
        self.out = nn.Linear(width, embed)

    def forward(self, x):
        x = self.inp(x)
        b, n, w = x.shape
        for norm1, qkv, proj, norm2, up, down in self.layers:
            q, k, v = qkv(norm1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
            x = x + proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, w))
            x = x + down(F.gelu(up(norm2(x))))
        return self.out(x.mean(1))


@register("norm_softmax")
class NormalisedSoftmax(nn.Module):
    def __init__(self, classes, embed, scale=24.0, smoothing=0.1):
        super().__init__()
        self.proxies = nn.Parameter(torch.randn(classes, embed))
        self.scale, self.smoothing = scale, smoothing

    def forward(self, embedding, label):
        logits = F.linear(F.normalize(embedding, dim=-1) * self.scale, F.normalize(self.proxies, dim=-1))
        return F.cross_entropy(logits, label, label_smoothing=self.smoothing)


class Products:
    def __init__(self, classes, views, features, device):
        self.centre = torch.randn(classes, 1, features, device=device)
        self.views = views

    def batch(self, size):
        label = torch.randint(len(self.centre), (size,), device=self.centre.device)
        shape = (size, self.views, self.centre.shape[-1])
        return torch.randn(shape, device=label.device).add_(self.centre[label]), label


@torch.inference_mode()
def recall_at_1(model, products, size, device):
    with torch.autocast(device.type, dtype=torch.bfloat16):
        a, la = products.batch(size)
        b, lb = products.batch(size)
        a, b = F.normalize(model(a), dim=-1), F.normalize(model(b), dim=-1)
        nearest = (a @ b.T).argmax(1)
    return (lb[nearest] == la).float().mean().item()


def main():
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    classes, views, features, width, depth, embed, size, steps = (
        (8192, 16, 256, 512, 6, 512, 2048, 200) if cuda else (16, 4, 16, 32, 1, 16, 8, 4)
    )
    products = Products(classes, views, features, device)
    model = REGISTRY["set_encoder"](features, width, depth, embed).to(device)
    loss_fn = REGISTRY["norm_softmax"](classes, embed).to(device)
    groups = [
        {"params": model.parameters(), "lr": 3e-4},
        {"params": loss_fn.parameters(), "lr": 3e-2, "weight_decay": 0.0},
    ]
    opt = torch.optim.AdamW(groups, fused=cuda)
    for step in range(1, steps + 1):
        x, label = products.batch(size)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = loss_fn(model(x), label)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 50 == 0 or step == steps:
            print(f"step {step} loss {loss.item():.4f}")
    print(f"recall@1 {recall_at_1(model, products, size, device):.4f}")


if __name__ == "__main__":
    main()
