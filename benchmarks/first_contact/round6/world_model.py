"""Latent world model for continuous control, fitted on replayed trajectories that live on the device."""
import os
from contextlib import nullcontext

import torch
from torch import nn

PRESETS = {
    "full": dict(batch=8192, obs=256, act=32, latent=2048, depth=3, horizon=4, updates=70, buffer=100_000),
    "debug": dict(batch=8, obs=16, act=4, latent=32, depth=1, horizon=2, updates=30, buffer=100),
}
RUNTIME = {
    "precision": "bf16",
    "fused": True,
    "lr": 2e-4,
}


def mlp(i, h, o, depth):
    layers = [nn.Linear(i, h), nn.ELU()]
    for _ in range(depth):
        layers += [nn.Linear(h, h), nn.ELU()]
    return nn.Sequential(*layers, nn.Linear(h, o))


class Dreamer(nn.Module):
    def __init__(self, obs, act, latent, depth):
        super().__init__()
        self.encode = mlp(obs, latent, latent, depth)
        self.advance = mlp(latent + act, latent, latent, depth)
        self.reward = mlp(latent, latent, 1, 0)

    def forward(self, obs, acts):
        z = self.encode(obs)
        zs, rs = [], []
        for a in acts.unbind(1):
            z = self.advance(torch.cat([z, a], -1))
            zs.append(z)
            rs.append(self.reward(z).squeeze(-1))
        return torch.stack(zs, 1), torch.stack(rs, 1)


class Replay:
    def __init__(self, p, device):
        self.p = p
        g = torch.Generator(device).manual_seed(0)
        self.obs = torch.randn(p["buffer"], p["obs"], device=device, generator=g)
        self.act = torch.randn(p["buffer"], p["horizon"], p["act"], device=device, generator=g)
        self.rew = torch.randn(p["buffer"], p["horizon"], device=device, generator=g)

    def sample(self):
        i = torch.randint(self.p["buffer"], (self.p["batch"],), device=self.obs.device)
        return self.obs[i], self.act[i], self.rew[i]


def precision_scope(name, device):
    if name == "full":
        return nullcontext()
    return torch.autocast(device, torch.bfloat16)


class Learner:
    def __init__(self, p, device):
        self.p, self.device = p, device
        self.model = Dreamer(p["obs"], p["act"], p["latent"], p["depth"]).to(device)
        self.opt = torch.optim.Adam(self.model.parameters(), RUNTIME["lr"], fused=RUNTIME["fused"])
        self.replay = Replay(p, device)

    def update(self):
        obs, act, rew = self.replay.sample()
        with precision_scope(RUNTIME["precision"], self.device):
            latents, predicted = self.model(obs, act)
        loss = nn.functional.mse_loss(predicted.float(), rew) + 1e-3 * latents.float().square().mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.detach()


if __name__ == "__main__":
    learner = Learner(PRESETS["debug" if os.environ.get("SMALL") else "full"], "cuda" if torch.cuda.is_available() else "cpu")
    for n in range(learner.p["updates"]):
        loss = learner.update()
        if n % 20 == 0:
            print("update", n, f"{loss.item():.4f}")
