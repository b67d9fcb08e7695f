"""Conservative Q-learning from a fixed replay file held in host memory."""

import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

GPU = torch.cuda.is_available()
device = torch.device("cuda" if GPU else "cpu")

OBS, ACT = (256, 16) if GPU else (8, 2)
WIDTH = 2048 if GPU else 32
SIZE = 200_000 if GPU else 1000
BATCH = 16384 if GPU else 32
UPDATES = 220 if GPU else 6
GAMMA, TAU, ALPHA = 0.99, 0.005, 1.0


class ReplayFile:
    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.obs = self.rng.standard_normal((SIZE + 1, OBS), dtype=np.float32)
        self.act = self.rng.uniform(-1, 1, (SIZE, ACT)).astype(np.float32)
        self.rew = self.rng.standard_normal(SIZE, dtype=np.float32)
        self.done = (self.rng.random(SIZE) < 0.01).astype(np.float32)

    def sample(self, n):
        i = self.rng.integers(0, SIZE, n)
        arrays = (self.obs[i], self.act[i], self.rew[i], self.obs[i + 1], self.done[i])
        tensors = [torch.from_numpy(a) for a in arrays]
        if GPU:
            tensors = [t.pin_memory().to(device, non_blocking=True) for t in tensors]
        return tensors


def mlp(n_in, n_out):
    return nn.Sequential(
        nn.Linear(n_in, WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, n_out),
    )


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.q1, self.q2 = mlp(OBS + ACT, 1), mlp(OBS + ACT, 1)

    def forward(self, obs, act):
        x = torch.cat([obs, act], dim=-1)
        return self.q1(x).squeeze(-1), self.q2(x).squeeze(-1)


class CQL:
    def __init__(self):
        self.actor = mlp(OBS, ACT).to(device)
        self.critic = Critic().to(device)
        self.target = copy.deepcopy(self.critic).requires_grad_(False)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=1e-4, fused=True)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=3e-4, fused=True)

    def update(self, batch):
        obs, act, rew, next_obs, done = batch
        with torch.autocast(device.type, dtype=torch.bfloat16):
            with torch.no_grad():
                next_act = torch.tanh(self.actor(next_obs))
                next_q = torch.min(*self.target(next_obs, next_act)).float()
                y = rew + GAMMA * (1 - done) * next_q
            q1, q2 = self.critic(obs, act)
            random = torch.rand_like(act) * 2 - 1
            r1, r2 = self.critic(obs, random)
            bellman = F.mse_loss(q1.float(), y) + F.mse_loss(q2.float(), y)
            gap = (r1 - q1).float().mean() + (r2 - q2).float().mean()
            critic_loss = bellman + ALPHA * gap
        self.critic_opt.zero_grad(set_to_none=True)
        critic_loss.backward()
        self.critic_opt.step()

        self.critic.requires_grad_(False)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            policy = torch.tanh(self.actor(obs))
            actor_loss = -torch.min(*self.critic(obs, policy)).float().mean()
        self.actor_opt.zero_grad(set_to_none=True)
        actor_loss.backward()
        self.actor_opt.step()
        self.critic.requires_grad_(True)

        with torch.no_grad():
            torch._foreach_lerp_(list(self.target.parameters()), list(self.critic.parameters()), TAU)
        return {
            "bellman": bellman.item(),  # flaw: sync-in-step
            "gap": gap.item(),  # flaw: sync-in-step
            "actor": actor_loss.item(),  # flaw: sync-in-step
        }


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    replay, agent = ReplayFile(), CQL()
    sums = {}
    for update in range(1, UPDATES + 1):
        for name, value in agent.update(replay.sample(BATCH)).items():
            sums[name] = sums.get(name, 0.0) + value
        if update % 50 == 0 or update == UPDATES:
            print(update, {k: f"{float(v) / update:.4f}" for k, v in sums.items()})


if __name__ == "__main__":
    main()
