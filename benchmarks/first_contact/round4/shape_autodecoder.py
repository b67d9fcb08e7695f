"""Auto-decoder for signed distances: one latent code per shape, one shared MLP."""
import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

small = os.environ.get("SMALL") == "1"
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")

N_SHAPES = 3_000 if small else 1_000_000
SHAPES_PER_STEP = 4 if small else 64
POINTS = 32 if small else 2048
WIDTH = 64 if small else 512
CODE = 32 if small else 128
ITERS = 30 if small else 150
BANDS = 16


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = nn.Embedding(N_SHAPES, CODE, device=dev)  # flaw: dense-embedding-gradient
        nn.init.normal_(self.codes.weight, std=1 / math.sqrt(CODE))
        self.register_buffer("freqs", 2.0 ** torch.linspace(0, 6, BANDS))
        dims = [CODE + 6 * BANDS] + [WIDTH] * 6
        layers = []
        for a, b in zip(dims, dims[1:]):
            layers += [nn.Linear(a, b), nn.ReLU(inplace=True)]
        # one distance and seven part scores per point
        self.trunk = nn.Sequential(*layers, nn.Linear(WIDTH, 8))

    def forward(self, ids, xyz):
        ang = (xyz.unsqueeze(-1) * self.freqs).flatten(-2)
        code = self.codes(ids).unsqueeze(1).expand(-1, xyz.shape[1], -1)
        return self.trunk(torch.cat((code, ang.sin(), ang.cos()), -1)), code


def draw():
    ids = torch.randint(N_SHAPES, (SHAPES_PER_STEP,), device=dev)
    xyz = torch.rand(SHAPES_PER_STEP, POINTS, 3, device=dev) * 2 - 1
    radius = 0.3 + 0.4 * (ids % 97).float() / 97
    sdf = xyz.norm(dim=-1) - radius[:, None]
    part = (xyz[..., 0] > 0).long() * 3 + (xyz[..., 1] > 0).long()
    return ids, xyz, sdf.clamp_(-0.1, 0.1), part


net = Decoder().to(dev)
optim = torch.optim.Adam(net.parameters(), lr=5e-4, fused=dev.type == "cuda")  # flaw: dense-embedding-gradient

for it in range(ITERS):
    ids, xyz, sdf, part = draw()
    optim.zero_grad()
    with torch.autocast(dev.type, torch.bfloat16):
        out, code = net(ids, xyz)
    fit = F.l1_loss(out[..., 0].float(), sdf)
    seg = F.cross_entropy(out[..., 1:].flatten(0, 1).float(), part.flatten())
    loss = fit + 0.1 * seg + 1e-4 * code[:, 0].square().sum(-1).mean()
    loss.backward()
    optim.step()
    if it % 50 == 0:
        print(f"{it:5d}  {loss.item():.4f}")
print("final", loss.item())
