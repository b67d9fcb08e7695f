"""Two-tower retrieval: queries and products meet in one space, with in-batch negatives."""

from dataclasses import dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F

GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if GPU else "cpu")


@dataclass
class Settings:
    query_features: int = 512 if GPU else 16
    product_features: int = 768 if GPU else 24
    hidden: list = field(default_factory=lambda: [1024, 1024] if GPU else [32])
    embed: int = 256 if GPU else 16
    batch: int = 16_384 if GPU else 32
    pairs: int = 16_384 * 16 if GPU else 256
    steps: int = 400 if GPU else 8
    temperature: float = 0.05


class Tower(nn.Module):
    def __init__(self, features, hidden, embed):
        super().__init__()
        sizes = [features, *hidden]
        self.body = nn.Sequential(
            *[
                layer
                for a, b in zip(sizes, sizes[1:])
                for layer in (nn.Linear(a, b), nn.ReLU(inplace=True))
            ]
        )
        self.project = nn.Linear(sizes[-1], embed)

    def forward(self, x):
        return F.normalize(self.project(self.body(x)), dim=-1)


def in_batch_softmax(query, product, temperature):
    """Each query's own product against all the other products of the batch."""
    logits = ((query / temperature) @ product.t()).float()
    return F.cross_entropy(logits, torch.arange(len(query), device=query.device))


class RetrievalTask:
    def __init__(self, settings: Settings):
        self.s = settings
        self.query_tower = Tower(settings.query_features, settings.hidden, settings.embed).to(DEVICE)
        self.product_tower = Tower(settings.product_features, settings.hidden, settings.embed).to(DEVICE)
        parameters = [*self.query_tower.parameters(), *self.product_tower.parameters()]
        self.optimizer = torch.optim.AdamW(parameters, lr=1e-3, fused=GPU)

    def training_step(self, query, product):
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16, enabled=GPU):
            q, p = self.query_tower(query), self.product_tower(product)
            loss = in_batch_softmax(q, p, self.s.temperature)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    @torch.inference_mode()
    def hit_rate(self, query, product):
        q, p = self.query_tower(query), self.product_tower(product)
        best = (q @ p.t()).argmax(dim=1)
        return (best == torch.arange(len(q), device=DEVICE)).float().mean().item()


def purchases(s: Settings):
    taste = torch.randn(s.pairs, 32, device=DEVICE)
    query = taste @ torch.randn(32, s.query_features, device=DEVICE)
    product = taste @ torch.randn(32, s.product_features, device=DEVICE)
    dtype = torch.bfloat16 if GPU else torch.float32
    noise = torch.randn_like(product)
    return query.to(dtype), (product + noise).to(dtype)


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    settings = Settings()
    task = RetrievalTask(settings)
    queries, products = purchases(settings)
    blocks = settings.pairs // settings.batch
    loss = torch.zeros((), device=DEVICE)
    for step in range(settings.steps):
        rows = slice(step % blocks * settings.batch, (step % blocks + 1) * settings.batch)
        loss = task.training_step(queries[rows], products[rows])
        if (step + 1) % 100 == 0:
            print(f"step {step + 1} loss {loss.item():.4f}")
    sample = slice(0, min(4096, settings.batch))
    rate = task.hit_rate(queries[sample].float(), products[sample].float())
    print(f"loss {loss.item():.4f}, in-batch hit rate {rate:.3f}")
