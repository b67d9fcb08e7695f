"""How often does a photograph of a stamp find its entry in the catalogue? Recall at 1, 10 and 50 of a frozen encoder."""

from functools import partial
from itertools import islice
import time

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_float32_matmul_precision("high")
ENTRIES, WIDTH, SIDE, PHOTOS, BATCHES = 196_608, 256, 96, 128, 800


def encoder():
    """Patches of 8 x 8 pixels through four transformer layers, on average."""
    torch.manual_seed(19)
    layer = partial(nn.TransformerEncoderLayer, 512, 8, 2048, 0.0, F.gelu, batch_first=True, norm_first=True)
    return nn.Sequential(nn.Linear(192, 512), *[layer() for _ in range(4)], nn.Linear(512, WIDTH))


def embed(net, images):
    patches = F.pixel_unshuffle(images, 8).flatten(2).transpose(1, 2)
    with torch.autocast(device, dtype=torch.bfloat16):
        vectors = net(patches).mean(1)
    return F.normalize(vectors.float(), dim=1)


def photographs(designs, seed):
    """Batches of photographs: a design, its number, and what the collector's lamp adds."""
    rng = torch.Generator(device=device).manual_seed(seed)
    while True:
        which = torch.randint(len(designs), (PHOTOS,), generator=rng, device=device)
        lamp = torch.randn(PHOTOS, *designs.shape[1:], generator=rng, device=device)
        yield designs[which] + 2 * lamp.to(designs.dtype), which


class Catalogue:
    def __init__(self, vectors):
        self.vectors = vectors

    def nearness(self, queries):
        return queries @ self.vectors.T

    def first(self, queries, count):
        nearness = self.nearness(queries)
        entries = nearness.topk(count, dim=1)[1]
        return entries[:, :count]


class Recall:
    """Sums on the device, read when a report is due."""

    def __init__(self, *depths):
        self.depths = depths
        self.hits = torch.zeros(len(depths), device=device)
        self.asked = 0

    def add(self, found, wanted):
        right = found == wanted[:, None]
        self.hits += torch.stack([right[:, :depth].any(1).sum() for depth in self.depths])
        self.asked += len(wanted)

    def __str__(self):
        shares = (self.hits / self.asked).tolist()
        return ", ".join(f"R@{depth} {share:.3f}" for depth, share in zip(self.depths, shares))


@torch.inference_mode()
def main():
    net = encoder().to(device).eval()
    rng = torch.Generator(device=device).manual_seed(3)
    designs = torch.randn(4096, 3, SIDE, SIDE, generator=rng, device=device).bfloat16()
    known = torch.cat([embed(net, part) for part in designs.split(256)])
    others = F.normalize(torch.randn(ENTRIES - len(known), WIDTH, generator=rng, device=device), dim=1)
    middle = known.mean(0)
    catalogue = Catalogue(torch.cat([known, F.normalize(middle + others * (known - middle).norm(dim=1).mean(), dim=1)]))
    recall = Recall(1, 10, 50)
    began = time.perf_counter()
    for number, (images, wanted) in enumerate(islice(photographs(designs, 4), BATCHES), 1):
        found = catalogue.first(embed(net, images), 50)
        recall.add(found, wanted)
        if number % 200 == 0:
            print(f"{number} batches: {recall} ({(time.perf_counter() - began) / number * 1e3:.1f} ms a batch)")


main()
