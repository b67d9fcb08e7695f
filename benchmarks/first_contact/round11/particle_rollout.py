"""Roll a learned simulator of granular flow forward from many initial states and rate the paths."""
import torch
from torch import nn

CUDA = torch.cuda.is_available()
SIZES = dict(runs=16384, dim=64, hidden=1024, horizon=64, rounds=120)
if not CUDA:
    SIZES = dict(runs=16, dim=8, hidden=16, horizon=6, rounds=3)


class Dynamics(nn.Module):
    """Residual next-state model in bfloat16; the state itself stays in float32."""

    def __init__(self, dim, hidden):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(dim, hidden), nn.ReLU(inplace=True),
            nn.Linear(hidden, hidden), nn.ReLU(inplace=True),
            nn.Linear(hidden, dim),
        ).to(torch.bfloat16)

    def forward(self, state):
        return state.add(self.net(state.to(torch.bfloat16)), alpha=0.1)


class Simulator:
    def __init__(self, dynamics, horizon):
        self.dynamics = dynamics
        self.horizon = horizon

    def paths(self, start):
        """States of every run at every time: runs x (horizon + 1) x dim."""
        state = start
        path = state.unsqueeze(1)
        for _ in range(self.horizon):
            state = self.dynamics(state)
            path = torch.cat([path, state.unsqueeze(1)], dim=1)  # flaw: cat-in-loop
        return path


def initial_states(sizes, device):
    gen = torch.Generator(device).manual_seed(31)
    for _ in range(sizes["rounds"]):
        yield torch.randn(sizes["runs"], sizes["dim"], generator=gen, device=device)


def rate(path):
    """Displacement from start to end relative to the largest excursion of the first coordinate."""
    moved = torch.linalg.vector_norm(path[:, -1] - path[:, 0], dim=1)
    low, high = torch.aminmax(path[:, :, 0], dim=1)
    return moved / (high - low + 1e-3)


@torch.no_grad()
def main():
    device = torch.device("cuda" if CUDA else "cpu")
    torch.manual_seed(30)
    dynamics = Dynamics(SIZES["dim"], SIZES["hidden"]).to(device).eval()
    simulator = Simulator(dynamics, SIZES["horizon"])
    ratings = []
    for start in initial_states(SIZES, device):
        ratings.append(rate(simulator.paths(start)).mean())
    ratings = torch.stack(ratings).cpu()
    print(f"{len(ratings)} rounds, rating {ratings.mean().item():.4f} +- {ratings.std().item():.4f}")


if __name__ == "__main__":
    main()
