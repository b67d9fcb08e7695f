"""Nowcasting of rain from radar maps: a plain convolutional network reads eight maps and gives four."""
import argparse
import functools
import os

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

TINY = os.environ.get("TINY") == "1"
torch.backends.cudnn.benchmark = True


def lean(forward):
    """Decorates a forward method: keep its inputs only."""

    @functools.wraps(forward)
    def wrapped(self, *tensors):
        if not torch.is_grad_enabled():
            return forward(self, *tensors)
        return checkpoint(functools.partial(forward, self), *tensors, use_reentrant=False)  # flaw: needless-checkpointing

    return wrapped


class Unit(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.one = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.two = nn.Conv2d(2 * width, width, 3, padding=1)

    @lean  # flaw: needless-checkpointing
    def forward(self, x):
        return x + self.two(F.relu(self.one(x), inplace=True))


class Nowcaster(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.enter = nn.Conv2d(8, width, 4, stride=4)
        self.units = nn.ModuleList([Unit(width) for _ in range(depth)])
        self.leave = nn.ConvTranspose2d(width, 4, 4, stride=4)

    def forward(self, maps):
        x = self.enter(maps)
        for unit in self.units:
            x = unit(x)
        return self.leave(x)


def parse():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--width", type=int, default=16 if TINY else 192)
    p.add_argument("--depth", type=int, default=2 if TINY else 10)
    p.add_argument("--side", type=int, default=32 if TINY else 256)
    p.add_argument("--batch", type=int, default=2 if TINY else 32)
    p.add_argument("--steps", type=int, default=3 if TINY else 320)
    return p.parse_args()


def main(args):
    torch.manual_seed(13)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = Nowcaster(args.width, args.depth).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-4, fused=True)
    archive = torch.rand(4 * args.batch, 12, args.side, args.side, device=device)
    for step in range(args.steps):
        maps = archive[torch.randint(len(archive), (args.batch,), device=device)]
        past = maps[:, :8].contiguous(memory_format=torch.channels_last)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.l1_loss(net(past).float(), maps[:, 8:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 80 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main(parse())
