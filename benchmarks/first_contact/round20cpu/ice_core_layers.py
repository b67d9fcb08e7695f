"""Annual layer counting in ice cores: a dilated TCN marks the summers in multi-channel impurity profiles."""
import json

import torch
import torch.nn.functional as F
import torch.utils.checkpoint as ckpt
from torch import nn

CONFIG = json.loads("""
{
  "arch": {"type": "LayerCounter", "args": {"channels": 5, "width": 32, "stages": 3}},
  "data": {"type": "CoreDataset", "args": {"cores": 24, "depth": 6000, "window": 512, "seed": 8}},
  "optimizer": {"type": "AdamW", "args": {"lr": 0.002, "fused": true}},
  "trainer": {"steps": 420, "batch": 8, "log_step": 60}
}
""")


class DilatedUnit(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.conv1 = nn.Conv1d(width, width, 3, padding=dilation, dilation=dilation)
        self.conv2 = nn.Conv1d(width, width, 1)

    def forward(self, x):
        return x + self.conv2(F.relu(self.conv1(x)))


class Stage(nn.Sequential):
    """Units of growing dilation, run as one segment."""

    def __init__(self, width, dilations=(1, 2, 4)):
        super().__init__(*(DilatedUnit(width, d) for d in dilations))

    def forward(self, x):
        return ckpt.checkpoint(super().forward, x, use_reentrant=False)  # flaw: needless-checkpointing


class LayerCounter(nn.Module):
    def __init__(self, channels, width, stages):
        super().__init__()
        self.stem = nn.Conv1d(channels, width, 5, padding=2)
        self.stages = nn.Sequential(*(Stage(width) for _ in range(stages)))
        self.head = nn.Conv1d(width, 1, 1)

    def forward(self, x):
        return self.head(self.stages(self.stem(x))).squeeze(1)


class CoreDataset:
    """Long cores in memory; batches are random windows."""

    def __init__(self, cores, depth, window, seed):
        g = torch.Generator().manual_seed(seed)
        rate = 0.15 + 0.05 * torch.randn(cores, depth, generator=g).cumsum(1) / depth**0.5
        phase = rate.abs().cumsum(1)
        shift = torch.rand(5, generator=g)[None, :, None]
        self.profiles = torch.sin(phase[:, None] + shift) + 0.4 * torch.randn(cores, 5, depth, generator=g)
        self.summer = (torch.sin(phase) > 0.9).float()
        self.window, self.gen = window, g

    def sample(self, n):
        cores = torch.randint(len(self.profiles), (n, 1), generator=self.gen)
        start = torch.randint(self.profiles.shape[2] - self.window, (n, 1), generator=self.gen)
        where = start + torch.arange(self.window)
        x = self.profiles[cores, :, where].transpose(1, 2).contiguous()
        return x, self.summer[cores, where]


class ConfigParser:
    """Builds objects by the names in the config, as in pytorch-template."""

    def __init__(self, config, namespace):
        self.config, self.namespace = config, namespace

    def init_obj(self, name, *args):
        entry = self.config[name]
        return self.namespace[entry["type"]](*args, **entry["args"])

    def __getitem__(self, key):
        return self.config[key]


class Trainer:
    def __init__(self, config):
        torch.manual_seed(0)
        self.cfg = config["trainer"]
        self.data = config.init_obj("data")
        self.model = config.init_obj("arch")
        self.optimizer = config.init_obj("optimizer", self.model.parameters())
        self.criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(4.0))

    def train(self):
        for step in range(1, self.cfg["steps"] + 1):
            x, y = self.data.sample(self.cfg["batch"])
            self.optimizer.zero_grad()
            output = self.model(x)
            loss = self.criterion(output, y)
            loss.backward()
            self.optimizer.step()
            if step % self.cfg["log_step"] == 0:
                accuracy = ((output > 0) == y.bool()).float().mean().item()
                print(f"Train step: {step}/{self.cfg['steps']} Loss: {loss.item():.6f} acc: {accuracy:.3f}")


if __name__ == "__main__":
    namespace = {"LayerCounter": LayerCounter, "CoreDataset": CoreDataset, "AdamW": torch.optim.AdamW}
    Trainer(ConfigParser(CONFIG, namespace)).train()
