"""Two-tower matching of queries and shop items, trained with the other pairs of the batch as negatives."""
import itertools
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Setup:
    features: int = 1024
    hidden: int = 4096
    dim: int = 512
    batch: int = 8192
    steps: int = 200
    log_temperature: float = -3.0
    lr: float = 3e-4

    @classmethod
    def pick(cls):
        if torch.cuda.is_available():
            return cls()
        return cls(features=32, hidden=64, dim=16, batch=32, steps=6)


def tower(s):
    return nn.Sequential(
        nn.Linear(s.features, s.hidden), nn.GELU(),
        nn.Linear(s.hidden, s.hidden), nn.GELU(),
        nn.Linear(s.hidden, s.dim),
    )


class Matcher(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.query, self.item = tower(s), tower(s)
        self.log_temperature = nn.Parameter(torch.tensor(s.log_temperature))
        self.register_buffer("diagonal", torch.arange(s.batch))

    def forward(self, queries, items):
        q = F.normalize(self.query(queries), dim=1)
        k = F.normalize(self.item(items), dim=1)
        return q * torch.exp(-self.log_temperature), k

    def loss(self, q, k):
        logits = q @ k.T
        return F.cross_entropy(logits, self.diagonal)


class Trainer:
    def __init__(self, s):
        self.s = s
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = Matcher(s).to(self.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=s.lr, fused=True)
        self.step_losses = torch.zeros(s.steps, device=self.device)

    def pairs(self):
        """Clicked pairs: the item's features are the query's, mixed with others."""
        queries = torch.randn(8, self.s.batch, self.s.features, device=self.device)
        items = 0.6 * queries + 0.8 * torch.randn_like(queries)
        pool = list(zip(queries.to(torch.bfloat16), items.to(torch.bfloat16)))
        return itertools.islice(itertools.cycle(pool), self.s.steps)

    def update(self, queries, items):
        with torch.autocast(self.device.type, torch.bfloat16):
            q, k = self.model(queries, items)
            loss = self.model.loss(q, k)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def fit(self):
        for i, (queries, items) in enumerate(self.pairs()):
            self.step_losses[i] = self.update(queries, items)
        return self.step_losses.cpu()


if __name__ == "__main__":
    torch.manual_seed(23)
    losses = Trainer(Setup.pick()).fit()
    print(f"contrastive loss {losses[0].item():.2f} -> {losses[-1].item():.2f}")
