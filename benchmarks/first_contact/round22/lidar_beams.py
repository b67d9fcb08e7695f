"""Self-supervised completion of lidar sweeps: beams are tokens, a single-head mixer relates them to each other."""
import os
import time

import torch
from torch import nn
from torch.nn import functional as F

torch.set_float32_matmul_precision("high")


class Callback:
    def on_start(self, run): ...
    def on_step(self, run, loss): ...
    def on_end(self, run): ...


class PrintLoss(Callback):
    def __init__(self, every):
        self.every = every

    def on_start(self, run):
        self.sum = torch.zeros((), device=run.device)
        self.since = time.time()

    def on_step(self, run, loss):
        self.sum += loss
        if run.step % self.every == 0:
            value = self.sum.item() / self.every
            print(f"step {run.step} | range error {value:.5f}", flush=True)
            self.sum.zero_()

    def on_end(self, run):
        print(f"{time.time() - self.since:.0f} s")


class WarmUp(Callback):
    def __init__(self, steps, lr):
        self.steps, self.lr = steps, lr

    def on_step(self, run, loss):
        if run.step <= self.steps:
            for group in run.optimizer.param_groups:
                group["lr"] = self.lr * run.step / self.steps


class BeamMixer(nn.Module):
    """As in the middle of an autoencoder: one head over all positions."""

    def __init__(self, width, inner):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.query = nn.Linear(width, inner)
        self.key = nn.Linear(width, inner)
        self.value = nn.Linear(width, inner)
        self.project = nn.Linear(inner, width)

    def forward(self, beams):
        seen = self.norm(beams)
        mixed = F.scaled_dot_product_attention(self.query(seen), self.key(seen), self.value(seen))  # flaw: slow-attention-kernel
        return beams + self.project(mixed)


class Refine(nn.Sequential):
    def __init__(self, width):
        super().__init__(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, beams):
        return beams + super().forward(beams)


class SweepCompleter(nn.Module):
    def __init__(self, rays, width, inner, depth):
        super().__init__()
        self.embed = nn.Linear(rays, width)
        self.trunk = nn.Sequential()
        for _ in range(depth):
            self.trunk.append(BeamMixer(width, inner)).append(Refine(width))
        self.decode = nn.Linear(width, rays)

    def forward(self, sweep):
        return self.decode(self.trunk(self.embed(sweep)))


class Run:
    def __init__(self, model, sweeps, batch, device, callbacks):
        self.model, self.sweeps, self.batch, self.device = model, sweeps, batch, device
        self.callbacks = callbacks
        self.step = 0
        self.generator = torch.Generator(device).manual_seed(8)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def emit(self, event, *args):
        for callback in self.callbacks:
            getattr(callback, event)(self, *args)

    def training_step(self):
        whole = self.sweeps[torch.randint(len(self.sweeps), (self.batch,), device=self.device, generator=self.generator)]
        dropped = torch.rand(whole.shape[:2] + (1,), device=self.device, generator=self.generator) < 0.4
        with torch.autocast(self.device, dtype=torch.bfloat16):
            return F.l1_loss(self.model(whole.masked_fill(dropped, 0.0)).float(), whole)

    def go(self, steps):
        self.emit("on_start")
        while self.step < steps:
            self.step += 1
            loss = self.training_step()
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            self.emit("on_step", loss.detach())
        self.emit("on_end")


def sweeps_of(count, beams, rays, device):
    g = torch.Generator(device).manual_seed(4)
    walls = torch.rand(count, 1, rays, device=device, generator=g) * 0.6 + 0.2
    tilt = torch.linspace(-0.3, 0.3, beams, device=device).view(1, beams, 1)
    return walls / (1 + tilt.abs()) + 0.02 * torch.randn(count, beams, rays, device=device, generator=g)


if __name__ == "__main__":
    tiny = os.environ.get("TINY") == "1"
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(6)
    beams, rays = (16, 8) if tiny else (2048, 64)
    completer = SweepCompleter(rays, *((32, 16, 2) if tiny else (1024, 128, 4))).to(device)
    callbacks = [WarmUp(20 if tiny else 200, 3e-4), PrintLoss(10 if tiny else 100)]
    Run(completer, sweeps_of(64 if tiny else 4096, beams, rays, device), 4 if tiny else 24, device, callbacks).go(40 if tiny else 2000)
