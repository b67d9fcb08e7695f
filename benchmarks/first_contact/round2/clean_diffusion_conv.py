import torch
import torch.nn as nn
import torch.nn.functional as F

torch.backends.cudnn.benchmark = True
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Res(nn.Module):
    def __init__(self, c, emb):
        super().__init__()
        self.n1, self.n2 = nn.GroupNorm(16, c), nn.GroupNorm(16, c)
        self.c1, self.c2 = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)
        self.e = nn.Linear(emb, c)

    def forward(self, x, t):
        h = self.c1(F.silu(self.n1(x)))
        h = h + self.e(t)[:, :, None, None]
        return x + self.c2(F.silu(self.n2(h)))


class Denoiser(nn.Module):
    def __init__(self, c=192, n=4, emb=256, steps=1000):
        super().__init__()
        self.time = nn.Embedding(steps, emb)
        self.inp, self.out = nn.Conv2d(4, c, 3, padding=1), nn.Conv2d(c, 4, 3, padding=1)
        self.res = nn.ModuleList(Res(c, emb) for _ in range(n))

    def forward(self, x, t):
        e, h = self.time(t), self.inp(x)
        for r in self.res:
            h = r(h, e)
        return self.out(h)


@torch.no_grad()
def noised(x, bar):
    t = torch.randint(0, len(bar), (len(x),), device=x.device)
    eps = torch.randn_like(x)
    a = bar[t].view(-1, 1, 1, 1)
    return torch.addcmul(a.sqrt() * x, (1 - a).sqrt(), eps), t, eps


def main():
    net = Denoiser().to(DEVICE, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), lr=2e-4, fused=True)
    bar = torch.cumprod(1 - torch.linspace(1e-4, 2e-2, 1000, device=DEVICE), 0)
    batch = 128
    latents = torch.randn(batch * 4, 4, 32, 32, device=DEVICE).to(memory_format=torch.channels_last)
    for step in range(400):
        k = (step % 4) * batch
        x, t, eps = noised(latents[k:k + batch], bar)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            guess = net(x, t)
        loss = F.mse_loss(guess.float(), eps)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
