"""Distance and charge of quarry blasts from ground motion: recurrent net, values kept on the device."""
import time
from collections.abc import Callable
from typing import TypedDict

import torch
from torch import nn


class Knobs(TypedDict):
    shots: int
    samples: int
    rows: int
    rounds: int
    per_round: int
    rate: float


KNOBS: Knobs = dict(shots=1024, samples=256, rows=48, rounds=8, per_round=40, rate=2e-3)


def shots(k: Knobs, seed: int):
    """Ricker-like wavelets, later and lower with distance, stronger with charge."""
    g = torch.Generator().manual_seed(seed)
    distance = 0.3 + 1.7 * torch.rand(k["shots"], 1, generator=g)
    charge = 0.2 + torch.rand(k["shots"], 1, generator=g)
    t = torch.arange(k["samples"]) / 64
    arg = ((t - distance) * (4 / distance)).square()
    wave = charge / distance * (1 - arg) * torch.exp(-arg / 2)
    wave = wave + 0.05 * torch.randn(wave.shape, generator=g)
    return wave, torch.cat([distance, charge], dim=1)


class Seismo(nn.Module):
    def __init__(self, frame: int = 8, hidden: int = 80):
        super().__init__()
        self.frame = frame
        self.rnn = nn.LSTM(frame, hidden, batch_first=True)
        self.read = nn.Sequential(nn.LayerNorm(hidden), nn.Linear(hidden, 2))

    def forward(self, wave):
        states, _ = self.rnn(wave.unflatten(1, (-1, self.frame)))
        return self.read(states.mean(1))


def make_step(net: nn.Module, rate: float) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    opt = torch.optim.Adam(net.parameters(), lr=rate, fused=True)
    loss_of = nn.HuberLoss(delta=0.5)

    def step(wave, truth):
        loss = loss_of(net(wave), truth)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        return loss.detach()

    return step


def main() -> None:
    torch.manual_seed(100)
    torch.set_float32_matmul_precision("high")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    wave, truth = (t.to(device) for t in shots(KNOBS, 101))
    step = make_step(Seismo().to(device), KNOBS["rate"])
    g = torch.Generator(device).manual_seed(102)
    for number in range(KNOBS["rounds"] * 4):
        begin, total = time.perf_counter(), torch.zeros((), device=device)
        for _ in range(KNOBS["per_round"]):
            pick = torch.randint(KNOBS["shots"], (KNOBS["rows"],), device=device, generator=g)
            total += step(wave[pick], truth[pick])
        mean = total.item() / KNOBS["per_round"]
        ms = (time.perf_counter() - begin) / KNOBS["per_round"] * 1e3
        print(f"round {number}: {mean:.5f} ({ms:.1f} ms)", flush=True)


main()
