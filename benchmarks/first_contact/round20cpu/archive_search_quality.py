"""Search quality of a letters archive: encodes queries, ranks all letters, and reports reciprocal rank and nDCG."""
from functools import partial

import torch
from torch import nn

LETTERS, QUERIES, WIDTH = 4000, 307200, 64


def make_archive(seed):
    generator = torch.Generator().manual_seed(seed)
    letters = nn.functional.normalize(torch.randn(LETTERS, WIDTH, generator=generator), dim=1)
    wanted = torch.randint(LETTERS, (QUERIES,), generator=generator)
    raw = letters[wanted] + 0.35 * torch.randn(QUERIES, WIDTH, generator=generator)
    return letters, wanted, raw


def query_tower(seed):
    torch.manual_seed(seed)
    tower = nn.Sequential(nn.Linear(WIDTH, 128), nn.ReLU(), nn.Linear(128, WIDTH))
    return tower.eval()


def encode(tower, raw):
    return nn.functional.normalize(raw + 0.2 * tower(raw), dim=1)


def rank_of_wanted(scores, wanted):
    places = []  # flaw: python-loop-over-tensor
    for row, letter in zip(scores, wanted):  # flaw: python-loop-over-tensor
        better = row > row[letter]  # flaw: python-loop-over-tensor
        places.append(better.sum() + 1)  # flaw: python-loop-over-tensor
    return torch.stack(places)  # flaw: python-loop-over-tensor


def reciprocal(places):
    return 1 / places.float()


def discounted(places, depth):
    gain = 1 / torch.log2(places.float() + 1)
    return gain.where(places <= depth, 0.0)


def within(places, depth):
    return (places <= depth).float()


MEASURES = {
    "reciprocal rank": reciprocal,
    "nDCG@10": partial(discounted, depth=10),
    "recall@1": partial(within, depth=1),
    "recall@20": partial(within, depth=20),
}


@torch.inference_mode()
def evaluate(tower, letters, raw, wanted, portion=512, every=100):
    sums = dict.fromkeys(MEASURES, 0.0)
    seen = 0
    for number, (queries, targets) in enumerate(zip(raw.split(portion), wanted.split(portion)), 1):
        scores = encode(tower, queries) @ letters.T
        places = rank_of_wanted(scores, targets)
        for name, measure in MEASURES.items():
            sums[name] += measure(places).sum()
        seen += len(queries)
        if number % every == 0:
            print(f"{seen} queries: " + ", ".join(f"{name} {total / seen:.4f}" for name, total in sums.items()))
    return {name: float(total / seen) for name, total in sums.items()}


def main():
    letters, wanted, raw = make_archive(17)
    result = evaluate(query_tower(4), letters, raw, wanted)
    print("\n".join(f"{name:16} {value:.4f}" for name, value in result.items()))


if __name__ == "__main__":
    main()
