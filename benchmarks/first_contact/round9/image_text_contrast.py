"""Contrastive training of an image tower and a text tower (symmetric cross entropy over the batch)."""

from dataclasses import dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Tower:
    tokens: int
    inputs: int
    dim: int
    depth: int
    heads: int


@dataclass
class Run:
    image: Tower = field(default_factory=lambda: Tower(144, 768, 512, 8, 8))
    text: Tower = field(default_factory=lambda: Tower(32, 16384, 512, 6, 8))
    joint: int = 512
    batch: int = 256
    steps: int = 120
    pool: int = 2048


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x, causal):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        x = x + self.out(y.transpose(1, 2).reshape(b, n, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Encoder(nn.Module):
    def __init__(self, t: Tower, joint, embedding, causal):
        super().__init__()
        self.embedding, self.causal = embedding, causal
        self.position = nn.Parameter(torch.randn(t.tokens, t.dim) * 0.02)
        self.layers = nn.ModuleList(Layer(t.dim, t.heads) for _ in range(t.depth))
        self.norm, self.project = nn.LayerNorm(t.dim), nn.Linear(t.dim, joint, bias=False)

    def forward(self, x):
        x = self.embedding(x) + self.position
        for layer in self.layers:
            x = layer(x, self.causal)
        pooled = x[:, -1] if self.causal else x.mean(1)
        return F.normalize(self.project(self.norm(pooled)).float(), dim=-1)


class TwoTowers(nn.Module):
    def __init__(self, run: Run):
        super().__init__()
        self.image = Encoder(run.image, run.joint, nn.Linear(run.image.inputs, run.image.dim), causal=False)
        self.text = Encoder(run.text, run.joint, nn.Embedding(run.text.inputs, run.text.dim), causal=True)
        self.log_scale = nn.Parameter(torch.tensor(2.6))

    def forward(self, patches, words, target):
        a, b = self.image(patches), self.text(words)
        logits = self.log_scale.exp() * (a @ b.t())
        return (F.cross_entropy(logits.float(), target) + F.cross_entropy(logits.float().t(), target)) / 2


def train(run: Run, device: torch.device):
    model = TwoTowers(run).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, betas=(0.9, 0.98), weight_decay=0.2, fused=device.type == "cuda")
    patches = torch.randn(run.pool, run.image.tokens, run.image.inputs, device=device, dtype=torch.bfloat16)
    words = torch.randint(0, run.text.inputs, (run.pool, run.text.tokens), device=device)
    target = torch.arange(run.batch, device=device)
    losses = torch.zeros(run.steps, device=device)
    for step in range(run.steps):
        rows = torch.randperm(run.pool, device=device)[: run.batch]
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = model(patches[rows], words[rows], target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            model.log_scale.clamp_(0, 4.6)
            losses[step] = loss
    return losses.cpu()


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    if torch.cuda.is_available():
        losses = train(Run(), torch.device("cuda"))
    else:
        losses = train(Run(Tower(4, 48, 32, 1, 2), Tower(6, 50, 32, 1, 2), 16, 4, 3, 8), torch.device("cpu"))
    print("first", losses[0].item(), "last", losses[-1].item())
