"""`slow.py` as one would write it with care: the forward pass under autocast, in bfloat16.

    warpline profile examples/fp32-bert/fixed.py
"""

import random
import tempfile
from pathlib import Path

import torch
from bert import Bert, Config
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = "cuda" if torch.cuda.is_available() else "cpu"
if device == "cuda":
    config, BATCH, LENGTH, LINES = Config(), 64, 128, 20_000
else:
    config, BATCH, LENGTH, LINES = Config(2000, 128, 2, 4, 512), 8, 64, 2_000
TEXT = Path(tempfile.gettempdir()) / f"warpline-example-text-{LINES}.txt"
PAD, MASK, UNKNOWN = 0, 1, 2


def make_text():
    """Lines of words whose frequencies fall as in an encyclopedia's (Zipf), with headings between."""
    if TEXT.exists():
        return
    random.seed(0)
    words = ["".join(random.choices("etaoinshrdlu", k=random.randint(2, 9))) for _ in range(8000)]
    weights = [1 / (rank + 3) for rank in range(len(words))]
    lines = []
    for index in range(LINES):
        if index % 40 == 0:
            lines.append(" = " + " ".join(random.choices(words, k=3)).title() + " = ")
        lines.append(" ".join(random.choices(words, weights, k=random.randint(40, 160))) + " .")
    scratch = TEXT.with_suffix(".part")
    scratch.write_text("\n".join(lines))
    scratch.replace(TEXT)


class MaskedText(Dataset):
    """One line a sample: words to ids, 15 % of them masked."""

    def __init__(self, path, vocabulary, length):
        self.lines = [line for line in path.read_text().splitlines() if not line.startswith(" =")]
        counts = {}
        for line in self.lines:
            for word in line.split():
                counts[word] = counts.get(word, 0) + 1
        common = sorted(counts, key=counts.get, reverse=True)[: vocabulary - 3]
        self.ids = {word: index + 3 for index, word in enumerate(common)}
        self.length = length

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        ids = [self.ids.get(word, UNKNOWN) for word in self.lines[index].split()][: self.length]
        ids += [PAD] * (self.length - len(ids))
        labels = torch.tensor(ids)
        tokens = labels.clone()
        masked = (torch.rand(self.length) < 0.15) & (labels != PAD)
        tokens[masked] = MASK
        labels[~masked] = -100
        return tokens, labels


def main():
    torch.manual_seed(0)
    make_text()
    data = MaskedText(TEXT, config.vocabulary, LENGTH)
    loader = DataLoader(data, BATCH, shuffle=True, num_workers=2, pin_memory=device == "cuda", drop_last=True)
    model = Bert(config).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=device == "cuda")
    for step, (tokens, labels) in enumerate(loader):
        tokens = tokens.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        with torch.autocast(device, torch.bfloat16):
            logits = model(tokens)
            loss = criterion(logits.flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
