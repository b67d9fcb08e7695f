"""Snow sliding on a terrain: shallow-flow simulation of many slopes at once, in place on fixed buffers."""
import contextlib
import os
import torch

TINY = os.environ.get("TINY") == "1"
SLOPES, SIDE, STEPS = (2, 16, 3) if TINY else (72, 192, 220)


def terrain(dice):
    fall = torch.linspace(2, 0, SIDE)[:, None].expand(SIDE, SIDE)
    rough = torch.rand(SLOPES, SIDE, SIDE, generator=dice) * 0.02
    return fall + rough


class Avalanche:
    def __init__(self, ground, snow, share=0.2):
        self.ground, self.snow, self.share = ground, snow, share
        self.top = torch.empty_like(ground)
        self.south = torch.empty(SLOPES, SIDE - 1, SIDE)
        self.east = torch.empty(SLOPES, SIDE, SIDE - 1)

    def slide(self):
        s = self.snow
        torch.add(self.ground, s, out=self.top)
        torch.sub(self.top[:, :-1], self.top[:, 1:], out=self.south).mul_(self.share)
        torch.sub(self.top[:, :, :-1], self.top[:, :, 1:], out=self.east).mul_(self.share)
        torch.minimum(self.south, s[:, :-1] * 0.25, out=self.south)
        torch.maximum(self.south, s[:, 1:] * -0.25, out=self.south)
        torch.minimum(self.east, s[:, :, :-1] * 0.25, out=self.east)
        torch.maximum(self.east, s[:, :, 1:] * -0.25, out=self.east)
        s[:, :-1].sub_(self.south)
        s[:, 1:].add_(self.south)
        s[:, :, :-1].sub_(self.east)
        s[:, :, 1:].add_(self.east)


def main():
    dice = torch.Generator().manual_seed(37)
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.inference_mode())
        snow = torch.zeros(SLOPES, SIDE, SIDE)
        snow[:, : SIDE // 4] = torch.rand(SLOPES, SIDE // 4, SIDE, generator=dice)
        slopes = Avalanche(terrain(dice), snow)
        for step in range(STEPS):
            slopes.slide()
            if step % 40 == 0:
                print(step, f"{snow[:, SIDE // 4 :].mean().item():.6f}")
        print("mass", f"{snow.mean().item():.5f}", f"{snow[:, SIDE // 4 :].mean().item():.6f}")


if __name__ == "__main__":
    main()
