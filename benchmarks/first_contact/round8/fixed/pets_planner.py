"""PETS: cross-entropy planning through an ensemble of probabilistic dynamics models."""

import torch
import torch.nn.functional as F
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
gpu = device.type == "cuda"
dtype = torch.bfloat16 if gpu else torch.float32

ENSEMBLE = 20 if gpu else 3
PARTICLES = 4096 if gpu else 64
HIDDEN = 512 if gpu else 16
HORIZON = 15 if gpu else 4
CEM_ROUNDS = 2
EPISODE = 100 if gpu else 8
OBS, ACT, ELITES = 48, 16, 0.1


class EnsembleLinear(nn.Module):
    def __init__(self, members, fan_in, fan_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(members, fan_in, fan_out) / fan_in**0.5)
        self.bias = nn.Parameter(torch.zeros(members, 1, fan_out))

    def forward(self, x):
        return torch.baddbmm(self.bias, x, self.weight)


class DynamicsEnsemble(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [OBS + ACT, HIDDEN, HIDDEN, HIDDEN]
        pairs = zip(sizes[:-1], sizes[1:], strict=True)
        self.trunk = nn.ModuleList(EnsembleLinear(ENSEMBLE, i, o) for i, o in pairs)
        self.mean = EnsembleLinear(ENSEMBLE, HIDDEN, OBS)

    def forward(self, obs, act):
        h = torch.cat((obs, act), dim=-1)
        for layer in self.trunk:
            h = F.silu(layer(h))
        return torch.add(obs, self.mean(h), alpha=0.1)


def evaluate(model, obs, plans, goal):
    """Cost of each candidate plan, averaged over the ensemble."""
    state = obs.expand(ENSEMBLE, PARTICLES, OBS)
    cost = torch.zeros(ENSEMBLE, PARTICLES, device=device)
    for t in range(HORIZON):
        state = model(state, plans[t].expand(ENSEMBLE, -1, -1))
        cost += torch.linalg.vector_norm(state - goal, dim=-1)
    return cost.mean(dim=0)


def cem(model, obs, goal, mean):
    std = torch.full_like(mean, 0.5)
    for _ in range(CEM_ROUNDS):
        noise = torch.randn(HORIZON, PARTICLES, ACT, device=device, dtype=dtype)
        plans = torch.addcmul(mean[:, None], noise, std[:, None]).clamp_(-1, 1)
        cost = evaluate(model, obs, plans, goal)
        elite = cost.topk(int(PARTICLES * ELITES), largest=False).indices
        std, mean = torch.std_mean(plans[:, elite], dim=1)
    return mean


torch.manual_seed(7)
with torch.inference_mode():
    model = DynamicsEnsemble().to(device, dtype)
    obs = torch.zeros(OBS, device=device, dtype=dtype)
    goal = torch.linspace(-1, 1, OBS, device=device, dtype=dtype)
    plan = torch.zeros(HORIZON, ACT, device=device, dtype=dtype)
    path = torch.empty(EPISODE, OBS, device=device, dtype=dtype)
    for step in range(EPISODE):
        plan = cem(model, obs, goal, plan)
        member = step % ENSEMBLE
        everyone = model(obs.expand(ENSEMBLE, 1, OBS), plan[0].expand(ENSEMBLE, 1, ACT))
        obs = everyone[member, 0]
        path[step] = obs
        plan = plan.roll(-1, dims=0)
    print("distance", (path[-1] - goal).float().norm().item(), "travelled", path.float().abs().sum().item())
