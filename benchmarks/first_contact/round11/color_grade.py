"""Grade rendered shots: exposure, lift/gamma/gain, saturation, vignette, filmic curve, 8-bit output."""
import math
import sys
from dataclasses import dataclass, replace

import torch

GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if GPU else "cpu")
HEIGHT, WIDTH, CHUNK, CHUNKS = (2160, 3840, 4, 120) if GPU else (36, 64, 2, 3)


@dataclass(frozen=True)
class Look:
    exposure: float = 0.3
    lift: float = 0.02
    gamma: float = 1.1
    gain: float = 1.05
    saturation: float = 1.2
    vignette: float = 0.35
    shoulder: float = 2.51


LOOKS = {
    "day": Look(),
    "night": replace(Look(), exposure=1.1, saturation=0.8, vignette=0.5),
}


def vignette_field(strength):
    y = torch.linspace(-1, 1, HEIGHT, device=DEVICE)[:, None]
    x = torch.linspace(-1, 1, WIDTH, device=DEVICE)
    return 1 - strength * (x.square() + y.square()) / 2


def grade(frames, field, look):  # flaw: unfused-elementwise
    """frames: n x 3 x height x width, linear light, float32."""
    x = frames * math.exp2(look.exposure) * field
    x = look.gain * x + look.lift * (1 - x)
    x = x.clamp(min=1e-6) ** (1 / look.gamma)
    luma = 0.2126 * x[:, 0:1] + 0.7152 * x[:, 1:2] + 0.0722 * x[:, 2:3]
    x = luma + look.saturation * (x - luma)
    x = x.clamp(min=0)
    x = (x * (look.shoulder * x + 0.03)) / (x * (2.43 * x + 0.59) + 0.14)
    x = torch.where(x <= 0.0031308, 12.92 * x, 1.055 * x.clamp(min=1e-6) ** (1 / 2.4) - 0.055)
    return (x.clamp(0, 1) * 255 + 0.5).to(torch.uint8)


class Renderer:
    """Stands for the renderer: hands out chunks of frames that are already on the device."""

    def __init__(self, seed):
        gen = torch.Generator(DEVICE).manual_seed(seed)
        self.pool = [
            torch.rand(CHUNK, 3, HEIGHT, WIDTH, generator=gen, device=DEVICE).square_().mul_(4)
            for _ in range(3)
        ]

    def shot(self, chunks):
        for i in range(chunks):
            yield self.pool[i % len(self.pool)]


class Encoder:
    """Takes finished chunks; keeps the mean code value of each for the report."""

    def __init__(self):
        self.means = []

    def take(self, codes):
        self.means.append(codes[:, 1, ::16, ::16].float().mean())

    def report(self):
        return torch.stack(self.means).mean().item()


@torch.inference_mode()
def main():
    renderer = Renderer(seed=5)
    name = sys.argv[1] if len(sys.argv) > 1 else "night"
    look = LOOKS[name]
    field = vignette_field(look.vignette)
    encoder = Encoder()
    for frames in renderer.shot(CHUNKS):
        encoder.take(grade(frames, field, look))
    print(f"{name}: mean code {encoder.report():.2f}")


if __name__ == "__main__":
    main()
