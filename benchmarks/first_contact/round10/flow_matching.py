"""Conditional flow matching between a Gaussian and feature vectors of images."""
import torch
from torch import nn
from torch.nn import functional as F

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
ON_GPU = DEVICE.type == "cuda"
FEATURES = 2048 if ON_GPU else 32
BLOCKS = 6 if ON_GPU else 2
BATCH = 8192 if ON_GPU else 16
STEPS = 200 if ON_GPU else 3


class TimeBlock(nn.Module):
    """Residual block whose linear layers see the time next to the features."""

    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim + 1, dim)  # flaw: misaligned-matmul
        self.down = nn.Linear(dim + 1, dim)  # flaw: misaligned-matmul

    def forward(self, x, t):
        h = self.norm(x).to(t.dtype)
        h = F.silu(self.up(torch.cat([h, t], -1)))  # flaw: misaligned-matmul
        return x + self.down(torch.cat([h, t], -1))  # flaw: misaligned-matmul


class Velocity(nn.Module):
    def __init__(self, dim, blocks):
        super().__init__()
        self.blocks = nn.ModuleList(TimeBlock(dim) for _ in range(blocks))
        self.out = nn.Linear(dim, dim)

    def forward(self, x, t):
        for block in self.blocks:
            x = block(x, t)
        return self.out(x)


def cfm_loss(model, x1):
    x0 = torch.randn_like(x1)
    t = torch.rand(len(x1), 1, device=x1.device, dtype=x1.dtype)
    xt = torch.lerp(x0, x1, t)
    with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
        v = model(xt, t)
    return F.mse_loss(v, x1 - x0)


@torch.no_grad()
def sample(model, n, steps=4):
    x = torch.randn(n, FEATURES, device=DEVICE, dtype=torch.bfloat16)
    for k in range(steps):
        t = torch.full((n, 1), k / steps, device=DEVICE, dtype=torch.bfloat16)
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            x = x + model(x, t) / steps
    return x


def run():
    torch.manual_seed(0)
    model = Velocity(FEATURES, BLOCKS).to(DEVICE)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=ON_GPU)
    centres = torch.randn(64, FEATURES, device=DEVICE, dtype=torch.bfloat16) * 3
    total = torch.zeros((), device=DEVICE)
    for step in range(1, STEPS + 1):
        which = torch.randint(64, (BATCH,), device=DEVICE)
        loss = cfm_loss(model, centres[which] + torch.randn_like(centres[which]))
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        total += loss.detach()
    print(f"mean loss {total.item() / STEPS:.4f}, sample std {sample(model, BATCH).float().std().item():.3f}")


if __name__ == "__main__":
    run()
