"""Predict purchases from aggregated clickstream features (one wide table in memory)."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
device = torch.device("cuda" if CUDA else "cpu")

ROWS = 262144 if CUDA else 512
COLUMNS = 512 if CUDA else 16
WIDTH = 2048 if CUDA else 32
BATCH = 32768 if CUDA else 64
EPOCHS = 45 if CUDA else 2


def load_table(seed=7):
    """Stands for reading the feature store export."""
    rng = np.random.default_rng(seed)
    block = rng.standard_normal((ROWS // 8, COLUMNS), dtype=np.float32)
    table = np.concatenate([np.roll(block, i, axis=1) for i in range(8)])
    weights = rng.standard_normal(COLUMNS, dtype=np.float32)
    bought = (table @ weights > 0).astype(np.float32)
    return torch.from_numpy(table), torch.from_numpy(bought)


class ResidualMLP(nn.Module):
    def __init__(self, columns, width, depth=3):
        super().__init__()
        self.inp = nn.Linear(columns, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        x = self.inp(x)
        for norm, linear in zip(self.norms, self.hidden):
            x = x + F.gelu(linear(norm(x)))
        return self.out(x).squeeze(-1)


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    features, labels = load_table()  # flaw: pageable-host-copy
    model = ResidualMLP(COLUMNS, WIDTH).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
    rng = np.random.default_rng(0)

    for epoch in range(EPOCHS):
        correct = torch.zeros((), device=device)
        # the export is shuffled, so batches of neighbouring rows are random enough
        for start in rng.permutation(ROWS // BATCH) * BATCH:
            x = features[start : start + BATCH].to(device, non_blocking=True)  # flaw: pageable-host-copy
            y = labels[start : start + BATCH].to(device, non_blocking=True)  # flaw: pageable-host-copy
            with torch.autocast(device.type, dtype=torch.bfloat16):
                logits = model(x).float()
            loss = F.binary_cross_entropy_with_logits(logits, y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            correct += ((logits > 0) == (y > 0.5)).sum()
        if epoch % 10 == 0 or epoch == EPOCHS - 1:
            print(f"epoch {epoch}: accuracy {correct.item() / ROWS:.4f}")


if __name__ == "__main__":
    main()
