"""Classifies fermentation stages from acid sensors; callbacks watch how sure the model is."""
import os
import statistics

import torch
from torch import nn

QUICK = os.environ.get("TINY") == "1"
JARS, HOURS, STAGES, STEPS = (4, 16, 8, 5) if QUICK else (32, 256, 96, 140)


class Callback:
    def after_step(self, scores, loss):
        pass

    def report(self):
        return ""


class LossCurve(Callback):
    def __init__(self):
        self.values = []

    def after_step(self, scores, loss):
        self.values.append(loss.item())

    def report(self):
        return f"loss {statistics.mean(self.values[-10:]):.4f}"


class Sureness(Callback):
    def __init__(self):
        self.values = []

    def after_step(self, scores, loss):
        self.values.append(scores.softmax(1).amax(1).mean())  # flaw: graph-kept-alive

    def report(self):
        return f"sureness {sum(v.item() for v in self.values[-10:]) / min(10, len(self.values)):.4f}"


class Brewery:
    def __init__(self, callbacks):
        self.net = nn.Sequential(
            nn.Conv1d(6, 64, 5, padding=2), nn.ReLU(), nn.Conv1d(64, 64, 5, padding=2), nn.ReLU(),
            nn.Conv1d(64, STAGES, 1),
        )
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-3, fused=True)
        self.callbacks = callbacks

    def fit(self, batches):
        for sensors, stage in batches:
            scores = self.net(sensors)
            loss = nn.functional.cross_entropy(scores, stage)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            for callback in self.callbacks:
                callback.after_step(scores, loss)


def batches():
    sensors = torch.randn(4, JARS, 6, HOURS)
    stage = (sensors[:, :, 0].sigmoid() * STAGES).long().clamp_(max=STAGES - 1)
    for step in range(STEPS):
        yield sensors[step % 4], stage[step % 4]


torch.manual_seed(13)
brewery = Brewery([LossCurve(), Sureness()])
brewery.fit(batches())
print(", ".join(callback.report() for callback in brewery.callbacks))
