"""Scores vibration windows of irrigation pumps as they come in.

A service loop: a thread collects windows into micro-batches, the scorer predicts each window's next
samples, and pumps whose prediction is off for several windows in a row are put on the call list.
"""
import queue
import threading
import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn


@dataclass
class Window:
    pump: int
    signal: np.ndarray


class Predictor(nn.Module):
    """A gated recurrent net over short frames; gates are shared by the axes of the sensor."""

    def __init__(self, frame: int, hidden: int, layers: int):
        super().__init__()
        self.frame = frame
        self.rnn = nn.GRU(frame, hidden, layers, batch_first=True)
        self.out = nn.Linear(hidden, frame)

    def forward(self, signal: Tensor) -> Tensor:
        frames = signal.unflatten(1, (-1, self.frame))
        states, _ = self.rnn(frames[:, :-1])
        return (self.out(states) - frames[:, 1:]).square().mean((1, 2))


class Intake(threading.Thread):
    """Stands in for the message bus."""

    def __init__(self, pumps: int, length: int, rows: int, batches: int, seed: int):
        super().__init__(daemon=True)
        self.rng = np.random.default_rng(seed)
        self.speed = self.rng.uniform(0.05, 0.3, pumps)
        self.worn = self.rng.random(pumps) < 0.1
        self.length, self.rows, self.batches = length, rows, batches
        self.out: queue.Queue = queue.Queue(maxsize=8)

    def run(self):
        t = np.arange(self.length)
        for _ in range(self.batches):
            pumps = self.rng.integers(len(self.speed), size=self.rows)
            waves = np.sin(t * self.speed[pumps, None] + self.rng.uniform(0, 6, (self.rows, 1)))
            waves += self.rng.normal(0, 1, waves.shape) * np.where(self.worn[pumps], 0.6, 0.1)[:, None]
            self.out.put([Window(int(p), w) for p, w in zip(pumps, waves.astype(np.float32))])
        self.out.put(None)

    def __iter__(self):
        return iter(self.out.get, None)


class Scorer:
    def __init__(self, model: nn.Module, pumps: int, limit: float, patience: int, device: str):
        self.model = model.to(device).eval()
        self.device, self.limit, self.patience = device, limit, patience
        self.streak = np.zeros(pumps, np.int64)

    def collate(self, windows: list[Window]) -> Tensor:
        stacked = torch.from_numpy(np.stack([w.signal for w in windows]))
        return stacked.to(self.device)

    @torch.inference_mode()
    def score(self, windows: list[Window]) -> np.ndarray:
        error = self.model(self.collate(windows))
        return error.cpu().numpy()

    def handle(self, windows: list[Window]) -> float:
        errors = self.score(windows)
        for window, error in zip(windows, errors):
            self.streak[window.pump] = self.streak[window.pump] + 1 if error > self.limit else 0
        return float(errors.mean())

    def calls(self) -> list[int]:
        return np.flatnonzero(self.streak >= self.patience).tolist()


def serve(scorer: Scorer, intake: Intake, every: int) -> None:
    intake.start()
    total, begin = 0.0, time.perf_counter()
    for number, windows in enumerate(intake, 1):
        total += scorer.handle(windows)
        if number % every == 0:
            ms = (time.perf_counter() - begin) / every * 1e3
            print(f"{number} batches, error {total / every:.6f}, {ms:.1f} ms, to call: {len(scorer.calls())}", flush=True)
            total, begin = 0.0, time.perf_counter()


def main() -> None:
    torch.manual_seed(60)
    torch.set_float32_matmul_precision("high")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scorer = Scorer(Predictor(8, 64, 2), pumps=400, limit=0.62, patience=3, device=device)
    serve(scorer, Intake(400, 1024, 32, 1000, 61), every=200)


if __name__ == "__main__":
    main()
