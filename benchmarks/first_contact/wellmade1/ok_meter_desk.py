"""A desk that scores feeder recordings as they come in. Every tick all waiting requests are answered."""
import contextlib
import itertools
import statistics
import time
from collections import deque
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class Request:
    number: int
    frames: torch.Tensor
    score: float | None = field(default=None)


def clients(rate, width, seed):
    """Yields, for each tick, the list of requests that arrived during it."""
    rng = torch.Generator().manual_seed(seed)
    numbers = itertools.count()
    while True:
        count = int(torch.poisson(torch.tensor(rate), generator=rng))
        arrived = []
        for _ in range(count):
            length = int(torch.randint(40, 200, (), generator=rng))
            scale = 3.0 if torch.rand((), generator=rng) < 0.03 else 1.0
            arrived.append(Request(next(numbers), scale * torch.randn(length, width, generator=rng)))
        yield arrived


class Residual(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.body = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, inner), nn.ReLU(inplace=True), nn.Linear(inner, width))

    def forward(self, x):
        return self.body(x).add_(x)


class Reconstructor(nn.Module):
    def __init__(self, features, width=256, inner=768, blocks=2):
        super().__init__()
        self.enter = nn.Linear(features, width)
        self.blocks = nn.Sequential(*(Residual(width, inner) for _ in range(blocks)))
        self.leave = nn.Linear(width, features)

    def forward(self, frames):
        return self.leave(self.blocks(self.enter(frames)))


class Desk:
    def __init__(self, model, most_frames=4096, remember=512):
        self.model = model.eval()
        self.waiting = deque()
        self.most_frames = most_frames
        self.scores = deque(maxlen=remember)
        self.answered = self.alarms = 0

    def accept(self, requests):
        self.waiting.extend(requests)

    def group(self):
        """As many waiting requests as fit in one call, oldest first."""
        taken, frames = [], 0
        while self.waiting and (not taken or frames + len(self.waiting[0].frames) <= self.most_frames):
            request = self.waiting.popleft()
            frames += len(request.frames)
            taken.append(request)
        return taken

    def answer(self, taken):
        lengths = [len(r.frames) for r in taken]
        rows = torch.cat([r.frames for r in taken])
        error = torch.linalg.vector_norm(self.model(rows) - rows, dim=1)
        for request, part in zip(taken, error.split(lengths)):
            request.score = float(part.mean())
            self.react(request)

    def react(self, request):
        if len(self.scores) > 50 and request.score > 1.6 * statistics.fmean(self.scores):
            self.alarms += 1
        else:
            self.scores.append(request.score)
        self.answered += 1

    def drain(self):
        while self.waiting:
            self.answer(self.group())


@contextlib.contextmanager
def stopwatch(into):
    start = time.perf_counter()
    yield
    into.append(1000 * (time.perf_counter() - start))


def main(ticks=900, report=150):
    torch.manual_seed(14)
    desk = Desk(Reconstructor(64))
    took, depth = deque(maxlen=report), deque(maxlen=report)
    with torch.inference_mode():
        for tick, arrived in enumerate(itertools.islice(clients(6.0, 64, seed=15), ticks), 1):
            desk.accept(arrived)
            depth.append(len(desk.waiting))
            with stopwatch(took):
                desk.drain()
            if tick % report == 0:
                ordered = sorted(took)
                print(f"tick {tick:4d}  answered {desk.answered:5d}  alarms {desk.alarms:3d}  waiting {max(depth)} at most  "
                      f"median {ordered[len(ordered) // 2]:.1f} ms  p95 {ordered[int(0.95 * len(ordered))]:.1f} ms")


if __name__ == "__main__":
    main()
