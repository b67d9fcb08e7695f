"""Loan default model: table in pandas, categorical embeddings, wide and deep network."""
import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
EPOCHS = 7
CATEGORIES = {"purpose": 14, "state": 50, "grade": 7}
NUMBERS = ["amount", "income", "dti", "age", "lines", "util"]


def loans(n):
    rng = np.random.default_rng(30)
    frame = pd.DataFrame({k: rng.integers(0, m, n) for k, m in CATEGORIES.items()})
    for name in NUMBERS:
        frame[name] = rng.standard_normal(n).astype(np.float32)
    risk = frame["dti"] - frame["income"] + 0.4 * frame["grade"] - 2.0
    frame["default"] = (rng.random(n) < 1 / (1 + np.exp(-risk))).astype(np.float32)
    return frame


class LoanTable(Dataset):
    def __init__(self, frame):
        self.cats = np.array(frame[list(CATEGORIES)], np.int64)
        self.nums = np.array(frame[NUMBERS], np.float32)
        self.target = np.array(frame["default"], np.float32)

    def __len__(self):
        return len(self.target)

    def __getitem__(self, i):
        return self.cats[i], self.nums[i], self.target[i]


class WideDeep(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(m, 16) for m in CATEGORIES.values())
        self.deep = nn.Sequential(nn.Linear(48 + len(NUMBERS), 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(),
                                  nn.Linear(256, 1))
        self.wide = nn.Linear(len(NUMBERS), 1)

    def forward(self, cats, nums):
        e = [table(cats[:, k]) for k, table in enumerate(self.tables)]
        return (self.deep(torch.cat([*e, nums], 1)) + self.wide(nums)).squeeze(1)


def run():
    torch.manual_seed(30)
    loader = DataLoader(LoanTable(loans(3840)), batch_size=64, shuffle=True)
    model = WideDeep()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for epoch in range(EPOCHS):
        losses = []
        for cats, nums, target in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(cats, nums), target)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.detach())
        print(f"epoch {epoch + 1}: {torch.stack(losses).mean().item():.4f}")


if __name__ == "__main__":
    run()
