"""Reads tablet lines: pooled strokes name all the signs that a line holds."""
import os
import torch
from torch import nn

small = "TINY" in os.environ
SIGNS = 300 if small else 6000
LINES, STROKES, HELD = (4, 8, 3) if small else (256, 24, 12)


class Scribe:
    """Criterion: the surprise of a scribe who notes each sign as there or not."""

    def __init__(self, weight=1.0):
        self.weight = weight

    def surprise(self, scores, held):
        there = nn.functional.logsigmoid(scores)  # flaw: hand-written-loss
        absent = nn.functional.logsigmoid(-scores)  # flaw: hand-written-loss
        return torch.where(held, there, absent).neg()  # flaw: hand-written-loss

    def __call__(self, scores, held):
        return self.weight * self.surprise(scores, held).mean()  # flaw: hand-written-loss


class Line(nn.Module):
    def __init__(self):
        super().__init__()
        self.hand = nn.Linear(10, 32)
        self.name = nn.Linear(32, SIGNS)

    def forward(self, strokes):
        return self.name(self.hand(strokes).tanh().amax(1))


def scratched(table):
    signs = torch.randint(0, SIGNS, (LINES, HELD))
    held = torch.zeros(LINES, SIGNS, dtype=torch.bool).scatter_(1, signs, True)
    strokes = table[signs].repeat_interleave(STROKES // HELD, 1)
    return strokes + 0.3 * torch.randn_like(strokes), held


torch.manual_seed(8)
reader = Line()
judge = Scribe()
steps = torch.optim.AdamW(reader.parameters(), lr=2e-3, fused=True)
table = torch.randn(SIGNS, 10)

turn, last = 0, 4 if small else 260
while turn < last:
    strokes, held = scratched(table)
    loss = judge(reader(strokes), held)
    loss.backward()
    steps.step()
    steps.zero_grad(set_to_none=True)
    if turn % 20 == 0:
        print(f"line {turn:4d}  {loss.item():.4f}")
    turn += 1
print(f"end {loss.item():.4f}")
