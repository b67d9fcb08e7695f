"""Describes sonar echoes (level, tilt, crest) and learns the kind of sea floor."""
import os
import torch
from torch import nn
import torch.nn.functional as F

TINY = "TINY" in os.environ
PINGS, SAMPLES, ROUNDS = (8, 64, 3) if TINY else (640, 256, 200)


def slope_axis(count):
    axis = torch.linspace(-1, 1, count)
    return axis / axis.square().sum()


AXIS = slope_axis(SAMPLES)


def describe(echo):
    power = echo.square()
    level = power.mean().log()
    tilt = power @ AXIS
    crest = power.amax() / power.mean()
    return torch.stack((level, tilt, crest.log()))


def descriptors(echoes):
    found = [describe(echo) for echo in echoes.unbind(0)]  # flaw: python-loop-over-tensor
    return torch.stack(found)  # flaw: python-loop-over-tensor


def survey(dice):
    for _ in range(ROUNDS):
        kind = torch.randint(0, 4, (PINGS,), generator=dice)
        fade = torch.exp(-torch.linspace(0, 1, SAMPLES) * (1 + kind[:, None]))
        yield fade * torch.randn(PINGS, SAMPLES, generator=dice), kind


def main():
    torch.manual_seed(2)
    dice = torch.Generator().manual_seed(5)
    floor = nn.Sequential(nn.Linear(SAMPLES + 3, 512), nn.SiLU(), nn.Linear(512, 512), nn.SiLU(), nn.Linear(512, 4))
    opt = torch.optim.AdamW(floor.parameters(), lr=1e-3, fused=True)
    for turn, (echoes, kind) in enumerate(survey(dice)):
        traits = descriptors(echoes)
        loss = F.cross_entropy(floor(torch.cat((echoes, traits), 1)), kind)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if turn % 25 == 0:
            print(turn, f"{loss.item():.4f}")
    print("floor", f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
