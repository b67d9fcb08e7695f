"""Fitted value estimation with a very deep, thin residual critic."""
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")
dev = "cuda" if torch.cuda.is_available() else "cpu"
small = os.environ.get("SMALL") == "1"
OBS = 16
WIDTH = 16 if small else 128
DEPTH = 3 if small else 64
BATCH = 16 if small else 512
STEPS = 30 if small else 200
GAMMA = 0.99


class Res(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.norm = nn.LayerNorm(w)
        self.l1 = nn.Linear(w, w)
        self.l2 = nn.Linear(w, w)

    def forward(self, x):
        return x + self.l2(F.relu(self.l1(self.norm(x))))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(OBS, WIDTH)
        self.blocks = nn.Sequential(*[Res(WIDTH) for _ in range(DEPTH)])
        self.v = nn.Linear(WIDTH, 1)

    def forward(self, obs):
        return self.v(self.blocks(self.inp(obs))).squeeze(-1)


def main():
    torch.manual_seed(0)
    critic = Critic().to(dev)
    opt = torch.optim.Adam(critic.parameters(), lr=3e-4, fused=True)
    obs = torch.randn(BATCH * 16, OBS, device=dev)
    nxt = obs + 0.1 * torch.randn_like(obs)
    rew = -obs.norm(dim=-1)
    with torch.no_grad():
        target = torch.cat([r + GAMMA * critic(n) for r, n in zip(rew.split(BATCH), nxt.split(BATCH))])
    if dev == "cuda":
        critic = torch.cuda.make_graphed_callables(critic, (torch.randn(BATCH, OBS, device=dev),))
    for i in range(STEPS):
        j = (i % 16) * BATCH
        loss = F.smooth_l1_loss(critic(obs[j:j + BATCH]), target[j:j + BATCH])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 50 == 0:
            print("update", i, "td", loss.item())


if __name__ == "__main__":
    main()
