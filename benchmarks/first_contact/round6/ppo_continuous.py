"""PPO on a batched simulator on the device; all minibatches come from one permutation per update."""
import os
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class PPO:
    envs: int = 16384
    obs: int = 128
    act: int = 16
    width: int = 2048
    horizon: int = 16
    minibatches: int = 8
    updates: int = 12
    clip: float = 0.2


class ActorCritic(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(c.obs, c.width), nn.SiLU(), nn.Linear(c.width, c.width), nn.SiLU())
        self.head = nn.Linear(c.width, c.act + 8)  # means, then the value in the first of eight slots
        self.spread = nn.Parameter(torch.full((c.act,), -0.5))
        self.act = c.act

    def forward(self, x):
        mean, value = self.head(self.trunk(x)).float().split([self.act, 8], -1)
        return mean, value[:, 0]

    def logp(self, mean, action):
        z = (action - mean) * torch.exp(-self.spread)
        return -(0.5 * z.square() + self.spread).sum(-1)


class Cart:
    def __init__(self, c, device):
        self.a = torch.randn(c.obs, c.obs, device=device) / c.obs**0.5
        self.b = torch.randn(c.act, c.obs, device=device) / c.act**0.5

    def __call__(self, x, u):
        x = torch.tanh(x @ self.a + u @ self.b)
        return x, -x.square().mean(1)


@torch.no_grad()
def collect(c, net, world, x, device):
    keep = {k: [] for k in ("x", "u", "logp", "value", "reward")}
    for _ in range(c.horizon):
        with torch.autocast(device, torch.bfloat16):
            mean, value = net(x)
        u = mean + torch.randn_like(mean) * net.spread.exp()
        nxt, reward = world(x, u)
        for k, t in zip(keep, (x, u, net.logp(mean, u), value, reward)):
            keep[k].append(t)
        x = nxt
    keep = {k: torch.stack(v) for k, v in keep.items()}
    ret, running = [], keep["value"][-1]
    for r in reversed(keep.pop("reward").unbind(0)):
        running = r + 0.97 * running
        ret.append(running)
    keep["ret"] = torch.stack(ret[::-1])
    return x, {k: v.flatten(0, 1) for k, v in keep.items()}


def improve(c, net, opt, data, device):
    order = torch.randperm(len(data["x"]), device=device)
    for part in order.chunk(c.minibatches):
        b = {k: v[part] for k, v in data.items()}
        with torch.autocast(device, torch.bfloat16):
            mean, value = net(b["x"])
        gain = b["ret"] - b["value"]
        gain = (gain - gain.mean()) / (gain.std() + 1e-6)
        ratio = torch.exp(net.logp(mean, b["u"]) - b["logp"])
        surrogate = torch.minimum(ratio * gain, ratio.clamp(1 - c.clip, 1 + c.clip) * gain)
        loss = nn.functional.mse_loss(value, b["ret"]) - surrogate.mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.detach()


if __name__ == "__main__":
    c = PPO(16, 8, 4, 32, 4, 2, 15) if os.environ.get("SMALL") else PPO()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    net, world = ActorCritic(c).to(device), Cart(c, device)
    opt = torch.optim.Adam(net.parameters(), lr=3e-4, fused=True)
    x = torch.randn(c.envs, c.obs, device=device)
    for n in range(c.updates):
        x, data = collect(c, net, world, x, device)
        loss = improve(c, net, opt, data, device)
        if n % 4 == 0:
            print(f"update {n} loss {loss.item():.4f}")
