"""Vectors for patent claims: inference in bf16 over length-sorted lots, results copied back while the next lot runs."""
import os
import typing as t

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
CUDA = torch.cuda.is_available()
dev = torch.device("cuda" if CUDA else "cpu")
CLAIMS, LOT, DIM, DEPTH, WORDS = (32, 8, 64, 2, 128) if TINY else (102400, 512, 768, 12, 32768)
LENGTHS = (8, 16) if TINY else (64, 128, 192)


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.word = nn.Embedding(WORDS, DIM)
        self.place = nn.Embedding(max(LENGTHS), DIM)
        self.blocks = nn.ModuleList(nn.ModuleDict(dict(
            n1=nn.LayerNorm(DIM), qkv=nn.Linear(DIM, 3 * DIM), out=nn.Linear(DIM, DIM),
            n2=nn.LayerNorm(DIM), up=nn.Linear(DIM, 4 * DIM), down=nn.Linear(4 * DIM, DIM))) for _ in range(DEPTH))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.word(ids) + self.place.weight[: ids.size(1)]
        for b in self.blocks:
            q, k, v = b["qkv"](b["n1"](x)).unflatten(2, (3, DIM // 64, 64)).permute(2, 0, 3, 1, 4)
            x = x + b["out"](F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
            x = x + b["down"](F.gelu(b["up"](b["n2"](x))))
        return F.normalize(x.mean(1).float(), dim=-1)


def lots() -> t.Iterator[torch.Tensor]:
    """Claims of equal length together: there is no padding."""
    g = torch.Generator().manual_seed(3)
    share = CLAIMS // len(LENGTHS)
    for n in LENGTHS:
        ids = torch.randint(0, WORDS, (share // LOT * LOT, n), generator=g, dtype=torch.int32)
        ids = ids.pin_memory() if CUDA else ids
        yield from ids.split(LOT)


@torch.inference_mode()
def main() -> None:
    torch.manual_seed(2)
    encoder = Encoder().to(dev, torch.bfloat16).eval()
    vectors = torch.empty(CLAIMS, DIM, pin_memory=CUDA)
    at = 0
    for ids in lots():
        found = encoder(ids.to(dev, non_blocking=True))
        vectors[at:at + len(found)].copy_(found, non_blocking=True)
        at += len(found)
    if CUDA:
        torch.cuda.synchronize()
    print(at, "claims; mean cosine to the first %.4f" % (vectors[:at] @ vectors[0]).mean().item())


if __name__ == "__main__":
    main()
