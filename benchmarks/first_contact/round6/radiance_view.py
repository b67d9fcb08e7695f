import os

import torch
from torch import Tensor, nn

GPU = torch.cuda.is_available()
DEV = torch.device("cuda" if GPU else "cpu")
SMALL = bool(os.environ.get("SMALL"))
RAYS, SAMPLES, WIDTH, CHUNKS = (16, 8, 16, 30) if SMALL else (32768, 64, 256, 80)


class Radiance(nn.Module):
    def __init__(self, width: int, depth: int = 4) -> None:
        super().__init__()
        self.register_buffer("bands", 2.0 ** torch.arange(10))
        self.inp = nn.Linear(64, width)
        self.mid = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.out = nn.Linear(width, 8)

    def encode(self, xyz: Tensor) -> Tensor:
        phase = (xyz[..., None] * self.bands).flatten(-2)
        return torch.cat([xyz, phase.sin(), phase.cos(), torch.zeros_like(xyz[..., :1])], -1).to(self.inp.weight.dtype)

    def forward(self, origin: Tensor, direction: Tensor, depths: Tensor) -> Tensor:
        h = torch.relu(self.inp(self.encode(origin[:, None] + direction[:, None] * depths[:, None])))
        for layer in self.mid:
            h = torch.relu(layer(h))
        raw = self.out(h).float()
        density = raw[..., 3].relu() * (depths[1] - depths[0])
        reached = torch.exp(density - density.cumsum(-1))
        weight = reached * (1 - torch.exp(-density))
        return (weight[..., None] * raw[..., :3].sigmoid()).sum(1)


class View:
    """Rays of one picture, handed out in chunks of equal size."""

    def __init__(self, chunks: int, rays: int) -> None:
        side = torch.linspace(-0.5, 0.5, chunks * rays, device=DEV)
        self.direction = torch.stack([side, side.flip(0) * 0.6, torch.ones_like(side)], -1).view(chunks, rays, 3)
        self.origin = torch.zeros(rays, 3, device=DEV)

    def __iter__(self):
        for direction in self.direction:
            yield self.origin, direction


@torch.inference_mode()
def render() -> Tensor:
    field = Radiance(WIDTH).to(DEV)
    for layer in (field.inp, *field.mid, field.out):
        layer.to(torch.bfloat16)
    shade = torch.compile(field, disable=not GPU)
    depths = torch.linspace(0.5, 4, SAMPLES, device=DEV)
    picture = torch.empty(CHUNKS, RAYS, 3, device=DEV)
    for row, (origin, direction) in zip(picture, View(CHUNKS, RAYS)):
        row.copy_(shade(origin, direction, depths))
    return picture


if __name__ == "__main__":
    torch.manual_seed(0)
    print("mean colour", [round(v, 4) for v in render().mean((0, 1)).tolist()])
