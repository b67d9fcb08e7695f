"""Fits a radiance field to rays of a synthetic scene."""
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

tiny = os.environ.get("SMALL") == "1"
RAYS, SAMPLES, WIDTH, ITERS = (64, 8, 32, 30) if tiny else (4096, 64, 256, 120)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Field(nn.Module):
    """Position octaves are laid out so that the encoding has 64 entries."""

    def __init__(self, width):
        super().__init__()
        self.register_buffer("octaves", 2.0 ** torch.arange(10))
        self.a = nn.Sequential(nn.Linear(64, width), nn.ReLU(inplace=True), *self.hidden(width, 3))
        self.b = nn.Sequential(nn.Linear(width + 64, width), nn.ReLU(inplace=True), *self.hidden(width, 2))
        self.out = nn.Linear(width, 8)

    @staticmethod
    def hidden(width, n):
        return [m for _ in range(n) for m in (nn.Linear(width, width), nn.ReLU(inplace=True))]

    def encode(self, p):
        angle = (p[..., None] * self.octaves).flatten(-2)
        return torch.cat((angle.sin(), angle.cos(), F.pad(p, (0, 1))), -1)

    def forward(self, p):
        e = self.encode(p).to(torch.bfloat16)
        return self.out(self.b(torch.cat((self.a(e), e), -1))).float()


def composite(raw, depth):
    gap = F.pad(depth[:, 1:] - depth[:, :-1], (0, 1), value=1e3)
    optical = F.softplus(raw[..., 0] - 1) * gap
    through = torch.exp(-(optical.cumsum(1) - optical))
    weight = through * -torch.expm1(-optical)
    return (weight[..., None] * raw[..., 1:4].sigmoid()).sum(1)


def make_rays(n):
    origin = F.normalize(torch.randn(n, 3, device=device), dim=-1) * 2.5
    aim = F.normalize(torch.randn(n, 3, device=device) * 0.3 - origin, dim=-1)
    hit = (torch.linalg.cross(origin, aim).norm(dim=-1, keepdim=True) < 1).float()
    return origin, aim, hit * (0.5 + 0.5 * aim)


def main():
    field = Field(WIDTH).to(device)
    opt = torch.optim.Adam(field.parameters(), lr=5e-4, fused=device.type == "cuda")
    origins, aims, colours = make_rays(RAYS * 32)
    base = torch.linspace(1.5, 3.5, SAMPLES, device=device)
    for it in range(ITERS):
        pick = torch.randint(len(origins), (RAYS,), device=device)
        depth = base + torch.rand(RAYS, SAMPLES, device=device) * (2.0 / SAMPLES)
        points = torch.addcmul(origins[pick][:, None], aims[pick][:, None], depth[..., None])
        with torch.autocast(device.type, torch.bfloat16):
            raw = field(points)
        loss = F.mse_loss(composite(raw, depth), colours[pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if it % 30 == 0:
            print(f"{it:4d} mse {loss.item():.5f}")


if __name__ == "__main__":
    main()
