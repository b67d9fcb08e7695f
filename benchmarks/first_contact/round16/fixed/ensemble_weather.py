"""Ensemble forecasts with a learned emulator: rollouts from perturbed states."""
import os

import torch
from torch import nn

TINY = os.environ.get("TINY") == "1"
LEADS, MEMBERS, VARS, SIDE, WIDTH, FORECASTS = (4, 2, 4, 16, 8, 4) if TINY else (40, 8, 16, 256, 64, 350)
device = "cuda" if torch.cuda.is_available() else "cpu"


class Emulator(nn.Module):
    def __init__(self):
        super().__init__()
        self.tendency = nn.Sequential(
            nn.Conv2d(VARS, WIDTH, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(WIDTH, WIDTH, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(WIDTH, VARS, 3, padding=1))

    def forward(self, state):
        return torch.add(state, self.tendency(state), alpha=0.1)


class Recorder:
    """Called with every state of a forecast; keeps them for the verification."""

    def start(self, state):
        self.states = []

    def __call__(self, state):
        self.states.append(state)

    def finish(self):
        return torch.stack(self.states)


class Forecaster:
    def __init__(self, emulator, *callbacks):
        self.emulator = emulator
        self.callbacks = callbacks

    def run(self, state, leads):
        for c in self.callbacks:
            c.start(state)
        for _ in range(leads):
            state = self.emulator(state)
            for c in self.callbacks:
                c(state)


@torch.inference_mode()
def main():
    torch.manual_seed(30)
    torch.backends.cudnn.benchmark = True
    kind = dict(device=device, dtype=torch.bfloat16)
    emulator = Emulator().to(memory_format=torch.channels_last, **kind).eval()
    recorder = Recorder()
    forecaster = Forecaster(emulator, recorder)
    analysis = torch.randn(1, VARS, SIDE, SIDE, **kind)
    spread = torch.zeros(LEADS, device=device)
    for _ in range(FORECASTS):
        members = analysis + 0.1 * torch.randn(MEMBERS, VARS, SIDE, SIDE, **kind)
        forecaster.run(members.contiguous(memory_format=torch.channels_last), LEADS)
        states = recorder.finish()
        spread += states.std(dim=1).float().mean((1, 2, 3))
    print("spread by lead", [round(s, 4) for s in (spread / FORECASTS)[:: max(1, LEADS // 5)].tolist()])


if __name__ == "__main__":
    main()
