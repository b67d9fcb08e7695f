"""Authenticates typists and watches how far the mean embedding of the fleet has drifted since the start."""

import dataclasses

import torch
from torch import nn


@dataclasses.dataclass
class MonitorConfig:
    typists: int = 64
    keys: int = 48
    width: int = 640
    code: int = 32
    batch: int = 160
    rounds: int = 900
    lr: float = 1e-3
    watch: bool = True


class TypingRhythm:
    """Hold and flight times of the keys; each typist has a habit that wanders slowly."""

    def __init__(self, cfg: MonitorConfig, seed: int):
        self.gen = torch.Generator().manual_seed(seed)
        self.habits = torch.randn(cfg.typists, 2 * cfg.keys, generator=self.gen)
        self.cfg = cfg

    def sample(self):
        who = torch.randint(self.cfg.typists, (self.cfg.batch,), generator=self.gen)
        self.habits += 0.003 * torch.randn(self.habits.shape, generator=self.gen)
        noise = torch.randn(len(who), self.habits.shape[1], generator=self.gen)
        return self.habits[who] + noise, who


class RhythmNet(nn.Module):
    def __init__(self, cfg: MonitorConfig):
        super().__init__()
        self.encode = nn.Sequential(
            nn.Linear(2 * cfg.keys, cfg.width),
            nn.ReLU(),
            nn.Linear(cfg.width, cfg.width),
            nn.ReLU(),
            nn.Linear(cfg.width, cfg.code),
        )
        self.who = nn.Linear(cfg.code, cfg.typists)

    def forward(self, rhythm):
        code = self.encode(rhythm)
        return code, self.who(code)


class DriftWatch:
    """Distance of the mean code of this round from the mean code of all rounds so far."""

    def __init__(self):
        self.codes = []  # flaw: memory-growth

    def __call__(self, code: torch.Tensor) -> float:
        now = code.mean(0)
        self.codes.append(code)  # flaw: memory-growth
        centre = torch.stack(self.codes).mean(dim=(0, 1))  # flaw: memory-growth
        return (now - centre).norm().item()


def authenticate(cfg: MonitorConfig) -> None:
    rhythm = TypingRhythm(cfg, seed=38)
    net = RhythmNet(cfg)
    optimizer = torch.optim.AdamW(net.parameters(), lr=cfg.lr, fused=True)
    watch = DriftWatch()
    correct, drift = 0, 0.0
    for round_ in range(1, cfg.rounds + 1):
        x, who = rhythm.sample()
        code, scores = net(x)
        loss = nn.functional.cross_entropy(scores, who)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        correct += (scores.argmax(1) == who).sum().item()
        if cfg.watch:
            drift = watch(code.detach())
        if round_ % 180 == 0:
            rate = correct / (180 * cfg.batch)
            print(f"round {round_}: loss {loss.item():.4f}  right {rate:.3f}  drift {drift:.3f}")
            correct = 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(37)
    authenticate(MonitorConfig())
