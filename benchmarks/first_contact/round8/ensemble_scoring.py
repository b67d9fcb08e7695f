"""Scores a portfolio with an ensemble of MLPs through torch.func, and reports the spread."""

import copy

import torch
import torch.nn as nn
from torch.func import functional_call, stack_module_state, vmap

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
DTYPE = torch.bfloat16 if CUDA else torch.float32

MEMBERS = 8 if CUDA else 3
FEATURES = 256 if CUDA else 12
WIDTH = 2048 if CUDA else 24
CHUNK = 16_384 if CUDA else 32
PASSES = 200 if CUDA else 10


def make_member():
    return nn.Sequential(
        nn.Linear(FEATURES, WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, 8),
    )


def build_ensemble():
    with DEVICE:
        members = [make_member().to(DTYPE).eval() for _ in range(MEMBERS)]
    params, buffers = stack_module_state(members)
    skeleton = copy.deepcopy(members[0]).to("meta")

    def single(params, buffers, x):
        return functional_call(skeleton, (params, buffers), (x,))

    return vmap(single, in_dims=(0, 0, None)), params, buffers


def portfolio():
    """Chunks of the table in pinned memory, in turn."""
    table = torch.randn(8, CHUNK, FEATURES).to(DTYPE)
    if CUDA:
        table = table.pin_memory()
    for i in range(PASSES):
        yield table[i % len(table)]


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    ensemble, params, buffers = build_ensemble()
    mean = torch.zeros(8, device=DEVICE)
    spread = torch.zeros(8, device=DEVICE)
    for chunk in portfolio():
        x = chunk.to(DEVICE, non_blocking=True)
        scores = ensemble(params, buffers, x).float()
        deviation, average = torch.std_mean(scores, dim=0)
        mean += average.mean(dim=0)
        spread += deviation.mean(dim=0)
    print("mean", (mean / PASSES).cpu().numpy().round(4), "spread", (spread / PASSES).cpu().numpy().round(4))


if __name__ == "__main__":
    main()
