"""A compiled network that guards against overflow."""
import torch
from torch import nn


class Guarded(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        h = nn.functional.gelu(self.up(self.norm(x)))
        if h.detach().abs().amax() > 1e4:  # flaw: graph-break|sync-in-step
            h = h.clamp(-1e4, 1e4)
        return x + self.down(h)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = nn.Sequential(*[Guarded(512) for _ in range(4)], nn.Linear(512, 32)).to(device)
    fast = torch.compile(net)
    opt = torch.optim.AdamW(net.parameters(), 1e-4, fused=True)
    x, y = torch.randn(16384, 512, device=device), torch.randint(32, (16384,), device=device)
    for i in range(400):
        with torch.autocast(device, torch.bfloat16):
            loss = nn.functional.cross_entropy(fast(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(loss.item())


if __name__ == "__main__":
    main()
