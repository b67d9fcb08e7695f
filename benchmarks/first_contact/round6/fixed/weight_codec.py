"""Overfits one big coordinate codec to a field: the weights are the compressed file."""

import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SETTINGS = {
    "hidden": 8192,
    "layers": 3,
    "points": 512,
    "steps": 90,
    "optimizer": {"lr": 1e-5, "betas": (0.9, 0.99), "weight_decay": 0.0, "fused": True},
    "clearing": {"set_to_none": True},
}


def small(settings):
    return {**settings, "hidden": 32, "layers": 2, "points": 16, "steps": 30}


class Codec(nn.Module):
    def __init__(self, hidden, layers):
        super().__init__()
        self.register_buffer("bands", 2.0 ** torch.arange(8) * torch.pi)
        self.inp = nn.Linear(48, hidden)
        self.mid = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(layers))
        self.out = nn.Linear(hidden, 8)

    def forward(self, xyz):
        phase = (xyz[..., None] * self.bands).flatten(-2)
        h = F.relu(self.inp(torch.cat([phase.sin(), phase.cos()], -1)))
        for layer in self.mid:
            h = F.relu(layer(h))
        return self.out(h)


class Hooks:
    """Called around the phases of a step."""

    def before_backward(self, trainer):
        pass

    def after_step(self, trainer, loss):
        pass


class Clear(Hooks):
    def __init__(self, **how):
        self.how = how

    def before_backward(self, trainer):
        trainer.optimizer.zero_grad(**self.how)


class Meter(Hooks):
    def __init__(self, device):
        self.sum, self.n = torch.zeros((), device=device), 0

    def after_step(self, trainer, loss):
        self.sum += loss
        self.n += 1


class Trainer:
    def __init__(self, settings, device, hooks):
        self.settings, self.device, self.hooks = settings, device, hooks
        with torch.device(device):
            self.codec = Codec(settings["hidden"], settings["layers"])
        self.optimizer = torch.optim.Adam(self.codec.parameters(), **settings["optimizer"])

    def batch(self):
        xyz = torch.rand(self.settings["points"], 3, device=self.device)
        return xyz, torch.sin(xyz.sum(-1, keepdim=True) * torch.arange(1, 9, device=self.device))

    def call(self, name, *args):
        for hook in self.hooks:
            getattr(hook, name)(self, *args)

    def step(self):
        xyz, goal = self.batch()
        with torch.autocast(self.device.type, torch.bfloat16):
            value = self.codec(xyz)
        loss = F.mse_loss(value.float(), goal)
        self.call("before_backward")
        loss.backward()
        self.optimizer.step()
        self.call("after_step", loss.detach())


if __name__ == "__main__":
    settings = small(SETTINGS) if os.environ.get("SMALL") else SETTINGS
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    meter = Meter(device)
    trainer = Trainer(settings, device, [Clear(**settings["clearing"]), meter])
    for _ in range(settings["steps"]):
        trainer.step()
    print(f"mse {meter.sum.item() / meter.n:.4f}")
