"""Sorts plankton silhouettes into taxa with a depthwise-separable network."""

import argparse
import json
import math

import torch
from torch import nn

DEFAULTS = json.loads('{"taxa": 6, "side": 64, "width": 48, "blocks": 3, "batch": 8, "steps": 225, "lr": 0.001}')


class WideDepthwise(nn.Module):
    """A large depthwise kernel, then a smaller one over groups of channels."""

    def __init__(self, width: int):
        super().__init__()
        self.field = nn.Conv2d(width, width, 5, padding=2, groups=width, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.blend = nn.Conv2d(width, width, 3, padding=1, groups=4)

    def forward(self, x):
        y = torch.relu(self.norm(self.field(x)))
        return x + self.blend(y)


class PlanktonNet(nn.Module):
    def __init__(self, taxa: int, width: int, blocks: int):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 4, stride=2, padding=1)
        self.blocks = nn.Sequential(*[WideDepthwise(width) for _ in range(blocks)])
        self.taxon = nn.Linear(width, taxa)

    def forward(self, images):
        return self.taxon(self.blocks(self.stem(images)).mean(dim=(2, 3)))


def silhouettes(n: int, taxa: int, side: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A taxon has a number of lobes and an elongation."""
    gen = torch.Generator().manual_seed(seed)
    axis = torch.linspace(-1, 1, side)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    taxon = torch.randint(taxa, (n,), generator=gen)
    turn = 2 * math.pi * torch.rand(n, 1, 1, generator=gen)
    size = 0.4 + 0.3 * torch.rand(n, 1, 1, generator=gen)
    lobes = (2 + taxon).view(-1, 1, 1)
    edge = size * (1 + 0.3 * torch.cos(lobes * (torch.atan2(y, x) + turn)))
    images = torch.sigmoid(20 * (edge - x.hypot(y)))
    return (images + 0.1 * torch.randn(images.shape, generator=gen)).unsqueeze(1), taxon


def build_model(options: dict) -> nn.Module:
    model = PlanktonNet(options["taxa"], options["width"], options["blocks"])
    return model.train()  # flaw: channels-first-conv


def train(options: dict) -> float:
    images, taxon = silhouettes(512, options["taxa"], options["side"], seed=20)
    model = build_model(options)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options["lr"], fused=True)
    gen = torch.Generator().manual_seed(21)
    smooth = None
    for step in range(options["steps"]):
        rows = torch.randint(len(images), (options["batch"],), generator=gen)
        batch = images[rows]  # flaw: channels-first-conv
        loss = nn.functional.cross_entropy(model(batch), taxon[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        smooth = loss.item() if smooth is None else 0.97 * smooth + 0.03 * loss.item()
        if step % 75 == 74:
            print(json.dumps({"step": step + 1, "loss": round(smooth, 4)}))
    return smooth


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in DEFAULTS.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    options = vars(parser.parse_args())
    torch.set_num_threads(1)
    torch.manual_seed(19)
    final = train(options)
    print(f"final smoothed loss {final:.4f}")


if __name__ == "__main__":
    main()
