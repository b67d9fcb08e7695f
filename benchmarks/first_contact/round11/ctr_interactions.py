"""Click-through-rate model with pairwise interactions of embeddings (DLRM style), all fields in one table."""
import torch
from torch import nn
import torch.nn.functional as F

if torch.cuda.is_available():
    DEVICE, ROWS, WIDTH, HIDDEN, BATCH, STEPS = "cuda", 40_000, 64, (2048, 2048, 1024), 65_536, 130
else:
    DEVICE, ROWS, WIDTH, HIDDEN, BATCH, STEPS = "cpu", 20, 8, (32, 16), 32, 4
FIELDS = 15
NUMERIC = 16


class Interactions(nn.Module):
    """Dense part: numeric features, dot products of all pairs of vectors, and the top network."""

    def __init__(self):
        super().__init__()
        self.numeric = nn.Sequential(nn.Linear(NUMERIC, 256), nn.ReLU(), nn.Linear(256, WIDTH))
        sizes = ((FIELDS + 1) ** 2 + WIDTH, *HIDDEN)
        self.top = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.final = nn.Linear(sizes[-1], 8)  # one column per traffic source

    def forward(self, numeric, embedded, clicked, source):
        dense = self.numeric(numeric)
        vectors = torch.cat([dense[:, None], embedded.to(dense.dtype)], dim=1)
        pairs = torch.bmm(vectors, vectors.transpose(1, 2)) / WIDTH ** 0.5
        h = torch.cat([dense, pairs.flatten(1)], dim=1)
        for layer in self.top:
            h = F.relu(layer(h))
        logit = self.final(h).gather(1, source[:, None]).squeeze(1)
        return F.binary_cross_entropy_with_logits(logit.float(), clicked)


class ClickModel(nn.Module):
    def __init__(self):
        super().__init__()
        # every step touches most of the rows, so the gradient of the table is dense
        self.table = nn.Embedding(FIELDS * ROWS, WIDTH)
        nn.init.normal_(self.table.weight, std=0.05)
        self.dense = Interactions()
        self.register_buffer("offset", torch.arange(FIELDS) * ROWS, persistent=False)

    def forward(self, batch):
        embedded = self.table(batch["ids"] + self.offset)
        return self.dense(batch["numeric"], embedded, batch["clicked"], batch["source"])


def impressions(pool=6):
    """Batches on the device; the click depends on two of the fields and on the numeric features."""
    gen = torch.Generator(DEVICE).manual_seed(0)
    taste = torch.randn(ROWS, device=DEVICE, generator=gen)
    batches = []
    for _ in range(pool):
        ids = torch.randint(ROWS, (BATCH, FIELDS), device=DEVICE, generator=gen)
        numeric = torch.randn(BATCH, NUMERIC, device=DEVICE, generator=gen)
        logit = taste[ids[:, 0]] * taste[ids[:, 1]] + numeric[:, :3].sum(1) - 1.5
        clicked = torch.bernoulli(torch.sigmoid(logit), generator=gen)
        source = torch.randint(8, (BATCH,), device=DEVICE, generator=gen)
        batches.append(dict(ids=ids, numeric=numeric, clicked=clicked, source=source))
    return batches


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model = ClickModel().to(DEVICE)
    if DEVICE == "cuda":
        model.dense.compile()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    batches = impressions()
    losses = torch.zeros(STEPS, device=DEVICE)
    for step in range(STEPS):
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = model(batches[step % len(batches)])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses[step] = loss.detach()
    curve = losses.tolist()
    print(f"log loss {curve[0]:.4f} -> {curve[-1]:.4f}")


if __name__ == "__main__":
    main()
