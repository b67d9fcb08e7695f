import torch
from torch import nn
from torch.optim import Optimizer


class Lion(Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:  # flaw: per-tensor-optimizer
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["m"] = torch.zeros_like(p)
                m = state["m"]
                p.mul_(1 - group["lr"] * group["weight_decay"])  # flaw: per-tensor-optimizer
                p.add_(torch.sign(m * b1 + p.grad * (1 - b1)), alpha=-group["lr"])  # flaw: per-tensor-optimizer
                m.mul_(b2).add_(p.grad, alpha=1 - b2)  # flaw: per-tensor-optimizer


class ViT(nn.Module):
    def __init__(self, dim=384, depth=16, heads=6, patches=64, classes=100):
        super().__init__()
        self.patch = nn.Linear(192, dim)
        self.pos = nn.Parameter(torch.randn(1, patches, dim) * 0.02)
        layer = lambda: nn.TransformerEncoderLayer(dim, heads, dim * 4, 0.0, "gelu", batch_first=True, norm_first=True)
        self.layers = nn.ModuleList(layer() for _ in range(depth))
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.patch(x) + self.pos
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = ViT().to(device)
    opt = Lion(model.parameters(), lr=1e-4, weight_decay=0.1)
    batch = 256
    x = torch.randn(4, batch, 64, 192, device=device)
    y = torch.randint(0, 100, (4, batch), device=device)
    for i in range(500):
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x[i % 4]), y[i % 4])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if i % 100 == 0:
            print(i, loss.item())


if __name__ == "__main__":
    main()
