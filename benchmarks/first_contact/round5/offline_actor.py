"""Advantage-weighted regression on a fixed set of logged transitions."""
import gc
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

small = os.environ.get("SMALL") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
OBS, ACT = 32, 8
HIDDEN = 32 if small else 1536
BATCH = 64 if small else 16384
UPDATES = 30 if small else 80
SIZE = 2_000 if small else 400_000


def net(inp, out):
    return nn.Sequential(nn.Linear(inp, HIDDEN), nn.LayerNorm(HIDDEN), nn.GELU(),
                         nn.Linear(HIDDEN, HIDDEN), nn.LayerNorm(HIDDEN), nn.GELU(),
                         nn.Linear(HIDDEN, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, out)).to(device)


class LoggedData:
    def __init__(self):
        self.obs = torch.randn(SIZE, OBS, device=device)
        self.act = torch.tanh(torch.randn(SIZE, ACT, device=device))
        self.ret = self.obs[:, :4].sum(1) + self.act[:, 0]

    def draw(self, n):
        idx = torch.randint(SIZE, (n,), device=device)
        return self.obs[idx], self.act[idx], self.ret[idx]


class AWR:
    def __init__(self, beta=1.0):
        self.value, self.policy = net(OBS, 1), net(OBS, ACT)
        self.opt = torch.optim.AdamW([*self.value.parameters(), *self.policy.parameters()], lr=3e-4, fused=True)
        self.beta = beta

    def losses(self, obs, act, ret):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            v = self.value(obs).squeeze(-1).float()
            mean = torch.tanh(self.policy(obs)).float()
        weight = torch.exp((ret - v.detach()) / self.beta).clamp(max=20.0)
        v_loss = F.mse_loss(v, ret)
        p_loss = (weight * (mean - act).square().sum(-1)).mean()
        return v_loss, p_loss

    def update(self, batch):
        v_loss, p_loss = self.losses(*batch)
        (v_loss + p_loss).backward()
        self.opt.step()
        self.opt.zero_grad()
        return torch.stack((v_loss.detach(), p_loss.detach()))


def tidy_up(step, stats):
    if len(stats) > 16:
        del stats[:-16]
    gc.collect()  # flaw: gc-pause-in-step
    if step % 20 == 0:
        v, p = torch.stack(stats).mean(0).tolist()
        print(f"update {step:3d}  value {v:.3f}  policy {p:.3f}")


def main():
    torch.manual_seed(0)
    data, agent, stats = LoggedData(), AWR(), []
    for step in range(UPDATES):
        stats.append(agent.update(data.draw(BATCH)))
        tidy_up(step, stats)


if __name__ == "__main__":
    main()
