"""Fills cracks in frescoes; the likeness is judged by a fixed bank of stroke detectors."""
import os
import torch
from torch import nn
import torch.nn.functional as F

tiny = bool(os.environ.get("TINY"))
SIDE, PANELS, ROUNDS = (16, 2, 3) if tiny else (40, 8, 180)


def stroke_bank(widths=(3, 24, 48, 64)):
    layers = []
    for a, b in zip(widths, widths[1:]):
        layers += [nn.Conv2d(a, b, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers)


class Likeness(nn.Module):
    def __init__(self):
        super().__init__()
        self.bank = stroke_bank().eval()  # flaw: wasted-gradient

    def forward(self, painted, original):
        with torch.no_grad():
            wanted = self.bank(original)
        return F.mse_loss(self.bank(painted), wanted)


class Restorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(4, 16, 3, padding=1), nn.SiLU(), nn.Conv2d(16, 16, 3, padding=1), nn.SiLU(), nn.Conv2d(16, 3, 3, padding=1)
        )

    def forward(self, cracked, crack):
        return cracked + crack * self.body(torch.cat((cracked, crack), 1))


def frescoes(count):
    for _ in range(count):
        coarse = torch.rand(PANELS, 3, SIDE // 8, SIDE // 8)
        panel = F.interpolate(coarse, size=(SIDE, SIDE), mode="bilinear")
        crack = (torch.rand(PANELS, 1, SIDE, SIDE) < 0.2).float()
        yield panel, panel * (1 - crack), crack


torch.manual_seed(31)
likeness = Likeness()
restorer = Restorer()
opt = torch.optim.AdamW(restorer.parameters(), lr=2e-3, fused=True)
for day, (panel, cracked, crack) in enumerate(frescoes(ROUNDS)):
    painted = restorer(cracked, crack)
    loss = F.l1_loss(painted, panel) + 10 * likeness(painted, panel)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if day % 25 == 0:
        print(f"day {day}: {loss.item():.5f}")
print(f"done: {loss.item():.5f}")
