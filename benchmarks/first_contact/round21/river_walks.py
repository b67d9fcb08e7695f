"""Embed the reaches of a river network: random walks downstream and upstream, and a transformer that guesses in
which catchment the next reach lies. Walks are made on the host (the network is a ragged graph), one batch ahead
of the device.
"""
import numpy as np
import torch
from torch import nn

HPARAMS = {
    "reaches": 16384,
    "catchments": 4096,
    "walks": 1024,
    "length": 32,
    "width": 512,
    "depth": 6,
    "heads": 8,
    "lr": 3e-4,
    "steps": 700,
    "seed": 3,
}


class Network:
    """Adjacency as offsets and targets. Every reach has one to six neighbours with different discharge."""

    def __init__(self, reaches, seed):
        self.rng = np.random.default_rng(seed)
        degree = self.rng.integers(1, 7, reaches)
        self.offsets = np.concatenate([[0], np.cumsum(degree)])
        near = np.repeat(np.arange(reaches), degree) + self.rng.integers(-40, 41, self.offsets[-1])
        self.targets = near % reaches
        self.share = np.cumsum(self.rng.gamma(1.5, 1.0, len(near)))
        self.before = np.concatenate([[0.0], self.share])

    def walk(self, starts, length):
        """Steps in proportion to the discharge, by a search in the running sum."""
        path = np.empty((len(starts), length + 1), dtype=np.int64)
        path[:, 0] = at = starts
        for hop in range(length):
            low, high = self.before[self.offsets[at]], self.before[self.offsets[at + 1]]
            edge = np.searchsorted(self.share, low + (high - low) * self.rng.random(len(at)), side="right")
            path[:, hop + 1] = at = self.targets[np.minimum(edge, self.offsets[at + 1] - 1)]
        return path


class Walker(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.reach = nn.Embedding(hp["reaches"], hp["width"])
        self.hop = nn.Parameter(torch.zeros(hp["length"], hp["width"]))
        layer = nn.TransformerEncoderLayer(
            hp["width"], hp["heads"], 4 * hp["width"], dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.mixer = nn.TransformerEncoder(layer, hp["depth"], nn.LayerNorm(hp["width"]), enable_nested_tensor=False)
        self.register_buffer("ahead", nn.Transformer.generate_square_subsequent_mask(hp["length"]), persistent=False)
        self.head = nn.Linear(hp["width"], hp["catchments"])

    def forward(self, path):
        x = self.reach(path) + self.hop
        return self.head(self.mixer(x, mask=self.ahead, is_causal=True))


class Progress:
    """Smoothed loss, and the best value of it so far."""

    def __init__(self, device, smooth=0.98):
        self.smooth = smooth
        self.level = torch.zeros((), device=device)
        self.best = torch.full((), float("inf"), device=device)
        self.seen = 0

    def update(self, loss):
        self.seen += 1
        self.level.lerp_(loss.detach(), max(1 - self.smooth, 1 / self.seen))
        self.best = min(self.best, self.level.clone())  # flaw: sync-in-step

    def __str__(self):
        return f"step {self.seen}: loss {self.level.item():.4f}, best {self.best.item():.4f}"


def host_batches(network, hp):
    while True:
        starts = network.rng.integers(0, hp["reaches"], hp["walks"])
        path = torch.from_numpy(network.walk(starts, hp["length"]))
        yield path.pin_memory() if torch.cuda.is_available() else path


def fit(hp):
    torch.manual_seed(hp["seed"])
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network = Network(hp["reaches"], hp["seed"])
    catchment = torch.arange(hp["reaches"], device=device) * hp["catchments"] // hp["reaches"]
    model = Walker(hp).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=hp["lr"], fused=True)
    progress = Progress(device)
    for path in host_batches(network, hp):
        path = path.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            scores = model(path[:, :-1])
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), catchment[path[:, 1:]].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        progress.update(loss)
        if progress.seen % 100 == 0:
            print(progress)
        if progress.seen == hp["steps"]:
            return progress


if __name__ == "__main__":
    fit(HPARAMS)
