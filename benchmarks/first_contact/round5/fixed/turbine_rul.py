"""Remaining-useful-life regression for turbines, with a tiny callback system."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F


class Callback:
    def on_step_end(self, loop): ...

    def on_fit_end(self, loop): ...


class Progress(Callback):
    def __init__(self, every):
        self.every = every

    def on_step_end(self, loop):
        if loop.step % self.every == 0:
            print(f"step {loop.step} rmse {loop.loss.item() ** 0.5:.3f}")


class MemoryReport(Callback):
    def __init__(self):
        self.peak = 0

    def on_step_end(self, loop):
        if loop.device == "cuda":
            self.peak = max(self.peak, torch.cuda.max_memory_allocated())

    def on_fit_end(self, loop):
        print("peak MiB", self.peak >> 20)


class Schedule(Callback):
    def __init__(self, opt, total):
        self.sched = torch.optim.lr_scheduler.OneCycleLR(opt, 2e-3, total_steps=total)

    def on_step_end(self, loop):
        self.sched.step()


class TurbineNet(nn.Module):
    def __init__(self, sensors, width, depth):
        super().__init__()
        self.inp = nn.Linear(sensors, width)
        self.rnn = nn.LSTM(width, width, num_layers=depth, batch_first=True)
        self.head = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1))

    def forward(self, x):
        out, _ = self.rnn(self.inp(x))
        return self.head(out).squeeze(-1)


class Loop:
    def __init__(self, model, opt, batches, device, callbacks):
        self.model, self.opt, self.batches = model, opt, batches
        self.device, self.callbacks = device, callbacks
        self.step, self.loss = 0, None

    def fire(self, event):
        for cb in self.callbacks:
            getattr(cb, event)(self)

    def fit(self, steps):
        for self.step in range(steps):
            x, rul = self.batches[self.step % len(self.batches)]
            with torch.autocast(self.device, torch.bfloat16):
                pred = self.model(x)
            loss = F.mse_loss(pred.float(), rul)
            loss.backward()
            self.opt.step()
            self.opt.zero_grad()
            self.loss = loss.detach()
            self.fire("on_step_end")
        self.fire("on_fit_end")


def main():
    small = os.environ.get("SMALL") == "1"
    batch, length, sensors, width, depth, steps = (4, 12, 5, 16, 1, 30) if small else (256, 160, 24, 768, 2, 80)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    batches = [(torch.randn(batch, length, sensors, device=device), torch.rand(batch, length, device=device)) for _ in range(4)]
    model = TurbineNet(sensors, width, depth).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    Loop(model, opt, batches, device, [Progress(25), MemoryReport(), Schedule(opt, steps)]).fit(steps)


if __name__ == "__main__":
    main()
