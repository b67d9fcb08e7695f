"""Evolution strategies (OpenAI-ES): antithetic perturbations of a policy, rolled out in one batch."""

import torch

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
DTYPE = torch.bfloat16 if CUDA else torch.float32

STATE, ACTION, HIDDEN = (64, 16, 256) if CUDA else (8, 2, 16)
PAIRS = 64 if CUDA else 4
WORLDS = 1024 if CUDA else 4
HORIZON = 60 if CUDA else 5
GENERATIONS = 160 if CUDA else 4
SIGMA, LR, DECAY = 0.05, 0.02, 0.005

SHAPES = [(STATE, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, ACTION)]
SIZE = sum(a * b for a, b in SHAPES)


class Walker:
    """Many worlds with the same nonlinear dynamics, stepped together for all the policies."""

    def __init__(self):
        drift = torch.randn(STATE, STATE, device=DEVICE) / STATE**0.5
        self.drift = (drift - drift.t() - 0.2 * torch.eye(STATE, device=DEVICE)).to(DTYPE)
        self.push = torch.randn(ACTION, STATE, device=DEVICE).to(DTYPE) / ACTION**0.5
        self.target = torch.randn(STATE, device=DEVICE, dtype=DTYPE)

    def reset(self, policies):
        start = torch.randn(1, WORLDS, STATE, device=DEVICE, dtype=DTYPE)
        return start.expand(policies, -1, -1).contiguous()

    def step(self, state, action):
        flat = state.view(-1, STATE)
        flow = torch.addmm(flat @ self.drift, action.reshape(-1, ACTION), self.push)
        flow = flow.view_as(state).tanh_()
        return torch.add(state, flow, alpha=0.1)

    def reward(self, state):
        return -torch.cdist(state.float(), self.target.float()[None], p=2.0).mean(dim=(1, 2))


def unflatten(population):
    """(policies, SIZE) -> one (policies, in, out) tensor for each layer."""
    parts = population.split([a * b for a, b in SHAPES], dim=1)
    return [part.reshape(-1, *shape).to(DTYPE) for part, shape in zip(parts, SHAPES)]


def act(weights, state):
    for w in weights[:-1]:
        state = torch.bmm(state, w).relu_()
    return torch.bmm(state, weights[-1]).tanh_()


def rollout(world, population):
    weights = unflatten(population)
    state = world.reset(len(population))
    fitness = torch.zeros(len(population), device=DEVICE)
    for t in range(HORIZON):
        state = world.step(state, act(weights, state))
        if t % 10 == 9:
            fitness += world.reward(state)
    return fitness + world.reward(state)


def centered_ranks(fitness):
    ranks = fitness.argsort().argsort().float()
    return ranks / (len(fitness) - 1) - 0.5


@torch.inference_mode()
def evolve():
    torch.manual_seed(0)
    world = Walker()
    theta = torch.randn(SIZE, device=DEVICE) * 0.05
    velocity = torch.zeros_like(theta)
    history = torch.zeros(GENERATIONS, device=DEVICE)
    for generation in range(GENERATIONS):
        noise = torch.randn(PAIRS, SIZE).to(DEVICE)  # flaw: tensor-made-on-host
        population = torch.cat([theta + SIGMA * noise, theta - SIGMA * noise])
        fitness = rollout(world, population)
        history[generation] = fitness.mean()
        shaped = centered_ranks(fitness)
        gradient = (shaped[:PAIRS] - shaped[PAIRS:]) @ noise / (2 * PAIRS * SIGMA)
        velocity.mul_(0.9).add_(gradient - DECAY * theta)
        theta += LR * velocity
        if (generation + 1) % 25 == 0:
            print(f"generation {generation + 1}: fitness {history[generation].item():.4f}")
    return history


if __name__ == "__main__":
    torch.set_float32_matmul_precision("high")
    curve = evolve().cpu()
    print(f"first {curve[0].item():.4f}, last {curve[-1].item():.4f}")
