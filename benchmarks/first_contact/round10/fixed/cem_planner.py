"""Plan with the cross-entropy method in a learned world model (no training here)."""

from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()


@dataclass(frozen=True)
class PlannerConfig:
    state: int = 64 if CUDA else 4
    action: int = 8 if CUDA else 2
    hidden: int = 1024 if CUDA else 16
    candidates: int = 8192 if CUDA else 32
    elites: int = 512 if CUDA else 4
    horizon: int = 16 if CUDA else 4
    iterations: int = 4
    episode: int = 200 if CUDA else 5
    momentum: float = 0.1


class WorldModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.inp = nn.Linear(cfg.state + cfg.action, cfg.hidden)
        self.mid = nn.Linear(cfg.hidden, cfg.hidden)
        self.mid2 = nn.Linear(cfg.hidden, cfg.hidden)
        self.delta = nn.Linear(cfg.hidden, cfg.state)
        self.reward = nn.Linear(cfg.hidden, 1)

    def forward(self, state, action):
        h = F.silu(self.inp(torch.cat([state, action], dim=-1)))
        h = F.silu(self.mid(h))
        h = F.silu(self.mid2(h))
        return state + self.delta(h), self.reward(h).squeeze(-1)


class CEMPlanner:
    def __init__(self, cfg, model, device, dtype):
        self.cfg, self.model, self.device, self.dtype = cfg, model, device, dtype
        self.reset()

    def reset(self):
        shape = (self.cfg.horizon, self.cfg.action)
        self.mean = torch.zeros(shape, device=self.device)

    def returns(self, state, actions):
        state = state.expand(self.cfg.candidates, -1)
        total = torch.zeros(self.cfg.candidates, device=self.device)
        for t in range(self.cfg.horizon):
            state, reward = self.model(state, actions[t])
            total += reward
        return total

    def sample(self, mean, std):
        cfg = self.cfg
        shape = (cfg.horizon, cfg.candidates, cfg.action)
        noise = torch.randn(shape, device=self.device)
        return (mean[:, None] + std[:, None] * noise).clamp(-1.0, 1.0)

    def plan(self, state):
        cfg = self.cfg
        mean, std = self.mean, torch.full_like(self.mean, 0.5)
        for _ in range(cfg.iterations):
            actions = self.sample(mean, std)
            scores = self.returns(state, actions.to(self.dtype))
            best = scores.topk(cfg.elites, sorted=False).indices
            new_std, new_mean = torch.std_mean(actions[:, best], dim=1)
            mean = torch.lerp(new_mean, mean, cfg.momentum)
            std = torch.lerp(new_std, std, cfg.momentum)
        self.mean = torch.cat([mean[1:], torch.zeros_like(mean[:1])])
        return mean[0]


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    cfg = PlannerConfig()
    device = torch.device("cuda" if CUDA else "cpu")
    dtype = torch.bfloat16 if CUDA else torch.float32
    model = WorldModel(cfg).to(device, dtype).eval()
    planner = CEMPlanner(cfg, model, device, dtype)
    state = torch.zeros(1, cfg.state, device=device, dtype=dtype)
    rewards = torch.zeros(cfg.episode, device=device)
    for step in range(cfg.episode):
        action = planner.plan(state)
        state, reward = model(state, action[None].to(dtype))
        rewards[step] = reward[0]
    print(f"return {rewards.sum().item():.3f} over {cfg.episode} steps")


if __name__ == "__main__":
    main()
