"""Two towers that match query and product features, in-batch softmax."""
import json
import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

CONFIG = json.loads("""
{
  "h100": {"pairs": 262144, "features": 1024, "width": 2048, "blocks": 8, "out": 512,
           "batch": 8192, "epochs": 9, "workers": 4, "lr": 3e-4},
  "tiny": {"pairs": 256, "features": 32, "width": 32, "blocks": 2, "out": 16,
           "batch": 32, "epochs": 2, "workers": 0, "lr": 1e-3}
}
""")
TINY = os.environ.get("TINY") == "1"
GPU = torch.cuda.is_available()
DEV = torch.device("cuda" if GPU else "cpu")


class Pairs(Dataset):
    """Whole batches at a time: the sampler hands over lists of rows."""

    def __init__(self, n, features):
        rng = np.random.default_rng(4)
        # quantised features, as the feature store keeps them
        self.query = rng.integers(-100, 100, (n, features), dtype=np.int8)
        self.product = np.roll(self.query, 1, axis=1)

    def __len__(self):
        return len(self.query)

    def __getitem__(self, rows):
        rows = np.asarray(rows)
        return torch.from_numpy(self.query[rows]), torch.from_numpy(self.product[rows])


class Residual(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(w), nn.Linear(w, 2 * w), nn.Linear(2 * w, w)

    def forward(self, x):
        return x + self.down(nn.functional.silu(self.up(self.norm(x))))


class Tower(nn.Module):
    def __init__(self, features, width, blocks, out):
        super().__init__()
        self.inp = nn.Linear(features, width)
        self.blocks = nn.ModuleList(Residual(width) for _ in range(blocks))
        self.out = nn.Linear(width, out)

    def forward(self, x):
        x = self.inp(x.to(torch.bfloat16 if GPU else torch.float32) / 64)
        for block in self.blocks:
            x = block(x)
        return nn.functional.normalize(self.out(x), dim=-1)


class Matcher(nn.Module):
    def __init__(self, c):
        super().__init__()
        shape = c["features"], c["width"], c["blocks"], c["out"]
        self.query, self.product = Tower(*shape), Tower(*shape)

    def forward(self, q, p, target):
        logits = 20 * self.query(q) @ self.product(p).T
        return nn.functional.cross_entropy(logits, target)


def main(c):
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    data = Pairs(c["pairs"], c["features"])
    loader = DataLoader(data, batch_size=None, sampler=BatchSampler(RandomSampler(data), c["batch"], drop_last=True),
                        num_workers=c["workers"], pin_memory=GPU, persistent_workers=c["workers"] > 0)
    model = Matcher(c).to(DEV)
    if not TINY:
        for m in model.modules():
            if isinstance(m, Residual):
                m.compile()
    opt = torch.optim.AdamW(model.parameters(), lr=c["lr"], fused=GPU)
    target = torch.arange(c["batch"], device=DEV)
    for epoch in range(c["epochs"]):
        total = torch.zeros((), device=DEV)
        for q, p in loader:
            q = q.to(DEV, non_blocking=True)
            p = p.to(DEV, non_blocking=True)
            with torch.autocast(DEV.type, torch.bfloat16, enabled=GPU):
                loss = model(q, p, target)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            total += loss.detach()
        print(f"{epoch}: {total.item() / len(loader):.4f}")


if __name__ == "__main__":
    main(CONFIG["tiny" if TINY else "h100"])
