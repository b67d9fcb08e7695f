"""Rating of tablet-weaving tension curves with a small recurrent mixer.

The loop is a miniature of the callback frameworks: everything that is not the step is a callback.
"""
import numpy as np
import torch
from torch import nn


class Callback:
    def on_fit_begin(self, fit): ...

    def on_step_end(self, fit): ...

    def on_fit_end(self, fit): ...


class Report(Callback):
    def __init__(self, every):
        self.every = every

    def on_fit_begin(self, fit):
        self.sum = torch.zeros(())

    def on_step_end(self, fit):
        self.sum += fit.loss
        if fit.step % self.every == 0:
            print(f"[{fit.step:4d}] loss {self.sum.item() / self.every:.5f} lr {fit.schedule.get_last_lr()[0]:.5f}", flush=True)
            self.sum.zero_()


class GradientWatch(Callback):
    """Stops at the operation that made a gradient NaN."""

    def on_fit_begin(self, fit):
        torch.autograd.set_detect_anomaly(False)

    def on_fit_end(self, fit):
        torch.autograd.set_detect_anomaly(False)


class Warmup(Callback):
    def on_step_end(self, fit):
        fit.schedule.step()


class Mixer(nn.Module):
    """Tokens of a curve, mixed along time and along features in turn."""

    def __init__(self, tokens, width, layers):
        super().__init__()
        self.enter = nn.Linear(8, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * layers))
        self.time = nn.ModuleList(nn.Sequential(nn.Linear(tokens, tokens), nn.GELU(), nn.Linear(tokens, tokens)) for _ in range(layers))
        self.feature = nn.ModuleList(nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)) for _ in range(layers))
        self.leave = nn.Linear(width, 1)

    def forward(self, curves):
        x = self.enter(curves.unflatten(1, (-1, 8)))
        norms = iter(self.norms)
        for time, feature in zip(self.time, self.feature):
            x = x + time(next(norms)(x).mT).mT
            x = x + feature(next(norms)(x))
        return self.leave(x.mean(1)).squeeze(1)


class Fit:
    def __init__(self, model, data, batch, callbacks):
        self.model, self.data, self.batch, self.callbacks = model, data, batch, callbacks
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
        self.schedule = torch.optim.lr_scheduler.LinearLR(self.optimizer, 0.1, total_iters=100)
        self.step = 0

    def tell(self, event):
        for callback in self.callbacks:
            getattr(callback, event)(self)

    def batches(self):
        curves, ratings = self.data
        for rows in torch.randperm(len(curves)).split(self.batch):
            yield curves[rows], ratings[rows]

    def __call__(self, epochs):
        self.tell("on_fit_begin")
        for _ in range(epochs):
            for curves, ratings in self.batches():
                self.optimizer.zero_grad()
                loss = nn.functional.huber_loss(self.model(curves), ratings)
                loss.backward()
                self.optimizer.step()
                self.loss = loss.detach()
                self.step += 1
                self.tell("on_step_end")
        self.tell("on_fit_end")


def curves_and_ratings(count, samples=128, seed=5):
    rng = np.random.default_rng(seed)
    time = np.linspace(0, 4 * np.pi, samples)
    beat, slack = rng.uniform(0.5, 2, (2, count, 1))
    tension = np.sin(beat * time) * np.exp(-slack * time / 12) + rng.normal(0, 0.1, (count, samples))
    rating = 2 * slack[:, 0] - beat[:, 0] + rng.normal(0, 0.05, count)
    return torch.tensor(tension, dtype=torch.float32), torch.tensor(rating, dtype=torch.float32)


if __name__ == "__main__":
    torch.manual_seed(5)
    fit = Fit(
        Mixer(tokens=16, width=32, layers=6),
        curves_and_ratings(4096),
        batch=256,
        callbacks=[GradientWatch(), Warmup(), Report(every=120)],
    )
    fit(epochs=30)
