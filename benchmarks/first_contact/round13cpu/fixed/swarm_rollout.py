"""A swarm of particles in a learned force field; the coverage of each rollout is scored."""
import torch
from torch import nn


class ForceField(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, hidden), nn.Tanh(), nn.Linear(hidden, 2))

    def forward(self, state):
        return self.layers(state)


class Swarm:
    def __init__(self, particles, field, dt=0.05):
        self.field = field
        self.dt = dt
        self.state = torch.empty(particles, 4)

    def reset(self, generator):
        self.state.normal_(generator=generator)

    def advance(self):
        self.state[:, 2:].mul_(0.98).add_(self.field(self.state), alpha=self.dt)
        self.state[:, :2].add_(self.state[:, 2:], alpha=self.dt)
        return self.state


class Recorder:
    """Keeps the path of the swarm so that statistics over time can be taken."""

    def __init__(self, first, horizon):
        self.path = first.new_empty(horizon + 1, *first.shape)
        self.path[0] = first
        self.used = 1

    def add(self, state):
        self.path[self.used] = state
        self.used += 1

    def coverage(self):
        positions = self.path[..., :2]
        return (positions.amax(0) - positions.amin(0)).prod(-1).mean()


def rollout(swarm, horizon):
    recorder = Recorder(swarm.state, horizon)
    for _ in range(horizon):
        recorder.add(swarm.advance())
    return recorder.coverage()


@torch.inference_mode()
def main(rollouts=90, particles=1024, horizon=160):
    torch.manual_seed(4)
    generator = torch.Generator().manual_seed(9)
    swarm = Swarm(particles, ForceField())
    scores = []
    for _ in range(rollouts):
        swarm.reset(generator)
        scores.append(rollout(swarm, horizon).item())
    print(f"mean coverage {sum(scores) / len(scores):.5f} best {max(scores):.5f}")


if __name__ == "__main__":
    main()
