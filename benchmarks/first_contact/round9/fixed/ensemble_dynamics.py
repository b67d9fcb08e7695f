"""Probabilistic ensemble of dynamics models (PETS): fit on bootstrapped transitions."""

from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")

GPU = torch.cuda.is_available()
DEV = torch.device("cuda" if GPU else "cpu")


class HParams(NamedTuple):
    members: int = 7 if GPU else 2
    obs_dim: int = 24
    act_dim: int = 8
    hidden: int = 1024 if GPU else 16
    layers: int = 4
    batch: int = 6144 if GPU else 32
    transitions: int = 300_000 if GPU else 1000
    updates: int = 240 if GPU else 8
    lr: float = 1e-3


class EnsembleLinear(nn.Module):
    """One linear layer for each member, computed as a batched product."""

    def __init__(self, members, fan_in, fan_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(members, fan_in, fan_out) / (2 * fan_in**0.5))
        self.bias = nn.Parameter(torch.zeros(members, 1, fan_out))

    def forward(self, x):
        return torch.baddbmm(self.bias, x, self.weight)


class Normalizer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("std", torch.ones(dim))

    def fit(self, data):
        self.mean.copy_(data.mean(0))
        self.std.copy_(data.std(0).clamp_min_(1e-6))

    def forward(self, x):
        return (x - self.mean) / self.std


class DynamicsEnsemble(nn.Module):
    def __init__(self, hp):
        super().__init__()
        sizes = [hp.obs_dim + hp.act_dim] + [hp.hidden] * hp.layers
        self.normalizer = Normalizer(sizes[0])
        self.trunk = nn.ModuleList(
            EnsembleLinear(hp.members, a, b) for a, b in zip(sizes, sizes[1:])
        )
        self.out = EnsembleLinear(hp.members, hp.hidden, 2 * hp.obs_dim)
        self.max_log_var = nn.Parameter(torch.full((hp.obs_dim,), 0.5))
        self.min_log_var = nn.Parameter(torch.full((hp.obs_dim,), -10.0))

    def forward(self, inputs):
        h = self.normalizer(inputs)
        for layer in self.trunk:
            h = F.silu(layer(h))
        mean, log_var = self.out(h).chunk(2, dim=-1)
        log_var = self.max_log_var - F.softplus(self.max_log_var - log_var)
        log_var = self.min_log_var + F.softplus(log_var - self.min_log_var)
        return mean, log_var

    def loss(self, inputs, delta):
        mean, log_var = self(inputs)
        nll = (torch.exp(-log_var) * (mean - delta).square() + log_var).mean()
        return nll + 0.01 * (self.max_log_var.sum() - self.min_log_var.sum())


def collect(hp):
    """Transitions of a damped oscillator chain under random actions."""
    obs = torch.randn(hp.transitions, hp.obs_dim, device=DEV)
    act = torch.rand(hp.transitions, hp.act_dim, device=DEV) * 2 - 1
    coupling = torch.randn(hp.obs_dim, hp.obs_dim, device=DEV) / hp.obs_dim**0.5
    force = torch.randn(hp.act_dim, hp.obs_dim, device=DEV)
    delta = 0.1 * torch.sin(obs @ coupling + act @ force) - 0.01 * obs
    return torch.cat([obs, act], dim=1), delta + 0.01 * torch.randn_like(delta)


def fit(hp):
    inputs, delta = collect(hp)
    model = DynamicsEnsemble(hp).to(DEV)
    model.normalizer.fit(inputs)
    optimizer = torch.optim.AdamW(model.parameters(), lr=hp.lr, weight_decay=1e-5, fused=GPU)
    bootstrap = torch.randint(hp.transitions, (hp.members, hp.transitions), device=DEV)
    for update in range(hp.updates):
        lo = update * hp.batch % (hp.transitions - hp.batch)
        rows = bootstrap[:, lo : lo + hp.batch]
        loss = model.loss(inputs[rows], delta[rows])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if (update + 1) % 60 == 0:
            print(f"update {update + 1:4d}  nll {loss.item():.4f}")
    with torch.inference_mode():
        held_out = inputs[-1024:].expand(hp.members, -1, -1)
        mean, _ = model(held_out)
        print(f"disagreement {mean.std(0).mean().item():.5f}, last nll {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    fit(HParams())
