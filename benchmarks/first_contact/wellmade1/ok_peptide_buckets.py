"""Retention time of peptides, from their sequence. Batches hold peptides of nearly one length."""
import logging
import time
from typing import Iterator, NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F

log = logging.getLogger("peptides")

RESIDUES = 24           # 20 amino acids, 3 modifications, 0 is padding
WIDTH, HEADS, LAYERS = 96, 6, 3


class Batch(NamedTuple):
    tokens: torch.Tensor
    real: torch.Tensor
    target: torch.Tensor


class PeptideSet:
    def __init__(self, count: int, longest: int, seed: int) -> None:
        rng = torch.Generator().manual_seed(seed)
        self.length = (7 + torch.empty(count).exponential_(0.12, generator=rng)).long().clamp_(max=longest)
        self.tokens = torch.randint(1, RESIDUES, (count, longest), generator=rng)
        self.tokens.masked_fill_(torch.arange(longest) >= self.length[:, None], 0)
        hydro = torch.randn(RESIDUES, generator=torch.Generator().manual_seed(77))
        hydro[0] = 0.0
        position = torch.linspace(1.5, 0.5, longest)
        raw = (hydro[self.tokens] * position).sum(1) / self.length.sqrt()
        self.target = (raw - raw.mean()) / raw.std()

    def __len__(self) -> int:
        return len(self.length)

    def pick(self, rows: torch.Tensor) -> Batch:
        length = self.length[rows]
        longest = int(length.max())
        tokens = self.tokens[rows, :longest]
        return Batch(tokens, tokens != 0, self.target[rows])


class LengthBuckets:
    """Rows in order of their length (ties shuffled), cut into batches, the batches in random order."""

    def __init__(self, lengths: torch.Tensor, residues_per_batch: int, seed: int) -> None:
        self.lengths = lengths
        self.budget = residues_per_batch
        self.rng = torch.Generator().manual_seed(seed)

    def __iter__(self) -> Iterator[torch.Tensor]:
        noise = torch.rand(len(self.lengths), generator=self.rng)
        order = (self.lengths + noise).argsort()
        sizes, filled = [], 0
        lengths = self.lengths[order].tolist()
        start = 0
        for at, length in enumerate(lengths):
            if (at + 1 - start) * length > self.budget:
                sizes.append(at - start)
                start = at
        sizes.append(len(lengths) - start)
        batches = order.split(sizes)
        for which in torch.randperm(len(batches), generator=self.rng).tolist():
            yield batches[which]


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(inplace=True),
                                 nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
        b, n, _ = x.shape
        q, k, v = self.qkv(self.before(x)).view(b, n, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
        x = x + self.out(mixed.transpose(1, 2).reshape(b, n, WIDTH))
        return x + self.mlp(x)


class Retention(nn.Module):
    def __init__(self, longest: int) -> None:
        super().__init__()
        self.residue = nn.Embedding(RESIDUES, WIDTH, padding_idx=0)
        self.place = nn.Parameter(torch.randn(longest, WIDTH) * 0.02)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, tokens: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        x = self.residue(tokens) + self.place[: tokens.shape[1]]
        visible = real[:, None, None, :]
        for layer in self.layers:
            x = layer(x, visible)
        weight = real.to(x.dtype)
        pooled = torch.bmm(weight[:, None], x)[:, 0] / weight.sum(1, keepdim=True)
        return self.head(pooled)[:, 0]


@torch.inference_mode()
def validate(model: Retention, data: PeptideSet) -> float:
    model.eval()
    guesses, truth = [], []
    for rows in LengthBuckets(data.length, 2000, seed=0):
        batch = data.pick(rows)
        guesses.append(model(batch.tokens, batch.real))
        truth.append(batch.target)
    model.train()
    return float(torch.corrcoef(torch.stack([torch.cat(guesses), torch.cat(truth)]))[0, 1])


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    torch.manual_seed(5)
    train, held = PeptideSet(4500, 48, seed=1), PeptideSet(500, 48, seed=2)
    model = Retention(48)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), fused=True)
    buckets = LengthBuckets(train.length, 512, seed=9)
    for epoch in range(5):
        begin, steps, total = time.perf_counter(), 0, torch.zeros(())
        for rows in buckets:
            batch = train.pick(rows)
            loss = F.mse_loss(model(batch.tokens, batch.real), batch.target)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.detach()
            steps += 1
        pace = 1000 * (time.perf_counter() - begin) / steps
        log.info("epoch %d: %d steps, loss %.4f, held-out r %.3f, %.1f ms/step",
                 epoch, steps, float(total) / steps, validate(model, held), pace)


if __name__ == "__main__":
    main()
