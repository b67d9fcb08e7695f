"""Sampling-based planning (MPPI) through a learned dynamics model."""
import os
import torch
from torch import nn
import torch.nn.functional as F


class Dynamics(nn.Module):
    def __init__(self, obs, act, width):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(obs + act, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, obs)
        )

    def forward(self, s, a):
        return s + self.net(torch.cat((s, a), -1))


class MPPI:
    def __init__(self, model, obs, act, horizon, samples, device, lam=0.5, sigma=0.4):
        self.model = model
        self.horizon, self.samples, self.act = horizon, samples, act
        self.device, self.lam, self.sigma = device, lam, sigma
        self.plan = torch.zeros(horizon, act, device=device)
        self.goal = torch.randn(obs, device=device)

    def cost(self, s, a):
        return (s - self.goal).square().sum(-1).float() + 0.01 * a.square().sum(-1).float()

    def sample(self):
        noise = torch.randn(self.horizon, self.samples, self.act, device=self.device)
        return self.plan.unsqueeze(1) + self.sigma * noise

    @torch.inference_mode()
    def act_on(self, state):
        actions = self.sample()
        s = state.expand(self.samples, -1)
        total = torch.zeros(self.samples, device=self.device)
        with torch.autocast(self.device, torch.bfloat16):
            for t in range(self.horizon):
                s = self.model(s, actions[t])
                total += self.cost(s, actions[t])
        w = F.softmax(-total / self.lam, dim=0)
        self.plan = torch.einsum("k,hka->ha", w, actions)
        first = self.plan[0].clone()
        self.plan = self.plan.roll(-1, 0)
        self.plan[-1].zero_()
        return first


def main():
    tiny = os.environ.get("SMALL") == "1"
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    obs, act, width = (4, 2, 16) if tiny else (48, 16, 1024)
    horizon, samples, steps = (4, 32, 30) if tiny else (24, 16384, 100)
    model = Dynamics(obs, act, width).to(device).eval()
    planner = MPPI(model, obs, act, horizon, samples, device)
    state = torch.zeros(1, obs, device=device)
    for step in range(steps):
        with torch.no_grad():
            action = planner.act_on(state)
            state = model(state, action[None])
        if (step + 1) % 25 == 0:
            print("step", step + 1, "distance", (state - planner.goal).norm().item())


if __name__ == "__main__":
    main()
