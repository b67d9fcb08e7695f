"""Reconstruction of undersampled MRI: an unrolled network, each stage a small CNN and a k-space step."""
import argparse
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

torch.backends.cudnn.benchmark = True


class Denoiser(nn.Module):
    def __init__(self, channels, depth):
        super().__init__()
        sizes = [8] + [channels] * depth + [8]
        self.convs = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in zip(sizes, sizes[1:]))

    def forward(self, image):
        h = image
        for conv in self.convs[:-1]:
            h = F.relu(conv(h), inplace=True)
        return image - self.convs[-1](h).float()


class KSpaceStep(nn.Module):
    """Puts the measured lines back, weighted: image channels are 4 complex contrasts."""

    def __init__(self):
        super().__init__()
        self.trust = nn.Parameter(torch.tensor(0.8))

    def forward(self, image, measured, lines):
        pairs = image.permute(0, 2, 3, 1).unflatten(3, (4, 2)).contiguous()
        spectrum = torch.fft.fft2(torch.view_as_complex(pairs), dim=(1, 2), norm="ortho")
        spectrum = torch.lerp(spectrum, measured, (self.trust * lines).to(spectrum.dtype))
        pairs = torch.view_as_real(torch.fft.ifft2(spectrum, dim=(1, 2), norm="ortho"))
        return pairs.flatten(3).permute(0, 3, 1, 2)


class Unrolled(nn.Module):
    def __init__(self, stages, channels, depth):
        super().__init__()
        self.denoisers = nn.ModuleList(Denoiser(channels, depth) for _ in range(stages))
        self.steps = nn.ModuleList(KSpaceStep() for _ in range(stages))

    def forward(self, image, measured, lines):
        for denoise, step in zip(self.denoisers, self.steps):
            image = denoise(image)
            image = step(image, measured, lines)
        return image


def scans(batch, side, device, pool=3, seed=1):
    """Image from zero-filled k-space, measured k-space, sampled lines, true image."""
    gen = torch.Generator(device).manual_seed(seed)
    lines = (torch.rand(side, 1, generator=gen, device=device) < 0.35).float()
    ready = []
    for _ in range(pool):
        rough = torch.randn(batch, 8, side // 8, side // 8, generator=gen, device=device)
        truth = F.interpolate(rough, size=(side, side), mode="bilinear")
        truth = truth.contiguous(memory_format=torch.channels_last)
        as_complex = torch.view_as_complex(truth.permute(0, 2, 3, 1).unflatten(3, (4, 2)).contiguous())
        measured = torch.fft.fft2(as_complex, dim=(1, 2), norm="ortho") * lines[..., None]
        start = torch.view_as_real(torch.fft.ifft2(measured, dim=(1, 2), norm="ortho"))
        ready.append((start.flatten(3).permute(0, 3, 1, 2), measured, lines[..., None], truth))
    while True:
        yield from ready


def update(model, optimizer, scan):
    start, measured, lines, truth = scan
    with torch.autocast(start.device.type, torch.bfloat16):
        image = model(start, measured, lines)
    loss = F.l1_loss(image, truth)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def main():
    gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser()
    integer = partial(parser.add_argument, type=int)
    integer("--batch", default=8 if gpu else 1)
    integer("--side", default=320 if gpu else 32)
    integer("--stages", default=6 if gpu else 2)
    integer("--channels", default=64 if gpu else 8)
    integer("--depth", default=4 if gpu else 2)
    integer("--iterations", default=130 if gpu else 4)
    args = parser.parse_args()
    device = torch.device("cuda" if gpu else "cpu")
    torch.manual_seed(0)
    model = Unrolled(args.stages, args.channels, args.depth).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4, fused=True)
    source = scans(args.batch, args.side, device)
    losses = torch.stack([update(model, optimizer, next(source)) for _ in range(args.iterations)]).cpu()
    print(f"L1: {losses[0].item():.4f} -> {losses[-1].item():.4f}")


if __name__ == "__main__":
    main()
