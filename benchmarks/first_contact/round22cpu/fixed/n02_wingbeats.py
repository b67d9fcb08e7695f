"""Species from the wing-beat signature of radar echoes."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

torch.set_num_threads(1)

CONFIG = {
    "seed": 3,
    "echoes": 640,
    "species": 8,
    "epochs": 45,
    "model": {"width": 32, "depth": 3},
    "optim": {"lr": 2e-3, "weight_decay": 1e-4, "fused": True},
    "loader": {"batch_size": 64, "num_workers": 2, "drop_last": True, "persistent_workers": True},
}


class Tickets(Sampler):
    """Rows in random order, each with a seed for its noise."""

    def __init__(self, count, seed):
        self.count = count
        self.random = np.random.default_rng(seed)

    def __len__(self):
        return self.count

    def __iter__(self):
        order = self.random.permutation(self.count)
        seeds = self.random.integers(0, 2**31, self.count)
        return iter(list(zip(order.tolist(), seeds.tolist())))


class Echoes(Dataset):
    samples = 384

    def __init__(self, count, species, seed):
        rng = np.random.default_rng(seed)
        self.kind = rng.integers(0, species, count)
        self.beat = 4.0 + 1.5 * self.kind + rng.normal(0, 0.2, count)
        self.time = np.linspace(0, 2, self.samples, dtype=np.float32)

    def __len__(self):
        return len(self.kind)

    def __getitem__(self, ticket):
        row, seed = ticket
        rng = np.random.default_rng(seed)
        angle = 2 * np.pi * self.beat[row] * self.time + rng.uniform(0, 6.28)
        echo = np.sin(angle) + 0.4 * np.sin(2 * angle) + 0.2 * np.sin(3 * angle)
        echo = echo * np.exp(-rng.uniform(0.1, 0.6) * self.time)
        echo = echo + rng.normal(0, 0.6, self.samples)
        return torch.from_numpy(echo.astype(np.float32))[None], int(self.kind[row])


def network(species, width, depth):
    layers, channels = [], 1
    for level in range(depth):
        wide = width * 2**level
        layers += [
            nn.Conv1d(channels, wide, 9, stride=2, padding=4, bias=False),
            nn.BatchNorm1d(wide),
            nn.ReLU(inplace=True),
        ]
        channels = wide
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(channels, species))


class Trainer:
    def __init__(self, config):
        torch.manual_seed(config["seed"])
        self.config = config
        data = Echoes(config["echoes"], config["species"], config["seed"])
        self.loader = DataLoader(data, sampler=Tickets(len(data), 11), **config["loader"])
        self.model = network(config["species"], **config["model"])
        self.optimizer = torch.optim.AdamW(self.model.parameters(), **config["optim"])
        self.loss = nn.CrossEntropyLoss()

    def step(self, echoes, kinds):
        loss = self.loss(self.model(echoes), kinds)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def epoch(self):
        total = torch.zeros(())
        for echoes, kinds in self.loader:
            total += self.step(echoes, kinds)
        return total / len(self.loader)

    def fit(self):
        for epoch in range(1, self.config["epochs"] + 1):
            loss = self.epoch()
            if epoch % 9 == 0:
                print(f"epoch {epoch:3d}: loss {loss.item():.5f}", flush=True)


if __name__ == "__main__":
    Trainer(CONFIG).fit()
