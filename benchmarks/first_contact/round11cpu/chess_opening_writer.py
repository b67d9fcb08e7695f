"""Samples chess openings, move by move, from a small decoder-only transformer over a move vocabulary."""

import argparse
import dataclasses

import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass
class WriterConfig:
    moves: int = 1968
    dim: int = 128
    heads: int = 4
    layers: int = 4
    max_plies: int = 64


class Memory:
    """Keys and values of the plies that were seen, one preallocated pair of buffers a layer."""

    def __init__(self, cfg: WriterConfig, games: int):
        shape = (cfg.layers, games, cfg.heads, cfg.max_plies, cfg.dim // cfg.heads)
        self.keys = torch.zeros(shape)
        self.values = torch.zeros(shape)
        self.length = 0

    def extend(self, layer: int, k: torch.Tensor, v: torch.Tensor):
        end = self.length + k.shape[2]
        self.keys[layer, :, :, self.length : end] = k
        self.values[layer, :, :, self.length : end] = v
        return self.keys[layer, :, :, :end], self.values[layer, :, :, :end]


class Block(nn.Module):
    def __init__(self, cfg: WriterConfig, index: int):
        super().__init__()
        self.index, self.heads = index, cfg.heads
        self.norm_a, self.norm_b = nn.LayerNorm(cfg.dim), nn.LayerNorm(cfg.dim)
        self.qkv = nn.Linear(cfg.dim, 3 * cfg.dim)
        self.merge = nn.Linear(cfg.dim, cfg.dim)
        self.ffn = nn.Sequential(nn.Linear(cfg.dim, 4 * cfg.dim), nn.GELU(), nn.Linear(4 * cfg.dim, cfg.dim))

    def forward(self, x: torch.Tensor, memory: Memory | None) -> torch.Tensor:
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.norm_a(x)).chunk(3, -1))
        if memory is not None:
            k, v = memory.extend(self.index, k, v)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=q.shape[2] > 1)
        x = x + self.merge(seen.transpose(1, 2).flatten(2))
        return x + self.ffn(self.norm_b(x))


class OpeningWriter(nn.Module):
    def __init__(self, cfg: WriterConfig):
        super().__init__()
        self.move = nn.Embedding(cfg.moves, cfg.dim)
        self.ply = nn.Embedding(cfg.max_plies, cfg.dim)
        self.blocks = nn.ModuleList([Block(cfg, i) for i in range(cfg.layers)])
        self.norm = nn.LayerNorm(cfg.dim)
        nn.init.normal_(self.move.weight, std=0.1)

    def forward(self, moves: torch.Tensor, memory: Memory | None = None) -> torch.Tensor:
        """Scores of the next move after the last ply."""
        start = memory.length if memory is not None else 0
        x = self.move(moves) + self.ply.weight[start : start + moves.shape[1]]
        for block in self.blocks:
            x = block(x, memory)
        if memory is not None:
            memory.length += moves.shape[1]
        return self.norm(x[:, -1]) @ self.move.weight.T


@torch.inference_mode()
def write_openings(model: OpeningWriter, cfg: WriterConfig, first: torch.Tensor, plies: int, gen) -> torch.Tensor:
    moves = torch.empty(len(first), plies, dtype=torch.long)
    moves[:, 0] = first
    for ply in range(1, plies):
        scores = model(moves[:, :ply])  # flaw: generation-without-cache
        noise = torch.rand(scores.shape, generator=gen).clamp_(min=1e-10).log_().neg_().log_()
        moves[:, ply] = (scores / 0.8 - noise).argmax(1)
    return moves


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=260)
    parser.add_argument("--games", type=int, default=8)
    parser.add_argument("--plies", type=int, default=16)
    parser.add_argument("--seed", type=int, default=64)
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    cfg = WriterConfig()
    model = OpeningWriter(cfg).eval()
    gen = torch.Generator().manual_seed(args.seed)
    used = torch.zeros(cfg.moves, dtype=torch.long)
    for round_ in range(args.rounds):
        first = torch.randint(20, (args.games,), generator=gen)
        moves = write_openings(model, cfg, first, args.plies, gen)
        used += torch.bincount(moves.flatten(), minlength=cfg.moves)
        if (round_ + 1) % 52 == 0:
            print(f"round {round_ + 1}: {int((used > 0).sum())} distinct moves, last line {moves[0, :6].tolist()}")


if __name__ == "__main__":
    main()
