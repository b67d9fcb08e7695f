"""Two-tower news recommendation: click history (ids) against article content (dense features)."""
import math

import torch
from torch import nn
from torch.nn import functional as F


class Hyper:
    def __init__(self, cuda):
        self.articles = 10_000_000 if cuda else 500
        self.width = 64 if cuda else 8
        self.content = 256 if cuda else 16
        self.hidden = 1024 if cuda else 16
        self.users = 16_384 if cuda else 16
        self.clicks = 48 if cuda else 5
        self.steps = 150 if cuda else 4
        self.table_lr = 0.5
        self.dense_lr = 1e-3


class HistoryTower(nn.Module):
    """Mean of the embeddings of the clicked articles, followed by a small network."""

    def __init__(self, hp, device):
        super().__init__()
        rows, width = hp.articles, hp.width
        bag = nn.EmbeddingBag(rows, width, mode="mean", device=device)  # flaw: dense-embedding-gradient
        self.table = bag
        self.net = nn.Sequential(
            nn.Linear(hp.width, hp.hidden), nn.ReLU(inplace=True),
            nn.Linear(hp.hidden, hp.hidden), nn.ReLU(inplace=True), nn.Linear(hp.hidden, 128)).to(device)

    def forward(self, clicks):
        return F.normalize(self.net(self.table(clicks)), dim=-1)


class ContentTower(nn.Module):
    def __init__(self, hp, device):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(hp.content, hp.hidden), nn.ReLU(inplace=True),
            nn.Linear(hp.hidden, hp.hidden), nn.ReLU(inplace=True), nn.Linear(hp.hidden, 128)).to(device)

    def forward(self, content):
        return F.normalize(self.net(content), dim=-1)


class TwoTower(nn.Module):
    def __init__(self, hp, device):
        super().__init__()
        self.user = HistoryTower(hp, device)
        self.item = ContentTower(hp, device)

    def forward(self, clicks, content):
        """In-batch softmax: the other users' next articles are the negatives."""
        scores = self.user(clicks) @ self.item(content).t() * 16.0
        labels = torch.arange(len(scores), device=scores.device)
        return F.cross_entropy(scores, labels)


class ClickLog:
    """Popularity follows a power law; the content of an article depends on its id."""

    def __init__(self, hp, device):
        self.hp, self.device = hp, device
        self.gen = torch.Generator(device).manual_seed(2)
        self.basis = torch.randn(16, hp.content, device=device, generator=self.gen)

    def draw(self, *shape):
        u = torch.rand(*shape, device=self.device, generator=self.gen)
        return (self.hp.articles * u ** 3).long().clamp_(max=self.hp.articles - 1)

    def batch(self):
        clicks = self.draw(self.hp.users, self.hp.clicks)
        noise = torch.randn(self.hp.users, self.hp.content, device=self.device, generator=self.gen)
        return clicks, self.basis[clicks[:, 0] % 16] + 0.1 * noise


def build_optimizers(model, hp):
    table = list(model.user.table.parameters())
    dense = [p for p in model.parameters() if all(p is not t for t in table)]
    return [torch.optim.SGD(table, lr=hp.table_lr), torch.optim.Adam(dense, lr=hp.dense_lr, fused=True)]


def fit(model, log, hp, device):
    optimizers = build_optimizers(model, hp)
    total, best = torch.zeros((), device=device), torch.full((), math.inf, device=device)
    for _ in range(hp.steps):
        clicks, content = log.batch()
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = model(clicks, content)
        for opt in optimizers:
            opt.zero_grad()
        loss.backward()
        for opt in optimizers:
            opt.step()
        total += loss.detach()
        best = torch.minimum(best, loss.detach())
    return total.item() / hp.steps, best.item()


def main():
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    hp = Hyper(cuda)
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model = TwoTower(hp, device)
    mean, best = fit(model, ClickLog(hp, device), hp, device)
    print(f"mean loss {mean:.4f}  best loss {best:.4f}  (chance {math.log(hp.users):.4f})")


if __name__ == "__main__":
    main()
