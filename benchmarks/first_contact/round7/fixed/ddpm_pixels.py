import math

import torch
import torch.nn as nn
import torch.nn.functional as F

# Denoising diffusion on 64x64 images kept on the device.

device = "cuda" if torch.cuda.is_available() else "cpu"
scale = 1 if device == "cuda" else 16
batch_size, resolution, channels, num_steps = 256 // scale, 64 // min(scale, 4), 96 // min(scale, 12), 150 // scale
timesteps = 1000

torch.manual_seed(0)
torch.backends.cudnn.benchmark = True


class TimeEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("freqs", torch.exp(-math.log(1e4) * torch.arange(dim // 2) / (dim // 2)))
        self.net = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))

    def forward(self, t):
        angles = t[:, None].float() * self.freqs
        return self.net(torch.cat([angles.sin(), angles.cos()], -1))


class ResBlock(nn.Module):
    def __init__(self, cin, cout, tdim):
        super().__init__()
        self.norm1, self.norm2 = nn.BatchNorm2d(cin), nn.BatchNorm2d(cout)
        self.conv1 = nn.Conv2d(cin, cout, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(cout, cout, 3, padding=1)
        self.time = nn.Linear(tdim, cout)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.time(t)[:, :, None, None]
        h = self.conv2(F.silu(self.norm2(h)))
        return h + self.skip(x)


class Denoiser(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.time = TimeEmbedding(4 * w)
        self.stem = nn.Conv2d(3, w, 3, 2, 1)
        self.a, self.b = ResBlock(w, w, 4 * w), ResBlock(w, 2 * w, 4 * w)
        self.c, self.d = ResBlock(2 * w, 2 * w, 4 * w), ResBlock(3 * w, w, 4 * w)
        self.head = nn.ConvTranspose2d(w, 3, 2, 2)

    def forward(self, x, t):
        t = self.time(t)
        a = self.a(self.stem(x), t)
        b = self.c(self.b(F.avg_pool2d(a, 2), t), t)
        return self.head(self.d(torch.cat([F.interpolate(b, scale_factor=2), a], 1), t))


betas = torch.linspace(1e-4, 0.02, timesteps)
alpha_bar = torch.cumprod(1 - betas, 0).to(device)
images = torch.rand(2048 // scale, 3, resolution, resolution, device=device).mul_(2).sub_(1)
images = images.contiguous(memory_format=torch.channels_last)

model = Denoiser(channels).to(device, memory_format=torch.channels_last)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
loss_ema = torch.ones((), device=device)

for step in range(num_steps):
    index = torch.randint(0, len(images), (batch_size,), device=device)
    x0 = images[index]
    t = torch.randint(0, timesteps, (batch_size,), device=device)
    noise = torch.randn(x0.shape, device=device)
    ab = alpha_bar[t].view(-1, 1, 1, 1)
    xt = torch.addcmul(ab.sqrt() * x0, (1 - ab).sqrt(), noise)
    with torch.autocast(device, dtype=torch.bfloat16):
        prediction = model(xt, t)
    loss = F.mse_loss(prediction.float(), noise)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    loss_ema.lerp_(loss.detach(), 0.02)
    if step % 50 == 0:
        print(f"{step:5d} {loss_ema.item():.4f}")
