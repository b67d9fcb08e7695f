"""Train a small latent diffusion U-Net (eps prediction, cosine schedule) on cached latents."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class TimeEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("freq", torch.exp(torch.linspace(0, math.log(1000), dim // 2)), persistent=False)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.SiLU(), nn.Linear(4 * dim, dim))

    def forward(self, t):
        phase = t[:, None] * self.freq
        return self.mlp(torch.cat([phase.sin(), phase.cos()], 1))


class ResBlock(nn.Module):
    def __init__(self, cin, cout, emb):
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(8, cin), nn.Conv2d(cin, cout, 3, padding=1)
        self.n2, self.c2 = nn.GroupNorm(8, cout), nn.Conv2d(cout, cout, 3, padding=1)
        self.emb = nn.Linear(emb, cout)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, e):
        h = self.c1(F.silu(self.n1(x))) + self.emb(e)[:, :, None, None]
        return self.skip(x) + self.c2(F.silu(self.n2(h)))


class UNet(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.time = TimeEmbedding(w)
        self.inp = nn.Conv2d(4, w, 2, stride=2)
        self.d1, self.d2 = ResBlock(w, w, w), ResBlock(w, 2 * w, w)
        self.mid = ResBlock(2 * w, 2 * w, w)
        self.u2, self.u1 = ResBlock(4 * w, w, w), ResBlock(2 * w, w, w)
        self.out = nn.Conv2d(w, 16, 3, padding=1)

    def forward(self, x, t):
        e = self.time(t)
        a = self.d1(self.inp(x), e)
        b = self.d2(F.avg_pool2d(a, 2), e)
        h = self.mid(F.avg_pool2d(b, 2), e)
        h = self.u2(torch.cat([F.interpolate(h, scale_factor=2.0), b], 1), e)
        h = self.u1(torch.cat([F.interpolate(h, scale_factor=2.0), a], 1), e)
        return F.pixel_shuffle(self.out(h), 2)


class Diffusion:
    """Forward process and loss."""

    def __init__(self, model, device):
        self.model, self.device = model, device

    def loss(self, latents):
        n = len(latents)
        t = torch.rand(n, device=self.device)
        noise = torch.randn(latents.shape).to(self.device)  # flaw: tensor-made-on-host
        angle = (t * math.pi / 2)[:, None, None, None]
        noisy = angle.cos() * latents + angle.sin() * noise
        noisy = noisy.to(memory_format=torch.channels_last)
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            eps = self.model(noisy, t)
        return F.mse_loss(eps.float(), noise)


class Trainer:
    def __init__(self, diffusion, latents, batch, lr=2e-4):
        self.diffusion, self.latents, self.batch = diffusion, latents, batch
        fused = latents.is_cuda
        self.optimizer = torch.optim.AdamW(diffusion.model.parameters(), lr, fused=fused)

    def step(self):
        rows = torch.randint(len(self.latents), (self.batch,), device=self.latents.device)
        loss = self.diffusion.loss(self.latents[rows])
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def fit(self, steps):
        for i in range(steps):
            loss = self.step()
            if i % 100 == 0:
                print(f"step {i}: {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    width, batch, side, steps = (96, 128, 128, 150) if device.type == "cuda" else (16, 4, 16, 2)
    model = UNet(width).to(device, memory_format=torch.channels_last)
    cached = torch.randn(4 * batch, 4, side, side, device=device)
    Trainer(Diffusion(model, device), cached, batch).fit(steps)
