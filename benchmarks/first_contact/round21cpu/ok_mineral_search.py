"""Serves searches for mineral spectra: encodes a block of queries, returns the ten nearest references."""
import itertools
import logging

import torch
import torch.nn.functional as F
from torch import nn

CHANNELS, CODE, REFERENCES, ROWS = 512, 128, 12_288, 192


def encoder():
    return nn.Sequential(nn.Linear(CHANNELS, 768), nn.ReLU(), nn.Linear(768, 768), nn.ReLU(), nn.Linear(768, CODE))


class SpectrumIndex:
    def __init__(self, net):
        self.net = net.eval()
        self.codes = torch.empty(CODE, 0)

    @torch.inference_mode()
    def build(self, spectra):
        parts = [F.normalize(self.net(part), dim=1) for part in spectra.split(1024)]
        self.codes = torch.cat(parts).T.contiguous()
        return self

    @torch.inference_mode()
    def nearest(self, spectra, count):
        likeness = F.normalize(self.net(spectra), dim=1) @ self.codes
        return likeness.topk(count, dim=1)


def blocks_of_queries(references, generator):
    while True:
        truth = torch.randint(REFERENCES, (ROWS,), generator=generator)
        yield torch.randn(ROWS, CHANNELS, generator=generator).mul_(0.5).add_(references[truth]), truth


def main(blocks=900, report=90):
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.manual_seed(6)
    generator = torch.Generator().manual_seed(7)
    references = torch.randn(REFERENCES, CHANNELS, generator=generator)
    index = SpectrumIndex(encoder()).build(references)
    hits, first = torch.zeros(2, dtype=torch.long)
    with torch.inference_mode():
        queries = itertools.islice(blocks_of_queries(references, generator), blocks)
        for number, (spectra, truth) in enumerate(queries, 1):
            found = index.nearest(spectra, 10).indices
            same = found == truth[:, None]
            hits += same.sum()
            first += same[:, 0].sum()
            if number % report == 0:
                asked = number * ROWS
                logging.info("%7d queries  in the ten %.4f  first %.4f", asked, hits.item() / asked, first.item() / asked)


if __name__ == "__main__":
    main()
