"""Implicit Q-learning on a fixed data set, transitions drawn by the return of their episode."""

import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
OBS, ACT = 64, 8
SIZE = 1_000_000 if CUDA else 2_000
BATCH = 32_768 if CUDA else 64
HIDDEN = 1536 if CUDA else 32
UPDATES = 250 if CUDA else 10
EXPECTILE, BETA, GAMMA, TAU = 0.7, 3.0, 0.99, 0.005


def mlp(inputs, outputs):
    return nn.Sequential(
        nn.Linear(inputs, HIDDEN),
        nn.ReLU(inplace=True),
        nn.Linear(HIDDEN, HIDDEN),
        nn.ReLU(inplace=True),
        nn.Linear(HIDDEN, HIDDEN),
        nn.ReLU(inplace=True),
        nn.Linear(HIDDEN, outputs),
    )


class TwinQ(nn.Module):
    def __init__(self):
        super().__init__()
        self.q1, self.q2 = mlp(OBS + ACT, 1), mlp(OBS + ACT, 1)

    def forward(self, obs, act):
        x = torch.cat([obs, act], dim=-1)
        return self.q1(x).squeeze(-1), self.q2(x).squeeze(-1)


class Dataset:
    """Transitions on the device; the host keeps the cumulative weights to draw from."""

    def __init__(self, seed=0):
        g = torch.Generator(device=DEVICE).manual_seed(seed)
        self.obs = torch.randn(SIZE, OBS, generator=g, device=DEVICE)
        self.act = torch.randn(SIZE, ACT, generator=g, device=DEVICE).tanh_()
        self.reward = torch.randn(SIZE, generator=g, device=DEVICE)
        self.done = (torch.rand(SIZE, generator=g, device=DEVICE) < 0.01).float()
        self.rng = np.random.default_rng(seed)
        returns = np.repeat(self.rng.normal(size=SIZE // 100), 100)
        self.cdf = np.cumsum(np.exp(returns / 2))
        self.cdf /= self.cdf[-1]

    def sample(self, n):
        index = torch.from_numpy(np.searchsorted(self.cdf, self.rng.random(n)))
        if CUDA:
            index = index.pin_memory().to(DEVICE, non_blocking=True)
        index.clamp_(max=SIZE - 2)
        return (
            self.obs[index],
            self.act[index],
            self.reward[index],
            self.obs[index + 1],
            self.done[index],
        )


class IQL:
    def __init__(self):
        self.q, self.v, self.pi = TwinQ().to(DEVICE), mlp(OBS, 1).to(DEVICE), mlp(OBS, ACT).to(DEVICE)
        self.q_target = copy.deepcopy(self.q).requires_grad_(False)
        self.optimizers = [
            torch.optim.Adam(net.parameters(), lr=3e-4, fused=CUDA)
            for net in (self.v, self.q, self.pi)
        ]
        self.online, self.target = list(self.q.parameters()), list(self.q_target.parameters())

    def apply(self, loss, optimizer):
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    def update(self, obs, act, reward, next_obs, done):
        v_opt, q_opt, pi_opt = self.optimizers
        with torch.no_grad(), torch.autocast(DEVICE.type, dtype=torch.bfloat16, enabled=CUDA):
            best = torch.minimum(*self.q_target(obs, act)).float()
            next_v = self.v(next_obs).squeeze(-1).float()
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16, enabled=CUDA):
            v = self.v(obs).squeeze(-1).float()
            adv = best - v
            weight = torch.where(adv > 0, EXPECTILE, 1 - EXPECTILE)
            v_loss = (weight * adv.square()).mean()
        self.apply(v_loss, v_opt)

        backup = reward + GAMMA * (1 - done) * next_v
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16, enabled=CUDA):
            q1, q2 = self.q(obs, act)
            q_loss = F.mse_loss(q1.float(), backup) + F.mse_loss(q2.float(), backup)
        self.apply(q_loss, q_opt)
        with torch.no_grad():
            torch._foreach_lerp_(self.target, self.online, TAU)

        with torch.autocast(DEVICE.type, dtype=torch.bfloat16, enabled=CUDA):
            error = (self.pi(obs).float().tanh() - act).square().sum(-1)
            pi_loss = (torch.exp(BETA * adv.detach()).clamp(max=100.0) * error).mean()
        self.apply(pi_loss, pi_opt)
        return {"v": v_loss.detach(), "q": q_loss.detach(), "pi": pi_loss.detach()}


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    data, agent = Dataset(), IQL()
    history = []
    for step in range(UPDATES):
        history.append(agent.update(*data.sample(BATCH)))
        if (step + 1) % 50 == 0 or step + 1 == UPDATES:
            recent = history[-10:]
            means = {k: sum(float(h[k]) for h in recent) / len(recent) for k in recent[0]}
            print(step + 1, " ".join(f"{k} {value:.4f}" for k, value in means.items()))


if __name__ == "__main__":
    main()
