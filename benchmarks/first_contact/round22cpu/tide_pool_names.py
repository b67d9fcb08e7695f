"""Assigns museum labels of intertidal finds to families.  A batch is one collector's box.

Collectors have their own habits, so the labels of one box are about as long as each other.
"""
import string
import time

import numpy as np
import torch
from torch import nn

ALPHABET = {c: i + 1 for i, c in enumerate(string.ascii_lowercase + " .-")}
PAD, WIDEST, FAMILIES, BOX = 0, 192, 24, 24


def invent_boxes(boxes, seed):
    rng = np.random.default_rng(seed)
    stems = ["".join(rng.choice(list("aeioulmnrst"), 5)) for _ in range(FAMILIES)]
    filler = ["".join(rng.choice(list(string.ascii_lowercase), n)) for n in rng.integers(2, 8, 300)]
    for _ in range(boxes):
        wordy = int(np.clip(rng.lognormal(3.6, 0.55), 14, WIDEST - 8))
        texts, families = [], rng.integers(FAMILIES, size=BOX)
        for family in families:
            goal, words = wordy + rng.integers(-6, 7), [stems[family] + "idae"]
            while sum(map(len, words)) + len(words) < goal:
                words.insert(rng.integers(len(words) + 1), filler[rng.integers(300)])
            texts.append(" ".join(words)[: max(goal, 12)])
        yield texts, families


class Encoder:
    """Text to numbers, on a sheet that fits the longest label of the collection."""

    def __init__(self, widest):
        self.widest = widest

    def __call__(self, texts):
        sheet = np.full((len(texts), self.widest), PAD, np.int64)  # flaw: padded-batches
        for row, text in zip(sheet, texts):
            row[: len(text)] = [ALPHABET[c] for c in text]
        return torch.from_numpy(sheet)


class Reader(nn.Module):
    def __init__(self, dim=96, heads=4, depth=2):
        super().__init__()
        self.letters = nn.Embedding(len(ALPHABET) + 1, dim, padding_idx=PAD)
        self.places = nn.Parameter(torch.randn(WIDEST, dim) * 0.02)
        layer = nn.TransformerEncoderLayer(
            dim, heads, 2 * dim, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.stack = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.family = nn.Linear(dim, FAMILIES)

    def forward(self, sheet):
        blank = sheet == PAD
        h = self.letters(sheet) + self.places[: sheet.shape[1]]
        h = self.stack(h, src_key_padding_mask=blank)
        keep = (~blank).unsqueeze(2)
        return self.family((h * keep).sum(1) / keep.sum(1))


def endless(items, rng):
    while True:
        for i in rng.permutation(len(items)):
            yield items[i]


class Bench:
    every = 30

    def __init__(self, device):
        torch.manual_seed(12)
        self.device = device
        encode = Encoder(WIDEST)
        self.boxes = [
            (encode(texts).to(device), torch.from_numpy(families).to(device)) for texts, families in invent_boxes(200, 13)
        ]
        self.reader = Reader().to(device)
        self.loss = nn.CrossEntropyLoss()
        self.optim = torch.optim.AdamW(self.reader.parameters(), lr=1e-3, fused=True)

    def fit(self, sheet, families):
        with torch.autocast("cuda", torch.bfloat16, enabled=self.device == "cuda"):
            loss = self.loss(self.reader(sheet), families)
        self.optim.zero_grad(set_to_none=True)
        loss.backward()
        self.optim.step()
        return loss.detach()

    def work(self, steps):
        bin_, begin = torch.zeros((), device=self.device), time.time()
        for step, box in zip(range(1, steps + 1), endless(self.boxes, np.random.default_rng(14))):
            bin_ += self.fit(*box)
            if step % self.every == 0:
                ms = (time.time() - begin) / self.every * 1e3
                print(f"{step:4d} boxes, loss {bin_.item() / self.every:.4f}, {ms:.0f} ms a box", flush=True)
                bin_.zero_()
                begin = time.time()


if __name__ == "__main__":
    torch.set_float32_matmul_precision("high")
    Bench("cuda" if torch.cuda.is_available() else "cpu").work(240)
