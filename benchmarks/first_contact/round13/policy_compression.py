"""Compress a large controller into a small one; sixteen updates are one CUDA graph."""
import os
import time
from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F

quick = os.environ.get("TINY") == "1"
OBS, ACTIONS = (32, 8) if quick else (256, 64)
BIG, SMALL = (128, 32) if quick else (4096, 1024)
VISITED = 2048 if quick else 1 << 20
BATCH = 64 if quick else 32768
UPDATES, REPLAYS = (2, 60) if quick else (16, 700)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
gpu = device.type == "cuda"
dtype = torch.bfloat16 if gpu else torch.float32
mlp = lambda *d: nn.Sequential(*[m for a, b in zip(d, d[1:]) for m in (nn.Linear(a, b), nn.ReLU(inplace=True))][:-1])


def visited_states():
    g = torch.Generator(device=device).manual_seed(51)
    return torch.randn(VISITED, OBS, device=device, dtype=dtype, generator=g)


@torch.inference_mode()
def label(teacher, states):
    """The teacher answers each state once, before training."""
    return torch.cat([teacher(part) for part in states.split(65536)])


def update(student, opt, states, answers, log):
    rows = torch.randint(VISITED, (BATCH,), device=device)
    with torch.autocast(device.type, torch.bfloat16, enabled=gpu, cache_enabled=False):
        loss = F.mse_loss(student(states[rows]), answers[rows])
    loss.backward()
    opt.step()
    opt.zero_grad(set_to_none=True)
    log.add_(loss.detach())


def several(one, count):
    def run():
        for _ in range(count):
            one()
    return run


def graphed(fn, warmup):
    """fn as a replayable graph; on the CPU, fn itself."""
    if not gpu:
        return fn
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            warmup()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        fn()
    return graph.replay


def main():
    torch.manual_seed(19)
    torch.set_float32_matmul_precision("high")
    with device:
        teacher = mlp(OBS, BIG, BIG, ACTIONS).to(dtype)
        student = mlp(OBS, SMALL, SMALL, ACTIONS)
    states = visited_states()
    answers = label(teacher, states).clone()
    opt = torch.optim.Adam(student.parameters(), lr=1e-3, fused=gpu, capturable=gpu)
    log = torch.zeros((), device=device)
    one = partial(update, student, opt, states, answers, log)
    replay = graphed(several(one, UPDATES), one)
    log.zero_()
    tic = time.perf_counter()
    for _ in range(REPLAYS):
        replay()
    print(f"imitation error {log.item() / (REPLAYS * UPDATES):.6f}  ({time.perf_counter() - tic:.2f} s)")


if __name__ == "__main__":
    main()
