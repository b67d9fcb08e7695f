"""Loan default prediction: many categorical columns, one embedding each, and a deep network."""

import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")


class Columns:
    """The table, column by column, as a columnar file gives it."""

    def __init__(self, rows, cardinalities, seed=0):
        generator = torch.Generator().manual_seed(seed)
        self.rows = rows
        self.columns = {}
        for i, size in enumerate(cardinalities):
            column = torch.randint(size, (rows,), generator=generator)
            self.columns[f"cat_{i}"] = column.pin_memory() if CUDA else column
        score = sum(c.float() / n for c, n in zip(self.columns.values(), cardinalities[:8]))
        target = (score > score.mean()).float()
        self.columns["target"] = target.pin_memory() if CUDA else target

    def batches(self, size):
        for i in range(0, self.rows - size + 1, size):
            yield {name: column[i : i + size] for name, column in self.columns.items()}


class DeepTable(nn.Module):
    def __init__(self, cardinalities, dim, width, depth):
        super().__init__()
        self.embeddings = nn.ModuleDict(
            {f"cat_{i}": nn.Embedding(n, dim) for i, n in enumerate(cardinalities)}
        )
        sizes = [dim * len(cardinalities)] + [width] * depth
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.out = nn.Linear(width, 1)

    def forward(self, batch):
        parts = [table(batch[name]) for name, table in self.embeddings.items()]
        x = torch.cat(parts, dim=1)
        for layer in self.layers:
            x = F.relu(layer(x))
        return self.out(x).squeeze(-1)


def train(rows, batch_size, epochs, cardinalities, dim, width, depth):
    data = Columns(rows, cardinalities)
    model = DeepTable(cardinalities, dim, width, depth).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    step = 0
    for epoch in range(epochs):
        for batch in data.batches(batch_size):
            batch = {k: v.to(DEVICE, non_blocking=True) for k, v in batch.items()}
            target = batch.pop("target")
            with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
                logits = model(batch)
            loss = F.binary_cross_entropy_with_logits(logits.float(), target)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            step += 1
            if step % 100 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
    print(f"finished, loss {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    if CUDA:
        sizes = [20 + 37 * i % 900 for i in range(112)]
        train(8192 * 32, 8192, 12, sizes, dim=16, width=4096, depth=5)
    else:
        train(256, 64, 2, [5, 9, 13], dim=4, width=16, depth=2)
