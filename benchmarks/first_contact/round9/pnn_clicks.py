"""Product-based neural network (inner products of field embeddings) for click prediction."""

import torch
import torch.nn as nn
import torch.nn.functional as F

USE_GPU = torch.cuda.is_available()
DEVICE = "cuda" if USE_GPU else "cpu"
CONF = {
    "fields": 32 if USE_GPU else 8,
    "buckets": 8192 if USE_GPU else 50,
    "dim": 32 if USE_GPU else 8,
    "hidden": (1024, 512, 256) if USE_GPU else (32, 16),
    "batch": 32768 if USE_GPU else 64,
    "steps": 180 if USE_GPU else 8,
    "lr": 1e-3,
}


class FeaturesEmbedding(nn.Module):
    """All the fields share one table; each field has its own range of rows."""

    def __init__(self, fields, buckets, dim):
        super().__init__()
        self.table = nn.Embedding(fields * buckets, dim)
        nn.init.xavier_uniform_(self.table.weight)
        self.register_buffer("offsets", torch.arange(fields) * buckets)

    def forward(self, x):
        return self.table(x + self.offsets)


class InnerProductNetwork(nn.Module):
    """Inner product of each pair of fields, (batch, fields, dim) -> (batch, pairs)."""

    def __init__(self, fields):
        super().__init__()
        self.fields = fields

    def forward(self, emb):
        columns = emb.unbind(dim=1)
        products = []
        for i in range(self.fields - 1):  # flaw: python-loop-over-tensor
            for j in range(i + 1, self.fields):  # flaw: python-loop-over-tensor
                products.append((columns[i] * columns[j]).sum(dim=1))  # flaw: python-loop-over-tensor
        return torch.stack(products, dim=1)  # flaw: python-loop-over-tensor


class PNN(nn.Module):
    def __init__(self, fields, buckets, dim, hidden):
        super().__init__()
        self.embedding = FeaturesEmbedding(fields, buckets, dim)
        self.products = InnerProductNetwork(fields)
        width = fields * dim + fields * (fields - 1) // 2
        layers = []
        for size in hidden:
            layers += [nn.Linear(width, size), nn.ReLU(inplace=True)]
            width = size
        self.tower = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, x):
        emb = self.embedding(x)
        return self.tower(torch.cat([emb.flatten(1), self.products(emb)], dim=1)).squeeze(1)


def synthetic_clicks(rows, fields, buckets):
    x = torch.randint(0, buckets, (rows, fields), device=DEVICE)
    weights = torch.randn(fields, device=DEVICE)
    logits = ((x % 7).float() - 3.0) @ weights / fields**0.5
    return x, torch.bernoulli(torch.sigmoid(logits))


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model = PNN(CONF["fields"], CONF["buckets"], CONF["dim"], CONF["hidden"]).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=CONF["lr"], fused=USE_GPU)
    clicks, labels = synthetic_clicks(CONF["batch"] * 20, CONF["fields"], CONF["buckets"])
    running = torch.zeros((), device=DEVICE)
    for step in range(1, CONF["steps"] + 1):
        lo = (step % 20) * CONF["batch"]
        x, y = clicks[lo : lo + CONF["batch"]], labels[lo : lo + CONF["batch"]]
        with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=USE_GPU):
            logits = model(x)
        loss = F.binary_cross_entropy_with_logits(logits.float(), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        running.lerp_(loss.detach(), 0.05)
        if step % 60 == 0 or step == CONF["steps"]:
            print(f"step {step}: running loss {running.item():.4f}")


main()
