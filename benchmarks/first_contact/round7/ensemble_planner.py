"""Cross-entropy planning through an ensemble of learned dynamics models (no training here)."""

import torch

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
DTYPE = torch.bfloat16
MODELS, HIDDEN, STATE, ACTION = (5, 1024, 48, 16) if CUDA else (2, 16, 8, 8)
CANDIDATES, ELITES, HORIZON, ROUNDS, TICKS = (8192, 512, 12, 3, 60) if CUDA else (32, 8, 3, 2, 3)


class Ensemble:
    """Weights of all members in one tensor a layer, so that a layer is one batched product."""

    def __init__(self):
        sizes = [STATE + ACTION, HIDDEN, HIDDEN, HIDDEN, STATE]
        self.layers = []
        for cin, cout in zip(sizes[:-1], sizes[1:], strict=True):
            weight = torch.randn(MODELS, cin, cout, device=DEVICE) / cin**0.5
            bias = torch.zeros(MODELS, 1, cout, device=DEVICE)
            self.layers.append((weight.to(DTYPE), bias.to(DTYPE)))

    def __call__(self, state, action):
        x = torch.cat((state, action), -1)
        for i, (weight, bias) in enumerate(self.layers):
            x = torch.baddbmm(bias, x, weight)
            if i < len(self.layers) - 1:
                x = x.relu_()
        return torch.add(state, x, alpha=0.1)


def rollout(ensemble, start, plans, goal):
    state = start.expand(MODELS, CANDIDATES, STATE)
    cost = torch.zeros(MODELS, CANDIDATES, device=DEVICE)
    for k in range(HORIZON):
        state = ensemble(state, plans[:, k].expand(MODELS, CANDIDATES, ACTION))
        cost += torch.linalg.vector_norm(state - goal, dim=-1, dtype=torch.float32)
    return cost.mean(0)


def plan(ensemble, start, goal, mean):
    std = torch.full_like(mean, 0.5)
    for _ in range(ROUNDS):
        noise = torch.randn(CANDIDATES, HORIZON, ACTION, device=DEVICE)
        plans = torch.addcmul(mean, std, noise).clamp_(-1, 1)
        cost = rollout(ensemble, start, plans.to(DTYPE), goal)
        best = cost.topk(ELITES, largest=False, sorted=False)
        elites = plans[best.indices]
        std, mean = torch.std_mean(elites, 0)
    return mean, best.values.mean()


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    ensemble = Ensemble()
    start = torch.zeros(STATE, device=DEVICE, dtype=DTYPE)
    goal = torch.randn(STATE, device=DEVICE, dtype=DTYPE) * 0.2
    mean = torch.zeros(HORIZON, ACTION, device=DEVICE)
    history = torch.zeros(TICKS, device=DEVICE)
    for tick in range(TICKS):
        mean, history[tick] = plan(ensemble, start, goal, mean)
        action = mean[0].to(DTYPE).expand(MODELS, 1, ACTION)
        start = ensemble(start.expand(MODELS, 1, STATE), action).mean((0, 1))
        mean = torch.cat((mean[1:], mean[-1:]))
    print("cost of the elites", [round(c, 3) for c in history[:: max(TICKS // 5, 1)].tolist()])


main()
