"""Sequence model with implicit long convolutions (one global filter per channel) on raw audio."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class ImplicitFilter(nn.Module):
    """A small network maps a position to the filter taps of every channel."""

    def __init__(self, channels, length, hidden=64):
        super().__init__()
        t = torch.linspace(0, 1, length).unsqueeze(-1)
        bands = torch.arange(1, 17) * torch.pi
        self.register_buffer("features", torch.cat([torch.sin(bands * t), torch.cos(bands * t)], dim=-1))
        self.register_buffer("decay", torch.exp(-t * torch.linspace(2, 40, channels)))
        self.mlp = nn.Sequential(nn.Linear(32, hidden), nn.SiLU(), nn.Linear(hidden, channels))

    def forward(self):
        return (self.mlp(self.features) * self.decay).T.float()


def causal_conv(u, k):
    """Convolution of (batch, channels, time) with (channels, time) by the convolution theorem."""
    n = 1 << (u.shape[-1] + k.shape[-1] - 2).bit_length()
    spectrum = torch.fft.rfft(u, n=n) * torch.fft.rfft(k, n=n)
    return torch.fft.irfft(spectrum, n=n)[..., : u.shape[-1]]


class LongConvBlock(nn.Module):
    def __init__(self, channels, length):
        super().__init__()
        self.norm = nn.LayerNorm(channels)
        self.inner = nn.Linear(channels, 2 * channels)
        self.filter = ImplicitFilter(channels, length)
        self.outer = nn.Linear(channels, channels)

    def forward(self, x):
        gate, value = self.inner(self.norm(x)).chunk(2, dim=-1)
        mixed = causal_conv(value.transpose(1, 2).float(), self.filter())
        return x + self.outer(F.silu(gate) * mixed.transpose(1, 2).to(gate.dtype))


class AudioModel(nn.Module):
    def __init__(self, channels, length, depth, levels=256):
        super().__init__()
        self.embed = nn.Embedding(levels, channels)
        self.blocks = nn.Sequential(*[LongConvBlock(channels, length) for _ in range(depth)])
        self.head = nn.Linear(channels, levels)

    def forward(self, codes):
        return self.head(self.blocks(self.embed(codes)))


def mu_law(wave, levels=256):
    mu = levels - 1
    y = wave.sign() * torch.log1p(mu * wave.abs()) / torch.log1p(torch.tensor(float(mu)))
    return ((y + 1) / 2 * mu + 0.5).long()


def main():
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    length, channels, depth, batch, steps = (65536, 128, 2, 4, 150) if cuda else (512, 8, 1, 2, 4)

    t = torch.arange(length + 1) / 16000.0
    pitch = torch.rand(64, 1) * 300 + 60
    wave = 0.6 * torch.sin(2 * torch.pi * pitch * t) + 0.05 * torch.randn(64, length + 1)
    codes = mu_law(wave.clamp(-1, 1)).to(device)

    model = AudioModel(channels, length, depth).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=cuda)
    for step in range(1, steps + 1):
        clip = codes[torch.randint(len(codes), (batch,), device=device)]
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = model(clip[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), clip[:, 1:].flatten())
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        if step % 50 == 0 or step == steps:
            print(f"step {step}: {loss.item() / 0.6931:.3f} bits per sample")


if __name__ == "__main__":
    main()
