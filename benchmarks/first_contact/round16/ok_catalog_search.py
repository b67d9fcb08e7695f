"""Exact nearest products for a stream of queries, in blocks of the catalogue."""
import os

import torch

TINY = os.environ.get("TINY") == "1"
ITEMS, DIM, QUERIES, BLOCK, ROUNDS, K = (4096, 32, 16, 1024, 6, 4) if TINY else (2_097_152, 256, 2048, 262144, 200, 16)
device = "cuda" if torch.cuda.is_available() else "cpu"


def search(queries, blocks):
    best, where = [], []
    for number, block in enumerate(blocks):
        value, index = (queries @ block.T).topk(K, dim=1)
        best.append(value)
        where.append(index + number * BLOCK)
    top, order = torch.cat(best, 1).topk(K, dim=1)
    return top, torch.cat(where, 1).gather(1, order)


@torch.inference_mode()
def main():
    torch.manual_seed(5)
    catalogue = torch.randn(ITEMS, DIM, device=device, dtype=torch.bfloat16)
    blocks = catalogue.split(BLOCK)
    stream = torch.randn(16, QUERIES, DIM, device=device, dtype=torch.bfloat16)
    hits = torch.zeros((), device=device)
    for i in range(ROUNDS):
        top, ids = search(stream[i % 16], blocks)
        hits += top.float().mean()
    print(f"mean score {hits.item() / ROUNDS:.3f}, last ids {ids[0, :3].tolist()}")


main()
