"""Model predictive path integral control with a learned residual dynamics network."""

import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
DTYPE = torch.bfloat16 if CUDA else torch.float32
STATE, ACTION, HIDDEN = (48, 16, 1024) if CUDA else (12, 4, 16)
SAMPLES, HORIZON = (32_768, 32) if CUDA else (32, 4)
CONTROL_STEPS = 250 if CUDA else 5
TEMPERATURE, NOISE = 0.5, 0.4


class Dynamics(nn.Module):
    """Change of the state for a (state, action) row."""

    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(STATE + ACTION, HIDDEN)
        self.mid1 = nn.Linear(HIDDEN, HIDDEN)
        self.mid2 = nn.Linear(HIDDEN, HIDDEN)
        self.out = nn.Linear(HIDDEN, STATE)

    def forward(self, row):
        h = self.inp(row).relu_()
        h = self.mid1(h).relu_()
        h = self.mid2(h).relu_()
        return self.out(h)


class Planner:
    def __init__(self, model):
        self.model = model
        self.plan = torch.zeros(HORIZON, 1, ACTION, device=DEVICE, dtype=DTYPE)
        self.goal = torch.zeros(STATE, device=DEVICE, dtype=DTYPE)
        self.row = torch.empty(SAMPLES, STATE + ACTION, device=DEVICE, dtype=DTYPE)
        self.noise = torch.empty(HORIZON, SAMPLES, ACTION, device=DEVICE, dtype=DTYPE)

    def rollout(self, state, actions):
        """Cost of each action sequence from the same state, (SAMPLES,) in float32."""
        states, moves = self.row[:, :STATE], self.row[:, STATE:]
        states.copy_(state.expand(SAMPLES, -1))
        cost = torch.zeros(SAMPLES, device=DEVICE)
        for action in actions:
            moves.copy_(action)
            states.add_(self.model(self.row), alpha=0.1)
            cost += F.mse_loss(states, self.goal.expand_as(states), reduction="none").sum(
                dim=1, dtype=torch.float32
            )
        return cost

    def command(self, state):
        self.noise.normal_(std=NOISE)
        actions = (self.plan + self.noise).clamp_(-1.0, 1.0)
        weights = torch.softmax(-self.rollout(state, actions) / TEMPERATURE, dim=0)
        self.plan = torch.einsum("s,hsa->ha", weights.to(DTYPE), actions)[:, None]
        first = self.plan[0, 0].clone()
        self.plan = torch.cat([self.plan[1:], torch.zeros_like(self.plan[:1])])
        return first


@torch.inference_mode()
def drive():
    torch.manual_seed(0)
    model = Dynamics().to(DEVICE, DTYPE).eval()
    planner = Planner(model)
    state = torch.randn(STATE, device=DEVICE, dtype=DTYPE)
    distance = torch.zeros(CONTROL_STEPS, device=DEVICE)
    for t in range(CONTROL_STEPS):
        action = planner.command(state)
        change = model(torch.cat([state, action])[None]).squeeze(0)
        state = state + 0.1 * change + 0.01 * torch.randn_like(state)
        distance[t] = torch.linalg.vector_norm(state.float())
    return distance


if __name__ == "__main__":
    path = drive().cpu()
    print(f"distance to the goal: start {path[0]:.4f}, end {path[-1]:.4f}")
