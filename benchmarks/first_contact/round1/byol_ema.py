"""Self-supervised learning with a slow teacher."""
import copy

import torch
import torch.nn.functional as F
from torch import nn


class Slow:
    def __init__(self, model, decay=0.996):
        self.model, self.decay = copy.deepcopy(model).requires_grad_(False), decay

    @torch.no_grad()
    def follow(self, online):
        for mine, theirs in zip(self.model.parameters(), online.parameters()):  # flaw: none-yet(ema-loop)
            mine.data = mine.data * self.decay + theirs.data * (1 - self.decay)  # flaw: none-yet(ema-loop)


def tower(dim=512, depth=40):
    mods = []
    for _ in range(depth):
        mods += [nn.Linear(dim, dim), nn.LayerNorm(dim), nn.GELU()]
    return nn.Sequential(*mods)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    student = tower().to(device)
    teacher = Slow(student)
    opt = torch.optim.AdamW(student.parameters(), 1e-4, fused=True)
    views = torch.randn(2, 8192, 512, device=device)
    for _ in range(400):
        with torch.autocast(device, torch.bfloat16):
            p = student(views[0])
            with torch.no_grad():
                z = teacher.model(views[1])
            loss = -F.cosine_similarity(p.float(), z.float()).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        teacher.follow(student)


main()
