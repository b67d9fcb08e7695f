"""Two-tower retrieval for news: user history against article features, in-batch softmax."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

CUDA = torch.cuda.is_available()


class Impressions(Dataset):
    """Serves whole batches: the sampler hands over a list of rows."""

    def __init__(self, rows, articles, history, width, seed=0):
        rng = np.random.default_rng(seed)
        self.history = torch.from_numpy(rng.integers(0, articles, (rows, history), dtype=np.int32))
        self.clicked = torch.from_numpy(rng.integers(0, articles, rows))
        self.articles = torch.from_numpy(rng.standard_normal((articles, width), dtype=np.float32)).half()

    def __len__(self):
        return len(self.clicked)

    def __getitems__(self, rows):
        rows = torch.tensor(rows)
        return self.history[rows], self.articles[self.clicked[rows]]


def identity(batch):
    return batch


class Tower(nn.Module):
    def __init__(self, inputs, hidden, outputs, depth=3):
        super().__init__()
        self.stem = nn.Linear(inputs, hidden)
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(depth))
        self.layers = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(depth))
        self.out = nn.Linear(hidden, outputs)

    def forward(self, x):
        x = self.stem(x)
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = x + layer(F.relu(norm(x)))
        return F.normalize(self.out(x), dim=-1)


class TwoTower(nn.Module):
    def __init__(self, articles, width, hidden, outputs):
        super().__init__()
        self.history = nn.EmbeddingBag(articles, 256, mode="mean", include_last_offset=False)
        self.user = Tower(256, hidden, outputs)
        self.article = Tower(width, hidden, outputs)
        self.log_scale = nn.Parameter(torch.tensor(2.5))

    def forward(self, history, article):
        user = self.user(self.history(history))
        return self.log_scale.exp() * (user @ self.article(article).T)


def main():
    device = torch.device("cuda" if CUDA else "cpu")
    rows, articles, history, width, hidden, batch, epochs = 400_000, 20_000, 32, 768, 3072, 8192, 4
    if not CUDA:
        rows, articles, history, width, hidden, batch, epochs = 400, 60, 4, 16, 32, 40, 2
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    loader = DataLoader(
        Impressions(rows, articles, history, width),
        batch_size=batch,
        shuffle=True,
        drop_last=True,
        collate_fn=identity,
        num_workers=12 if CUDA else 0,
        pin_memory=CUDA,
        persistent_workers=CUDA,
    )
    model = TwoTower(articles, width, hidden, 256).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=CUDA)
    own = torch.arange(batch, device=device)
    for epoch in range(epochs):
        total = torch.zeros((), device=device)
        for past, article in loader:
            past = past.to(device, non_blocking=True)
            article = article.to(device, non_blocking=True)
            with torch.autocast(device.type, torch.bfloat16, enabled=CUDA):
                scores = model(past, article if CUDA else article.float())
                loss = F.cross_entropy(scores, own)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch}: loss {total.item() / len(loader):.4f}")


if __name__ == "__main__":
    main()
