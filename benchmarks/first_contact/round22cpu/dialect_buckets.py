"""Which valley does a sentence come from?  Hashed character n-grams, a bag of vectors, two heads."""
import time
from functools import partial
from itertools import islice

import torch
from torch import nn

CONFIG = {
    "seed": 2024,
    "table": {"buckets": 240_000, "dim": 24, "mode": "mean"},
    "head": {"hidden": 512, "valleys": 40},
    "data": {"sentences": 6000, "grams": 64, "rows": 256},
    "run": {"steps": 1800, "every": 300},
    "lr": {"table": 0.5, "head": 2e-3},
}


def make_bag(buckets, dim, mode):
    bag = nn.EmbeddingBag(buckets, dim, mode=mode)  # flaw: dense-embedding-gradient
    nn.init.uniform_(bag.weight, -0.05, 0.05)
    return bag


class Valley(nn.Module):
    def __init__(self, table, head):
        super().__init__()
        self.grams = make_bag(**table)
        self.read = nn.Sequential(nn.Linear(table["dim"], head["hidden"]), nn.ReLU(inplace=True))
        self.valley = nn.Linear(head["hidden"], head["valleys"])

    def forward(self, grams):
        return self.valley(self.read(self.grams(grams)))


def corpus(sentences, grams, rows, buckets, valleys, device, seed):
    """Endless batches; each valley prefers its own slice of the buckets."""
    rng = torch.Generator().manual_seed(seed)
    valley = torch.randint(valleys, (sentences,), generator=rng)
    anywhere = torch.randint(buckets, (sentences, grams), generator=rng)
    width = buckets // valleys // 50
    local = valley[:, None] * width + torch.randint(width, (sentences, grams), generator=rng)
    ids = torch.where(torch.rand(sentences, grams, generator=rng) < 0.5, local, anywhere).to(device)
    valley = valley.to(device)
    while True:
        for pick in torch.randperm(sentences, generator=rng).to(device).split(rows):
            if len(pick) == rows:
                yield ids[pick], valley[pick]


def optimizers(model, lr):
    dense = [p for n, p in model.named_parameters() if not n.startswith("grams")]
    return (
        torch.optim.SGD(model.grams.parameters(), lr=lr["table"]),
        torch.optim.Adam(dense, lr=lr["head"], fused=True),
    )


def learn(model, opts, criterion, ids, valley):
    loss = criterion(model(ids), valley)
    for opt in opts:
        opt.zero_grad(set_to_none=True)
    loss.backward()
    for opt in opts:
        opt.step()
    return loss.detach()


def run(cfg):
    torch.manual_seed(cfg["seed"])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Valley(cfg["table"], cfg["head"]).to(device)
    step = partial(learn, model, optimizers(model, cfg["lr"]), nn.CrossEntropyLoss())
    stream = corpus(
        **cfg["data"], buckets=cfg["table"]["buckets"], valleys=cfg["head"]["valleys"], device=device, seed=cfg["seed"]
    )
    every, losses, tick = cfg["run"]["every"], torch.zeros((), device=device), time.perf_counter()
    for n, batch in enumerate(islice(stream, cfg["run"]["steps"]), 1):
        losses += step(*batch)
        if n % every == 0:
            now = time.perf_counter()
            print(f"step {n}: loss {losses.item() / every:.5f}, {(now - tick) / every * 1e3:.2f} ms a step", flush=True)
            losses.zero_()
            tick = now


run(CONFIG)
