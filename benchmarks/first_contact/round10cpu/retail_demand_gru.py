"""Demand forecasts for shops: GRU over in-memory windows, trainer with validation."""

from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class Config:
    shops: int = 16
    days: int = 1200
    history: int = 56
    hidden: int = 96
    batch: int = 64
    steps: int = 300
    check_every: int = 100
    lr: float = 2e-3


class DemandModel(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.rnn = nn.GRU(inputs, hidden, batch_first=True)
        self.head = nn.Linear(hidden, inputs)

    def forward(self, history):
        _, last = self.rnn(history)
        return history[:, -1] + self.head(last[-1])


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        torch.manual_seed(0)
        demand = self.simulate()
        windows = demand.unfold(0, cfg.history + 1, 1).transpose(1, 2)
        cut = int(0.85 * len(windows))
        self.train_windows, self.check_windows = windows[:cut], windows[cut:]
        self.model = DemandModel(cfg.shops, cfg.hidden)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr, fused=True)

    def simulate(self):
        t = torch.arange(self.cfg.days)[:, None]
        phase = torch.rand(self.cfg.shops) * 7
        weekly = torch.sin(2 * torch.pi * (t + phase) / 7)
        yearly = torch.cos(2 * torch.pi * t / 365)
        return weekly + 0.5 * yearly + 0.2 * torch.randn(self.cfg.days, self.cfg.shops)

    def loss(self, windows):
        return F.huber_loss(self.model(windows[:, :-1]), windows[:, -1])

    @torch.inference_mode()
    def check(self):
        self.model.eval()
        loss = self.loss(self.check_windows)
        self.model.train()
        return loss.item()

    def fit(self):
        for step in range(1, self.cfg.steps + 1):
            picks = torch.randint(len(self.train_windows), (self.cfg.batch,))
            loss = self.loss(self.train_windows[picks])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step % self.cfg.check_every == 0:
                print(f"step {step}: train {loss.item():.4f} check {self.check():.4f}")


if __name__ == "__main__":
    Trainer(Config()).fit()
