# Echo-state network: drive a random reservoir with many series, fit a ridge read-out.
import os
import time

import torch

small = os.environ.get("TINY") == "1"
N_UNITS = 64 if small else 4096
N_SERIES = 16 if small else 2048
N_TIME = 24 if small else 96
WASHOUT = 8 if small else 32
CHANNELS = 16
ROUNDS = 60 if small else 300
RIDGE = 1e-2

dev = "cuda" if torch.cuda.is_available() else "cpu"
dtype = torch.bfloat16 if dev == "cuda" else torch.float32
torch.manual_seed(4)
torch.set_float32_matmul_precision("high")
torch.set_grad_enabled(False)

w = torch.randn(N_UNITS, N_UNITS, device=dev) * (0.9 / N_UNITS ** 0.5)
w_in = torch.randn(CHANNELS, N_UNITS, device=dev) * 0.3
w, w_in = w.to(dtype), w_in.to(dtype)


def make_series(round_no):
    g = torch.Generator(device=dev).manual_seed(100 + round_no)
    steps = torch.randn(N_SERIES, N_TIME + 1, CHANNELS, device=dev, generator=g)
    return torch.cumsum(steps, 1).mul_(0.05).to(dtype)


def advance(state, drive):
    return torch.addmm(drive, state, w).tanh_()


def drive_reservoir(series):
    """All states after the wash-out: series x time x units."""
    inputs = (series[:, :-1].transpose(0, 1) @ w_in).contiguous()
    state = torch.zeros(N_SERIES, N_UNITS, device=dev, dtype=dtype)
    for t in range(WASHOUT):
        state = advance(state, inputs[t])
    trail = state.new_empty(N_SERIES, N_TIME - WASHOUT, N_UNITS)
    for t in range(WASHOUT, N_TIME):
        state = advance(state, inputs[t])
        trail[:, t - WASHOUT] = state
    return trail


class Ridge:
    """Normal equations, accumulated over rounds."""

    def __init__(self):
        self.xx = torch.zeros(N_UNITS, N_UNITS, device=dev)
        self.xy = torch.zeros(N_UNITS, CHANNELS, device=dev)
        self.rows = 0

    def add(self, x, y):
        x, y = x.flatten(0, 1), y.flatten(0, 1)
        self.xx += x.t() @ x
        self.xy += x.t() @ y
        self.rows += len(x)

    def solve(self):
        eye = torch.eye(N_UNITS, device=dev)
        factor = torch.linalg.cholesky(self.xx / self.rows + RIDGE * eye)
        return torch.cholesky_solve(self.xy / self.rows, factor)


ridge = Ridge()
tic = time.perf_counter()
for r in range(ROUNDS):
    series = make_series(r)
    states = drive_reservoir(series)
    ridge.add(states[:, ::4], series[:, WASHOUT + 1::4])

readout = ridge.solve()
series = make_series(ROUNDS)
pred = drive_reservoir(series).float() @ readout
err = (pred - series[:, WASHOUT + 1:].float()).square().mean()
print(f"readout norm {readout.norm().item():.3f}  error {err.item():.4f}")
print(f"elapsed {time.perf_counter() - tic:.2f} s")
