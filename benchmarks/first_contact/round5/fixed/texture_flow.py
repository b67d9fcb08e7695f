"""Flow matching on texture patches with a slowly moving average of the weights."""
import os
import torch
import torch.nn as nn
import torch.nn.functional as F


def modulate(x, shift, scale):
    return torch.addcmul(x + shift[:, None], x, scale[:, None])


class FlowBlock(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.f1, self.f2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.mod = nn.Linear(d, 2 * d)

    def forward(self, x, c):
        b, n, d = x.shape
        shift, scale = self.mod(c).chunk(2, -1)
        q, k, v = self.qkv(modulate(self.n1(x), shift, scale)).view(b, n, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
        return x + self.f2(F.gelu(self.f1(self.n2(x))))


class FlowNet(nn.Module):
    def __init__(self, d, h, depth, patch):
        super().__init__()
        self.inp, self.out = nn.Linear(patch, d), nn.Linear(d, patch)
        self.t = nn.Sequential(nn.Linear(64, d), nn.SiLU(), nn.Linear(d, d))
        self.blocks = nn.ModuleList([FlowBlock(d, h) for _ in range(depth)])

    def forward(self, x, t):
        ang = t[:, None] * torch.arange(1, 33, device=t.device)
        c = self.t(torch.cat([ang.sin(), ang.cos()], -1))
        x = self.inp(x)
        for blk in self.blocks:
            x = blk(x, c)
        return self.out(x)


class Shadow:
    """Averaged copy of a network's weights."""

    def __init__(self, net, decay):
        self.net, self.decay = net, decay
        self.live = list(net.parameters())
        self.values = [v.detach().clone() for v in self.live]

    @torch.no_grad()
    def update(self):
        torch._foreach_lerp_(self.values, self.live, 1 - self.decay)

    def distance(self):
        return sum((s - v.detach()).square().sum() for s, v in zip(self.values, self.live))


def main():
    small = os.environ.get("SMALL") == "1"
    d, h, depth, n, patch, batch, steps = (32, 2, 2, 9, 24, 2, 30) if small else (512, 8, 24, 128, 192, 64, 70)
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    net = FlowNet(d, h, depth, patch).to(dev)
    shadow = Shadow(net, 0.999)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
    data = torch.randn(4, batch, n, patch, device=dev)
    for step in range(steps):
        x1 = data[step % 4]
        x0, t = torch.randn_like(x1), torch.rand(batch, device=dev)
        xt = torch.lerp(x0, x1, t[:, None, None])
        with torch.autocast(dev, dtype=torch.bfloat16):
            v = net(xt, t)
        loss = F.mse_loss(v.float(), x1 - x0)
        opt.zero_grad()
        loss.backward()
        opt.step()
        shadow.update()
        if step % 35 == 0:
            print(step, loss.item())
    print("drift", shadow.distance().item())


if __name__ == "__main__":
    main()
