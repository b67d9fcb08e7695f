"""Two-tower basket model: user history against the next product, over a large catalogue."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
CATALOGUE = 2_000 if SMALL else 5_000_000
DIM = 16 if SMALL else 64
BATCH = 16 if SMALL else 4096
HISTORY = 5 if SMALL else 20
STEPS = 30 if SMALL else 90


class Products(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(CATALOGUE, DIM)  # flaw: dense-embedding-gradient
        with torch.no_grad():
            self.table.weight.mul_(0.05)

    def forward(self, ids):
        return self.table(ids)


class Tower(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(DIM, width), nn.ReLU(inplace=True), nn.Linear(width, width),
                                 nn.ReLU(inplace=True), nn.Linear(width, DIM))

    def forward(self, x):
        return F.normalize(self.net(x).float(), dim=-1)


class BasketModel(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.products = Products()
        self.user, self.item = Tower(width), Tower(width)
        self.scale = nn.Parameter(torch.tensor(10.0))

    def forward(self, history, following):
        u = self.user(self.products(history).mean(1))
        i = self.item(self.products(following))
        return self.scale * (u.bfloat16() @ i.bfloat16().t()).float()


def optimizers(model):
    table = list(model.products.parameters())
    rest = [p for n, p in model.named_parameters() if not n.startswith("products.")]
    return [torch.optim.Adam(table, lr=2e-3, fused=True),  # flaw: dense-embedding-gradient
            torch.optim.AdamW(rest, lr=1e-3, fused=True)]


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with device:
        torch.manual_seed(31)
        model = BasketModel(64 if SMALL else 1024)
        baskets = torch.randint(CATALOGUE, (BATCH * 20, HISTORY + 1))
        own = torch.arange(BATCH)
    opts = optimizers(model)
    for step in range(STEPS):
        at = (step % 20) * BATCH
        rows = baskets[at:at + BATCH]
        with torch.autocast(device.type, dtype=torch.bfloat16):
            scores = model(rows[:, :-1], rows[:, -1])
        loss = F.cross_entropy(scores, own)
        loss.backward()
        for o in opts:
            o.step()
            o.zero_grad()
        if step % 30 == 0:
            print(f"{step:3d} {loss.item():.4f}")


if __name__ == "__main__":
    main()
