"""Who adds which board game to the collection? Factorisation machine + MLP on hashed ids."""
from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import nn

CFG = {
    "seed": 2024,
    "fields": OrderedDict(user=150_000, game=60_000, shop=25_000),
    "dim": 24,
    "mlp": [256, 128],
    "batch_size": 1536,
    "steps": 600,
    "lr": 0.15,
    "report": 100,
}


def make_tables(fields, dim):
    tables = nn.ModuleDict()
    for name, buckets in fields.items():
        table = nn.Embedding(buckets, dim, sparse=True)
        nn.init.normal_(table.weight, std=0.02)
        tables[name] = table
    return tables


def make_mlp(sizes):
    layers = []
    for fan_in, fan_out in zip(sizes, sizes[1:]):
        layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], 1))


class DeepFM(nn.Module):
    def __init__(self, fields, dim, mlp):
        super().__init__()
        self.tables = make_tables(fields, dim)
        self.deep = make_mlp([dim * len(fields), *mlp])
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, ids):
        v = torch.stack([table(ids[:, i]) for i, table in enumerate(self.tables.values())], dim=1)
        total = v.sum(1)
        pairwise = 0.5 * (total.square() - v.square().sum(1)).sum(1)
        return self.bias + pairwise + self.deep(v.flatten(1)).squeeze(1)


class ImpressionStream:
    """Endless batches of (ids, added): heads are popular, tails are long."""

    def __init__(self, fields, batch_size, seed):
        self.sizes = torch.tensor(list(fields.values()))
        self.batch_size = batch_size
        self.gen = torch.Generator().manual_seed(seed)
        self.taste = torch.randn(997, generator=self.gen)

    def __iter__(self):
        while True:
            u = torch.rand(self.batch_size, len(self.sizes), generator=self.gen)
            ids = (u.pow(1.5) * self.sizes).long()
            affinity = self.taste[(ids[:, 0] * 31 + ids[:, 1] * 17) % 997]
            noise = torch.randn(self.batch_size, generator=self.gen)
            yield ids, (affinity + 0.5 * noise > 0.4).float()


class RunningLogLoss:
    def __init__(self, momentum=0.98):
        self.momentum, self.value = momentum, None

    def __call__(self, loss):
        self.value = loss if self.value is None else self.momentum * self.value + (1 - self.momentum) * loss
        return self.value


def run(cfg):
    torch.manual_seed(cfg["seed"])
    model = DeepFM(cfg["fields"], cfg["dim"], cfg["mlp"])
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f} M parameters")
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg["lr"])
    running = RunningLogLoss()
    stream = ImpressionStream(cfg["fields"], cfg["batch_size"], cfg["seed"])
    for step, (ids, added) in zip(range(1, cfg["steps"] + 1), stream):
        loss = F.binary_cross_entropy_with_logits(model(ids), added)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        value = running(loss.item())
        if step % cfg["report"] == 0:
            print(f"[{step:>4}/{cfg['steps']}] logloss {value:.5f}")
    return model


if __name__ == "__main__":
    run(CFG)
