"""Auto-decoder for signed distance fields: one latent code per shape, one decoder for all."""

import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = bool(os.environ.get("SMALL"))
DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SHAPES, CODE, WIDTH, STEPS = (500, 16, 64, 30) if SMALL else (1_500_000, 128, 512, 80)
SCENES, POINTS = (4, 64) if SMALL else (64, 2048)


class LatentBank(nn.Module):
    """The codes of all shapes, initialised as in the paper with a small normal."""

    def __init__(self, shapes, dim):
        super().__init__()
        self.table = nn.Embedding(shapes, dim, device=DEV)  # flaw: dense-embedding-gradient
        nn.init.normal_(self.table.weight, std=1.0 / math.sqrt(dim))

    def forward(self, ids):
        return self.table(ids)


class Decoder(nn.Module):
    def __init__(self, code, width, depth=5):
        super().__init__()
        self.inp = nn.Linear(code + 8, width)
        self.mid = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.out = nn.Linear(width, 8)

    def forward(self, code, xyz):
        h = torch.cat([code.unsqueeze(1).expand(-1, xyz.shape[1], -1), F.pad(xyz, (0, 5))], -1)
        h = F.relu(self.inp(h))
        for layer in self.mid:
            h = F.relu(layer(h))
        return self.out(h)[..., 0]


def batches(n):
    gen = torch.Generator(device=DEV).manual_seed(0)
    for _ in range(n):
        ids = torch.randint(SHAPES, (SCENES,), device=DEV, generator=gen)
        xyz = torch.rand(SCENES, POINTS, 3, device=DEV, generator=gen) * 2 - 1
        radius = 0.3 + 0.4 * torch.rand(SCENES, 1, device=DEV, generator=gen)
        yield ids, xyz, xyz.norm(dim=-1) - radius


def run():
    torch.manual_seed(0)
    bank, decoder = LatentBank(SHAPES, CODE), Decoder(CODE, WIDTH).to(DEV)
    groups = [{"params": decoder.parameters()}, {"params": bank.parameters(), "lr": 1e-3}]
    optimizers = [torch.optim.Adam(groups, lr=5e-4, fused=True)]  # flaw: dense-embedding-gradient
    mean = torch.zeros((), device=DEV)
    for step, (ids, xyz, sdf) in enumerate(batches(STEPS), 1):
        codes = bank(ids)
        with torch.autocast(DEV.type, torch.bfloat16):
            pred = decoder(codes, xyz)
        loss = F.l1_loss(pred.float().clamp(-0.1, 0.1), sdf.clamp(-0.1, 0.1))
        loss = loss + 1e-4 * codes.square().mean()
        for opt in optimizers:
            opt.zero_grad()
        loss.backward()
        for opt in optimizers:
            opt.step()
        mean += loss.detach()
        if step % 40 == 0 or step == STEPS:
            print(f"{step:4d}  {mean.item() / step:.4f}")


run()
