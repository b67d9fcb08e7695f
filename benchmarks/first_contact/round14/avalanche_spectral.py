"""Denoise geophone traces of snow avalanches; a chart keeps how far the spectra are off."""
import os
from collections import defaultdict

import torch
import torch.nn.functional as F
from torch import nn

tiny = os.environ.get("TINY") == "1"
dev = "cuda" if torch.cuda.is_available() else "cpu"
SAMPLES, TRACES, WIDTH, LAYERS, STEPS = (512, 2, 32, 1, 5) if tiny else (32768, 96, 512, 6, 250)
PATCH = 16 if tiny else 64


class Chart:
    """Named curves; nothing is read before the end, so that no step waits."""

    def __init__(self):
        self.curves = defaultdict(list)

    def __call__(self, **points):
        for name, point in points.items():
            self.curves[name].append(point)  # flaw: graph-kept-alive

    def report(self):
        for name, points in self.curves.items():
            line = torch.stack(points)
            print(f"{name}: {line[0].item():.4f} -> {line[-1].item():.4f}")


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.cut = nn.Linear(PATCH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, 0.0, "gelu", batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.glue = nn.Linear(WIDTH, PATCH)

    def forward(self, trace):
        patches = trace.unflatten(1, (-1, PATCH))
        return trace - self.glue(self.body(self.cut(patches))).flatten(1)


def spectral_distance(guess, clean):
    a, b = (torch.fft.rfft(x.float()).abs().add(1e-3).log() for x in (guess, clean))
    return (a - b).square().mean().sqrt()


def slides():
    g = torch.Generator(device=dev).manual_seed(71)
    t = torch.arange(SAMPLES, device=dev) / SAMPLES
    while True:
        onset = torch.rand(TRACES, 1, generator=g, device=dev) * 0.6
        envelope = torch.relu(t - onset) * torch.exp(-12 * torch.relu(t - onset)) * 30
        clean = envelope * torch.sin(t * 900 * (1 + onset))
        yield clean, clean + 0.5 * torch.randn(clean.shape, generator=g, device=dev)


def main():
    torch.manual_seed(70)
    model, chart = Denoiser().to(dev), Chart()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    for step, (clean, noisy) in enumerate(slides()):
        if step == STEPS:
            break
        with torch.autocast(dev, dtype=torch.bfloat16):
            guess = model(noisy)
        loss = F.mse_loss(guess.float(), clean)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        chart(error=loss, spectrum=spectral_distance(guess, clean))
    chart.report()


if __name__ == "__main__":
    main()
