import os
import torch
from torch import nn
import torch.nn.functional as F

S_ = bool(int(os.environ.get("SMALL", "0")))


class NoiseSchedule:
    def __init__(self, T, device):
        beta = torch.linspace(1e-4, 0.02, T, device=device)
        abar = torch.cumprod(1 - beta, 0)
        self.T, self.a, self.s = T, abar.sqrt(), (1 - abar).sqrt()

    def draw(self, like):
        eps = torch.empty(like.shape).normal_()  # flaw: tensor-made-on-host
        eps = eps.to(like.device, dtype=like.dtype)  # flaw: tensor-made-on-host
        t = torch.randint(self.T, (like.shape[0],), device=like.device)
        return t, eps

    def noisy(self, x0, t, eps):
        view = (-1, 1, 1, 1)
        return self.a[t].view(view).to(x0.dtype) * x0 + self.s[t].view(view).to(x0.dtype) * eps


class Res(nn.Module):
    def __init__(self, c, emb):
        super().__init__()
        self.g1, self.g2 = nn.GroupNorm(8, c), nn.GroupNorm(8, c)
        self.c1, self.c2 = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)
        self.e = nn.Linear(emb, c)

    def forward(self, x, e):
        h = self.c1(F.silu(self.g1(x))) + self.e(e)[:, :, None, None]
        return x + self.c2(F.silu(self.g2(h)))


class Denoiser(nn.Module):
    def __init__(self, c, T):
        super().__init__()
        self.emb = nn.Sequential(nn.Embedding(T, c), nn.Linear(c, c), nn.SiLU())
        self.inp = nn.Conv2d(3, c, 4, 4)
        self.mid = nn.ModuleList([Res(c, c) for _ in range(6)])
        self.up = nn.Conv2d(c, 48, 3, padding=1)

    def forward(self, x, t):
        e = self.emb(t)
        h = self.inp(x)
        for m in self.mid:
            h = m(h, e)
        return F.pixel_shuffle(self.up(h), 4)


def fit(steps, batch, side, ch):
    device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
    torch.backends.cudnn.benchmark = True
    sched = NoiseSchedule(1000, device)
    net = Denoiser(ch, 1000).to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
    tiles = torch.rand(batch, 3, side, side, device=device).mul_(2).sub_(1).to(torch.bfloat16)
    tiles = tiles.contiguous(memory_format=torch.channels_last)
    avg = torch.zeros((), device=device)
    for step in range(steps):
        t, eps = sched.draw(tiles)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            out = net(sched.noisy(tiles, t, eps), t)
            loss = F.mse_loss(out, eps)
        opt.zero_grad()
        loss.backward()
        opt.step()
        avg.mul_(0.95).add_(loss.detach(), alpha=0.05)
        if step % 30 == 0:
            print("step", step, "avg", float(avg))


if __name__ == "__main__":
    fit(*((30, 2, 32, 16) if S_ else (70, 64, 224, 192)))
