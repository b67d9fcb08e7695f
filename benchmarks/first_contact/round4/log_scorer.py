"""Batch job: give every log record an anomaly score and collect the worst ones."""
import gc
import heapq
import os
from typing import Iterator

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"


class LogModel(nn.Module):
    def __init__(self, vocab: int, dim: int, depth: int, heads: int, length: int):
        super().__init__()
        self.heads = heads
        self.emb = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.zeros(length, dim))
        self.ln = nn.ModuleList(nn.LayerNorm(dim) for _ in range(2 * depth))
        self.qkv = nn.ModuleList(nn.Linear(dim, 3 * dim) for _ in range(depth))
        self.out = nn.ModuleList(nn.Linear(dim, dim) for _ in range(depth))
        self.up = nn.ModuleList(nn.Linear(dim, 4 * dim) for _ in range(depth))
        self.down = nn.ModuleList(nn.Linear(4 * dim, dim) for _ in range(depth))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.emb(ids) + self.pos
        for i in range(len(self.qkv)):
            q, k, v = self.qkv[i](self.ln[2 * i](x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out[i](a.transpose(1, 2).flatten(2))
            x = x + self.down[i](F.gelu(self.up[i](self.ln[2 * i + 1](x))))
        return x


class Scorer:
    """Keeps one batch in flight: results are read when the next batch has been queued."""

    def __init__(self, model: LogModel, keep: int, device: torch.device):
        self.model, self.keep, self.device = model, keep, device
        self.worst: list[tuple[float, int]] = []
        self.pending = None

    @torch.inference_mode()
    def submit(self, first: int, ids: torch.Tensor) -> None:
        hidden = self.model(ids)
        logits = F.linear(hidden[:, :-1], self.model.emb.weight)
        nll = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
        score, row = nll.view(len(ids), -1).float().mean(1).topk(min(self.keep, len(ids)))
        score, row = score.to("cpu", non_blocking=True), row.to("cpu", non_blocking=True)
        done = torch.cuda.Event() if self.device.type == "cuda" else None
        if done is not None:
            done.record()
        previous, self.pending = self.pending, (first, score, row, done)
        self.collect(previous)

    def collect(self, item) -> None:
        if item is None:
            return
        first, score, row, done = item
        if done is not None:
            done.synchronize()
        for s, r in zip(score.tolist(), row.tolist()):
            heapq.heappush(self.worst, (s, first + r))
        while len(self.worst) > self.keep:
            heapq.heappop(self.worst)
        gc.collect()  # flaw: gc-pause-in-step


def records(batches: int, batch: int, length: int, vocab: int, device) -> Iterator[tuple[int, torch.Tensor]]:
    store = torch.randint(vocab, (batch * 8, length), device=device)
    for n in range(batches):
        at = (n % 8) * batch
        yield n * batch, store[at:at + batch]


def main() -> None:
    cfg = (128, 32, 1, 2, 16) if SMALL else (4096, 768, 8, 12, 128)
    batch, batches = (8, 30) if SMALL else (128, 80)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    torch.manual_seed(0)
    scorer = Scorer(LogModel(*cfg).to(device, dtype).eval(), keep=20, device=device)
    for first, ids in records(batches, batch, cfg[-1], cfg[0], device):
        scorer.submit(first, ids)
    scorer.collect(scorer.pending)
    print(sorted(scorer.worst, reverse=True)[:3])


if __name__ == "__main__":
    main()
