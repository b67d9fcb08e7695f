"""Self-attention GAN on 64 x 64 faces, hinge loss, two time-scale updates."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import spectral_norm


class SelfAttention(nn.Module):
    def __init__(self, channels, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Conv2d(channels, 3 * channels, 1)
        self.out = nn.Conv2d(channels, channels, 1)
        self.gamma = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        b, c, h, w = x.shape
        qkv = self.qkv(x).permute(0, 2, 3, 1).reshape(b, h * w, 3, self.heads, c // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        scores = torch.matmul(q, k.transpose(-2, -1)) * (c // self.heads) ** -0.5  # flaw: hand-written-attention
        attention = scores.softmax(dim=-1)  # flaw: hand-written-attention
        y = torch.matmul(attention, v)  # flaw: hand-written-attention
        y = y.transpose(1, 2).reshape(b, h, w, c).permute(0, 3, 1, 2)
        return x + self.gamma * self.out(y)


class Generator(nn.Module):
    def __init__(self, w, latent, base):
        super().__init__()
        self.w, self.base = w, base
        self.fc = nn.Linear(latent, 4 * w * base * base)
        self.up1 = nn.Sequential(nn.ConvTranspose2d(4 * w, 2 * w, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * w))
        self.up2 = nn.Sequential(nn.ConvTranspose2d(2 * w, w, 4, 2, 1, bias=False), nn.BatchNorm2d(w))
        self.attention = SelfAttention(w, 2)
        self.rgb = nn.ConvTranspose2d(w, 3, 4, 2, 1)

    def forward(self, z):
        x = self.fc(z).view(-1, 4 * self.w, self.base, self.base)
        x = x.contiguous(memory_format=torch.channels_last)
        x = F.relu(self.up1(x), inplace=True)
        x = self.attention(F.relu(self.up2(x), inplace=True))
        return self.rgb(x).tanh()


class Discriminator(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.c1 = spectral_norm(nn.Conv2d(3, w, 4, 2, 1))
        self.attention = SelfAttention(w, 2)
        self.c2 = spectral_norm(nn.Conv2d(w, 2 * w, 4, 2, 1))
        self.c3 = spectral_norm(nn.Conv2d(2 * w, 4 * w, 4, 2, 1))
        self.fc = nn.Linear(4 * w, 1)

    def forward(self, x):
        x = self.attention(F.leaky_relu(self.c1(x), 0.1))
        x = F.leaky_relu(self.c3(F.leaky_relu(self.c2(x), 0.1)), 0.1)
        return self.fc(x.mean((2, 3))).squeeze(1)


def main():
    cuda = torch.cuda.is_available()
    device = "cuda" if cuda else "cpu"
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    w, base, batch, steps, latent = (128, 16, 12, 120, 128) if cuda else (8, 4, 2, 2, 16)
    g = Generator(w, latent, base).to(device, memory_format=torch.channels_last)
    d = Discriminator(w).to(device, memory_format=torch.channels_last)
    opt_g = torch.optim.Adam(g.parameters(), 1e-4, betas=(0.0, 0.9), fused=cuda)
    opt_d = torch.optim.Adam(d.parameters(), 4e-4, betas=(0.0, 0.9), fused=cuda)
    faces = torch.rand(4, batch, 3, 8 * base, 8 * base, device=device) * 2 - 1
    for step in range(steps):
        real = faces[step % 4].contiguous(memory_format=torch.channels_last)
        z = torch.randn(batch, latent, device=device)
        with torch.autocast(device, dtype=torch.bfloat16):
            with torch.no_grad():
                fake = g(z)
            loss_d = F.relu(1 - d(real)).mean() + F.relu(1 + d(fake)).mean()
        opt_d.zero_grad(set_to_none=True)
        loss_d.backward()
        opt_d.step()

        d.requires_grad_(False)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss_g = -d(g(z)).mean()
        opt_g.zero_grad(set_to_none=True)
        loss_g.backward()
        opt_g.step()
        d.requires_grad_(True)
        if step % 40 == 0:
            print(f"{step:4d} d {loss_d.item():.3f} g {loss_g.item():.3f}")


if __name__ == "__main__":
    main()
