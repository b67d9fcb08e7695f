"""Evolution strategies for a cart-pole policy; the whole population is simulated at once."""

import torch

CUDA = torch.cuda.is_available()
device = torch.device("cuda" if CUDA else "cpu")

POPULATION = 1024 if CUDA else 32
EPISODES = 8 if CUDA else 2
STEPS = 100 if CUDA else 10
HIDDEN = 32 if CUDA else 8
GENERATIONS = 300 if CUDA else 4
SIGMA, LR = 0.1, 0.05
SIZES = {"w1": (4, HIDDEN), "b1": (1, HIDDEN), "w2": (HIDDEN, 1), "b2": (1, 1)}

GRAVITY, CART, POLE, HALF, FORCE, DT = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
TOTAL = CART + POLE


def unflatten(theta):
    parts, offset = {}, 0
    for name, (a, b) in SIZES.items():
        parts[name] = theta[:, offset : offset + a * b].reshape(-1, a, b)
        offset += a * b
    return parts


def env_step(state, force):
    x, x_dot, angle, angle_dot = state.unbind(-1)
    cos, sin = torch.cos(angle), torch.sin(angle)
    push = (force + POLE * HALF * angle_dot**2 * sin) / TOTAL
    angle_acc = (GRAVITY * sin - cos * push) / (HALF * (4 / 3 - POLE * cos**2 / TOTAL))
    x_acc = push - POLE * HALF * angle_acc * cos / TOTAL
    return torch.stack(
        [x + DT * x_dot, x_dot + DT * x_acc, angle + DT * angle_dot, angle_dot + DT * angle_acc],
        dim=-1,
    )


def rollout(theta, state):
    """Mean number of steps that each member's pole stays up."""
    p = unflatten(theta)
    alive = torch.ones(state.shape[:2], device=device)
    total = torch.zeros(state.shape[:2], device=device)
    for _ in range(STEPS):
        hidden = torch.tanh(torch.baddbmm(p["b1"], state, p["w1"]))
        force = FORCE * torch.tanh(torch.baddbmm(p["b2"], hidden, p["w2"])).squeeze(-1)
        state = env_step(state, force)
        alive = alive * ((state[..., 0].abs() < 2.4) & (state[..., 2].abs() < 0.21))
        total = total + alive
    return total.mean(dim=1)


class GraphedRollout:
    """The rollout as one CUDA graph: its kernels are too short to launch one by one."""

    def __init__(self, theta, state):
        self.theta, self.state = theta.clone(), state.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                rollout(self.theta, self.state)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.result = rollout(self.theta, self.state)

    def __call__(self, theta, state):
        self.theta.copy_(theta)
        self.state.copy_(state)
        self.graph.replay()
        return self.result


def rank_weights(fitness):
    ranks = fitness.argsort().argsort().float()
    return ranks / (len(ranks) - 1) - 0.5


@torch.no_grad()
def evolve():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    size = sum(a * b for a, b in SIZES.values())
    mean = torch.zeros(1, size, device=device)
    simulate = rollout
    if CUDA:
        blank = torch.zeros(POPULATION, EPISODES, 4, device=device)
        simulate = GraphedRollout(mean.repeat(POPULATION, 1), blank)
    for generation in range(GENERATIONS):
        half = torch.randn(POPULATION // 2, size, device=device)
        noise = torch.cat([half, -half])
        start = (torch.rand(1, EPISODES, 4, device=device) - 0.5) * 0.1
        start = start.expand(POPULATION, -1, -1)
        fitness = simulate(mean + SIGMA * noise, start)
        mean += LR / (POPULATION * SIGMA) * rank_weights(fitness) @ noise
        if generation % 50 == 0 or generation == GENERATIONS - 1:
            print(f"generation {generation}: mean {fitness.mean().item():.2f}")


if __name__ == "__main__":
    evolve()
