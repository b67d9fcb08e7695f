"""Click-through rate: hashed categorical fields, one table with offsets, and an MLP."""

import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
FIELDS = 26
BUCKETS = 300_000 if CUDA else 50
WIDTH = 64 if CUDA else 8
HIDDEN = (2048, 2048, 1024) if CUDA else (32, 16)
ROWS = 1_500_000 if CUDA else 2_000
BATCH = 16_384 if CUDA else 64
STEPS = 350 if CUDA else 20


class FieldEmbedding(nn.Module):
    def __init__(self, fields, buckets, width):
        super().__init__()
        self.table = nn.Embedding(fields * buckets, width)  # flaw: dense-embedding-gradient
        self.register_buffer("offsets", torch.arange(fields) * buckets)
        nn.init.normal_(self.table.weight, std=0.01)

    def forward(self, x):
        return self.table(x + self.offsets).flatten(1)


class DeepCTR(nn.Module):
    def __init__(self):
        super().__init__()
        self.fields = FieldEmbedding(FIELDS, BUCKETS, WIDTH)
        layers, width = [], FIELDS * WIDTH
        for hidden in HIDDEN:
            layers += [nn.Linear(width, hidden), nn.ReLU(inplace=True)]
            width = hidden
        self.mlp = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, x):
        return self.mlp(self.fields(x)).squeeze(1)


def make_log():
    """A click log with long-tailed fields."""
    uniform = torch.rand(ROWS, FIELDS, device=DEVICE)
    x = (uniform.pow(2.5) * BUCKETS).int()
    clicks = (torch.rand(ROWS, device=DEVICE) < 0.1 + 0.5 * uniform[:, 0] * uniform[:, 1]).float()
    return x, clicks


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    x, clicks = make_log()
    with DEVICE:
        model = DeepCTR()
    sparse_side = torch.optim.Adagrad(model.fields.parameters(), lr=0.02)
    dense_side = torch.optim.Adam(model.mlp.parameters(), lr=1e-3, fused=CUDA)

    for step in range(STEPS):
        rows = torch.randint(ROWS, (BATCH,), device=DEVICE)
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=CUDA):
            logits = model(x[rows])
        loss = F.binary_cross_entropy_with_logits(logits.float(), clicks[rows])
        sparse_side.zero_grad(set_to_none=True)
        dense_side.zero_grad(set_to_none=True)
        loss.backward()
        sparse_side.step()
        dense_side.step()
        if (step + 1) % 100 == 0:
            print(f"step {step + 1}: logloss {loss.item():.4f}")
    print(f"logloss {loss.item():.5f}")


if __name__ == "__main__":
    main()
