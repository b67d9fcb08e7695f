"""Classify long documents with a transformer encoder."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


class Config:
    on_gpu = torch.cuda.is_available()
    vocab = 30720 if on_gpu else 100
    dim = 768 if on_gpu else 32
    heads = 12 if on_gpu else 2
    layers = 8 if on_gpu else 2
    length = 2048 if on_gpu else 32
    classes = 20
    batch = 6 if on_gpu else 2
    steps = 140 if on_gpu else 5
    lr = 3e-5
    device = torch.device("cuda" if on_gpu else "cpu")


class EncoderBlock(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads = cfg.heads
        self.norm1 = nn.LayerNorm(cfg.dim)
        self.qkv = nn.Linear(cfg.dim, 3 * cfg.dim)
        self.proj = nn.Linear(cfg.dim, cfg.dim)
        self.norm2 = nn.LayerNorm(cfg.dim)
        self.mlp = nn.Sequential(
            nn.Linear(cfg.dim, 4 * cfg.dim), nn.GELU(), nn.Linear(4 * cfg.dim, cfg.dim)
        )

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.norm2(x))


class DocumentClassifier(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Embedding(cfg.vocab, cfg.dim)
        self.position = nn.Parameter(torch.randn(cfg.length, cfg.dim) * 0.02)
        self.blocks = nn.ModuleList(EncoderBlock(cfg) for _ in range(cfg.layers))
        self.norm = nn.LayerNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.classes)

    def forward(self, ids):
        x = self.embed(ids) + self.position
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)  # flaw: needless-checkpointing
        return self.head(self.norm(x.mean(dim=1)))


class Metrics:
    def __init__(self, device):
        self.loss = torch.zeros((), device=device)
        self.correct = torch.zeros((), device=device)
        self.seen = 0

    def update(self, loss, logits, labels):
        self.loss += loss.detach() * len(labels)
        self.correct += (logits.argmax(1) == labels).sum()
        self.seen += len(labels)

    def __str__(self):
        return f"loss {self.loss.item() / self.seen:.4f} acc {self.correct.item() / self.seen:.3f}"


def run(cfg):
    model = DocumentClassifier(cfg).to(cfg.device)
    no_decay = [p for p in model.parameters() if p.ndim < 2]
    decay = [p for p in model.parameters() if p.ndim >= 2]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.01}, {"params": no_decay, "weight_decay": 0.0}],
        lr=cfg.lr,
        fused=True,
    )
    documents = torch.randint(cfg.vocab, (cfg.batch * 16, cfg.length), device=cfg.device)
    labels = documents[:, 0] % cfg.classes
    metrics = Metrics(cfg.device)
    for step in range(cfg.steps):
        rows = torch.randint(len(documents), (cfg.batch,), device=cfg.device)
        ids, target = documents[rows], labels[rows]
        with torch.autocast(cfg.device.type, dtype=torch.bfloat16):
            logits = model(ids)
            loss = F.cross_entropy(logits, target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        metrics.update(loss, logits, target)
        if (step + 1) % 35 == 0 or step + 1 == cfg.steps:
            print(f"step {step + 1} {metrics}")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    run(Config)
