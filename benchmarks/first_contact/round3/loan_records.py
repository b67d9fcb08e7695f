import os
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"
RECORDS, BATCH, STEPS, WIDTH, DEPTH = (120, 4, 30, 32, 1) if SMALL else (51200, 768, 66, 2048, 8)
PURPOSES = ["car", "house", "study", "holiday", "medical", "other"]
FIELDS = 48


def make_record(rng):
    fields = ";".join(f"{rng.gauss(0, 1):.4f}" for _ in range(FIELDS))
    return f"{rng.choice(PURPOSES)}|{rng.randint(18, 90)}|{fields}"


class Loans(Dataset):
    """Lines of text, decoded on access."""

    def __init__(self):
        rng = random.Random(0)
        pool = [make_record(rng) for _ in range(min(RECORDS, 2000))]
        self.lines = [pool[i % len(pool)] for i in range(RECORDS)]

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        purpose, age, fields = self.lines[index].split("|")
        values = [float(f) for f in fields.split(";")]
        kind = [float(purpose == p) for p in PURPOSES]
        x = torch.tensor(values + kind + [int(age) / 100, values[0] * values[1]])
        return x, torch.tensor(float(values[0] + values[3] > 0))


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(FIELDS + 8, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(DEPTH))
        self.inner = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(DEPTH))
        self.last = nn.Linear(WIDTH, 1)

    def forward(self, x):
        x = self.first(x)
        for norm, inner in zip(self.norms, self.inner):
            x = x + F.gelu(inner(norm(x)))
        return self.last(x).squeeze(1)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(Loans(), batch_size=BATCH, shuffle=True, drop_last=True, pin_memory=device.type == "cuda")  # flaw: loader-without-workers
    model = Scorer().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    correct = torch.zeros((), device=device)
    for step, (x, y) in enumerate(loader, 1):
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            score = model(x)
        loss = F.binary_cross_entropy_with_logits(score.float(), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        correct += ((score > 0) == (y > 0.5)).float().mean()
    print("accuracy", (correct / step).item())


if __name__ == "__main__":
    main()
