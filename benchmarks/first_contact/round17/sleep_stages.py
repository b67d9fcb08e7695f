import os

import torch
import torch.nn.functional as F
from torch import nn


class BandPower(nn.Module):
    """Log power of an electrode's signal in soft frequency bands."""

    def __init__(self, samples, bands):
        super().__init__()
        bins = samples // 2 + 1
        self.register_buffer("taper", torch.hann_window(samples))
        self.shape = nn.Parameter(torch.randn(bins, bands) * 0.1)

    def forward(self, signal):
        signal = signal - signal.mean(-1, keepdim=True)
        signal = signal / (signal.std(-1, keepdim=True) + 1e-5)
        power = torch.fft.rfft(signal * self.taper).abs().square()
        return torch.log1p(power @ F.softplus(self.shape))


class Stager(nn.Module):
    def __init__(self, leads, samples, bands, width, depth, stages=5):
        super().__init__()
        self.power = BandPower(samples, bands)
        self.lift = nn.Linear(bands, width)
        self.place = nn.Parameter(torch.zeros(leads, width))
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, 0.0, "gelu", batch_first=True, norm_first=True)
        self.mix = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.out = nn.Linear(width, stages)

    def forward(self, night):
        per_lead = torch.stack([self.power(lead) for lead in night.unbind(1)], 1)  # flaw: python-loop-over-tensor
        return self.out(self.mix(self.lift(per_lead) + self.place).mean(1))


def nights(device, rows, leads, samples, count):
    gen = torch.Generator(device).manual_seed(8)
    for _ in range(count):
        yield (
            torch.randn(rows, leads, samples, device=device, generator=gen),
            torch.randint(5, (rows,), device=device, generator=gen),
        )


def main():
    tiny = bool(os.environ.get("TINY"))
    rows, leads, samples, count = (2, 6, 64, 4) if tiny else (64, 96, 1500, 450)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    net = Stager(leads, samples, 16 if tiny else 64, 32 if tiny else 256, 1 if tiny else 4).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=2e-4, fused=True)
    losses = []
    for signal, stage in nights(device, rows, leads, samples, count):
        loss = F.cross_entropy(net(signal), stage)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        losses.append(loss.detach())
    print(f"{torch.stack(losses).mean().item():.3f}")


if __name__ == "__main__":
    main()
