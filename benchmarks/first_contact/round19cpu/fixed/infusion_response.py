"""Neural ODE for drug response: a learned drift is integrated from the infusion protocol of each patient and
fitted to the blood pressure, heart rate and sedation that the monitors recorded."""
import math
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    patients: int = 2048
    batch: int = 128
    latent: int = 16
    hidden: int = 96
    intervals: int = 10
    updates: int = 400
    lr: float = 2e-3
    clip: float = 5.0
    seed: int = 11
    careful: bool = False


class Drift(nn.Module):
    def __init__(self, latent, hidden):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(latent + 2, hidden), nn.Tanh(),
            nn.Linear(hidden, hidden), nn.Tanh(),
            nn.Linear(hidden, latent),
        )

    def forward(self, state, rate):
        return self.net(torch.cat([state, rate], dim=1))


class ResponseModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.start = nn.Sequential(nn.Linear(6, cfg.hidden), nn.Tanh(), nn.Linear(cfg.hidden, cfg.latent))
        self.drift = Drift(cfg.latent, cfg.hidden)
        self.monitor = nn.Linear(cfg.latent, 3)

    def forward(self, covariates, protocol):
        state = self.start(covariates)
        states = []
        h = 1.0 / protocol.shape[0]
        for rate in protocol.unbind(0):
            k1 = self.drift(state, rate)
            k2 = self.drift(state + 0.5 * h * k1, rate)
            k3 = self.drift(state + 0.5 * h * k2, rate)
            k4 = self.drift(state + h * k3, rate)
            state = state + h / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)
            states.append(state)
        return self.monitor(torch.stack(states))


def cohort(cfg):
    gen = torch.Generator().manual_seed(cfg.seed)
    covariates = torch.randn(cfg.patients, 6, generator=gen)
    protocol = torch.rand(cfg.intervals, cfg.patients, 2, generator=gen)
    clearance = 1.0 + 0.3 * torch.tanh(covariates[:, :2])
    level = torch.zeros(cfg.patients, 2)
    seen = []
    for rate in protocol.unbind(0):
        level = level + 0.1 * (rate - clearance * level)
        effect = level / (0.4 + level)
        seen.append(torch.stack([-effect[:, 0], effect[:, 1] - 0.2 * effect[:, 0], effect.prod(1)], 1))
    vitals = torch.stack(seen)
    return covariates, protocol, vitals + 0.02 * torch.randn(vitals.shape, generator=gen)


@contextmanager
def session(cfg):
    torch.manual_seed(cfg.seed)
    with torch.autograd.set_detect_anomaly(cfg.careful):
        yield


class Fit:
    def __init__(self, cfg):
        self.cfg = cfg
        self.covariates, self.protocol, self.vitals = cohort(cfg)
        self.model = ResponseModel(cfg)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=cfg.lr, fused=True)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, cfg.updates)

    def update(self, rows):
        predicted = self.model(self.covariates[rows], self.protocol[:, rows])
        loss = nn.functional.mse_loss(predicted, self.vitals[:, rows])
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.clip)
        self.optimizer.step()
        self.schedule.step()
        return loss.detach()

    def run(self):
        for number in range(1, self.cfg.updates + 1):
            loss = self.update(torch.randint(self.cfg.patients, (self.cfg.batch,)))
            if number % 80 == 0:
                print(f"update {number:4d}  rmse {math.sqrt(loss):.4f}", flush=True)


if __name__ == "__main__":
    config = Config()
    with session(config):
        Fit(config).run()
