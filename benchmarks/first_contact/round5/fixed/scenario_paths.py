"""Draw demand scenarios from a recurrent model, then report quantiles."""
import os
from typing import Iterator

import torch
from torch import Tensor, nn

FAST = os.environ.get("SMALL") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
dtype = torch.bfloat16 if device.type == "cuda" else torch.float32

PATHS = 8 if FAST else 1024
WIDTH = 16 if FAST else 1024
HORIZON = 6 if FAST else 72
ROUNDS = 30 if FAST else 200


class PathModel(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.embed = nn.Linear(1, width)
        self.cell = nn.LSTMCell(width, width)
        self.head = nn.Linear(width, 2)

    def step(self, y: Tensor, state: tuple[Tensor, Tensor]):
        h, c = self.cell(self.embed(y), state)
        mean, spread = self.head(h).chunk(2, -1)
        return mean, spread, (h, c)


@torch.inference_mode()
def draw(model: PathModel, start: Tensor, horizon: int) -> tuple[Tensor, Tensor]:
    """Ancestral sampling; returns the sampled path and the hidden states along it."""
    n = start.size(0)
    state = (start.new_zeros(n, WIDTH), start.new_zeros(n, WIDTH))
    noise = torch.randn(horizon, n, 1, device=start.device, dtype=start.dtype)
    y = start
    values = []
    trace = start.new_empty(n, horizon, WIDTH)
    for t in range(horizon):
        mean, spread, state = model.step(y, state)
        y = torch.addcmul(mean, spread, noise[t])
        values.append(y)
        trace[:, t] = state[0]
    return torch.cat(values, 1), trace


def scenario_sets(model: PathModel, rounds: int) -> Iterator[tuple[Tensor, Tensor]]:
    start = torch.rand(PATHS, 1, device=device, dtype=dtype)
    for _ in range(rounds):
        yield draw(model, start, HORIZON)


def main() -> None:
    torch.manual_seed(0)
    model = PathModel(WIDTH).to(device, dtype).eval()
    levels = torch.tensor([0.1, 0.5, 0.9], device=device)
    bands = torch.zeros(3, device=device)
    drift = torch.zeros(WIDTH, device=device)
    for k, (paths, states) in enumerate(scenario_sets(model, ROUNDS)):
        bands += torch.quantile(paths[:, -1].float(), levels)
        drift += (states[:, -1] - states[:, 0]).mean(0).float()
        if k % 100 == 99:
            print("sets", k + 1, "median", (bands[1] / (k + 1)).item())
    print("bands", [round(b, 3) for b in (bands / ROUNDS).tolist()], "drift", drift.norm().item())


if __name__ == "__main__":
    main()
