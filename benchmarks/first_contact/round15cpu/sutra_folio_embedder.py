"""Embeds folios of palm-leaf manuscripts and compares each batch with the one before."""
import os

import torch
from torch import nn

TINY = os.environ.get("TINY") == "1"
BATCHES, FOLIOS, SIGNS = (4, 2, 16) if TINY else (110, 32, 96)


class FolioEncoder(nn.Module):
    def __init__(self, width=192, depth=3):
        super().__init__()
        self.signs = nn.Embedding(400, width)
        layer = nn.TransformerEncoderLayer(width, 4, 3 * width, activation="gelu", batch_first=True)
        self.body = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)

    def forward(self, folios):
        return self.body(self.signs(folios)).mean(1)


class Shelf:
    def __init__(self, encoder):
        self.encoder = encoder.eval()
        self.previous = None

    def drift(self, folios):  # flaw: grad-in-eval
        vectors = nn.functional.normalize(self.encoder(folios), dim=1)
        score = 0.0 if self.previous is None else (vectors * self.previous).sum(1).mean().item()
        self.previous = vectors
        return score


def folios():
    source = torch.Generator().manual_seed(9)
    for _ in range(BATCHES):
        yield torch.randint(0, 400, (FOLIOS, SIGNS), generator=source)


if __name__ == "__main__":
    torch.manual_seed(9)
    shelf = Shelf(FolioEncoder())
    scores = [shelf.drift(batch) for batch in folios()]
    print(f"mean likeness {sum(scores) / len(scores):.4f}, least {min(scores[1:]):.4f}")
