"""Implicit Q-learning; the whole offline data set lies on the device."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
OBS, ACT, WIDTH = (64, 8, 2048) if CUDA else (6, 2, 32)
ROWS = 1_000_000 if CUDA else 500
BATCH = 16384 if CUDA else 32
UPDATES = 300 if CUDA else 6
GAMMA, TAU, EXPECTILE, BETA = 0.99, 0.005, 0.8, 3.0


def network(n_in, n_out):
    return nn.Sequential(
        nn.Linear(n_in, WIDTH),
        nn.ReLU(inplace=True),
        nn.Linear(WIDTH, WIDTH),
        nn.ReLU(inplace=True),
        nn.Linear(WIDTH, WIDTH),
        nn.ReLU(inplace=True),
        nn.Linear(WIDTH, n_out),
    )


class DataSet:
    def __init__(self):
        self.obs = torch.randn(ROWS, OBS, device=DEVICE)
        self.act = torch.rand(ROWS, ACT, device=DEVICE) * 2 - 1
        self.rew = -torch.rand(ROWS, device=DEVICE)
        self.done = (torch.rand(ROWS, device=DEVICE) < 0.01).float()

    def sample(self, n):
        i = torch.randint(ROWS - 1, (n,), device=DEVICE)
        return self.obs[i], self.act[i], self.rew[i], self.obs[i + 1], self.done[i]


class IQL:
    def __init__(self):
        self.policy = network(OBS, ACT).to(DEVICE)
        self.value = network(OBS, 1).to(DEVICE)
        self.critics = nn.ModuleList(network(OBS + ACT, 1) for _ in range(2)).to(DEVICE)
        self.targets = copy.deepcopy(self.critics).requires_grad_(False)
        parameters = [
            *self.policy.parameters(),
            *self.value.parameters(),
            *self.critics.parameters(),
        ]
        self.optimizer = torch.optim.Adam(parameters, lr=3e-4, fused=True)

    def losses(self, obs, act, rew, next_obs, done):
        pair = torch.cat([obs, act], dim=-1)
        with torch.no_grad():
            target_q = torch.min(*(t(pair).squeeze(-1).float() for t in self.targets))
            next_v = self.value(next_obs).squeeze(-1).float()
            bellman = rew + GAMMA * (1 - done) * next_v
        v = self.value(obs).squeeze(-1).float()
        advantage = target_q - v
        weight = torch.where(advantage > 0, EXPECTILE, 1 - EXPECTILE)
        value_loss = (weight * advantage**2).mean()
        q_loss = sum(F.mse_loss(q(pair).squeeze(-1).float(), bellman) for q in self.critics)
        with torch.no_grad():
            importance = (BETA * advantage).exp().clamp(max=100.0)
        error = F.mse_loss(torch.tanh(self.policy(obs)).float(), act, reduction="none").sum(-1)
        return value_loss + q_loss + (importance * error).mean()

    def update(self, batch):
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            loss = self.losses(*batch)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            slow, fast = list(self.targets.parameters()), list(self.critics.parameters())
            torch._foreach_lerp_(slow, fast, TAU)
        return loss.detach()


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    data, agent = DataSet(), IQL()
    for update in range(UPDATES):
        loss = agent.update(data.sample(BATCH))
        if update % 100 == 0 or update == UPDATES - 1:
            print(f"update {update}: loss {loss.item():.4f}")
