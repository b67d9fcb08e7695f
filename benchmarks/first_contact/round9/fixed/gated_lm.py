"""Train a gated (SwiGLU) decoder in pure bfloat16, with normalised queries and keys."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, IterableDataset

HAVE_CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda", 0) if HAVE_CUDA else torch.device("cpu")
PRESETS = {
    "h100": dict(dim=1024, n_layers=10, n_heads=8, hidden=2816, vocab=32000, seq=1024, batch=16),
    "tiny": dict(dim=32, n_layers=2, n_heads=2, hidden=64, vocab=256, seq=32, batch=2),
}


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


class Attention(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.n_heads, self.head_dim = p["n_heads"], p["dim"] // p["n_heads"]
        self.wq = nn.Linear(p["dim"], p["dim"], bias=False)
        self.wk = nn.Linear(p["dim"], p["dim"], bias=False)
        self.wv = nn.Linear(p["dim"], p["dim"], bias=False)
        self.wo = nn.Linear(p["dim"], p["dim"], bias=False)
        self.q_norm, self.k_norm = RMSNorm(self.head_dim), RMSNorm(self.head_dim)

    def forward(self, x):
        b, t, _ = x.shape
        split = (b, t, self.n_heads, self.head_dim)
        q = self.q_norm(self.wq(x).view(split)).transpose(1, 2)
        k = self.k_norm(self.wk(x).view(split)).transpose(1, 2)
        v = self.wv(x).view(split).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(b, t, -1))


class FeedForward(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.w1 = nn.Linear(p["dim"], p["hidden"], bias=False)
        self.w2 = nn.Linear(p["hidden"], p["dim"], bias=False)
        self.w3 = nn.Linear(p["dim"], p["hidden"], bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class TransformerBlock(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.attention, self.feed_forward = Attention(p), FeedForward(p)
        self.attention_norm, self.ffn_norm = RMSNorm(p["dim"]), RMSNorm(p["dim"])

    def forward(self, x):
        h = x + self.attention(self.attention_norm(x))
        return h + self.feed_forward(self.ffn_norm(h))


class Transformer(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.tok_embeddings = nn.Embedding(p["vocab"], p["dim"])
        self.pos_embeddings = nn.Embedding(p["seq"], p["dim"])
        self.layers = nn.ModuleList(TransformerBlock(p) for _ in range(p["n_layers"]))
        self.norm = RMSNorm(p["dim"])
        self.output = nn.Linear(p["dim"], p["vocab"], bias=False)
        for w in self.parameters():
            if w.dim() > 1:
                nn.init.normal_(w, std=0.02)

    def forward(self, tokens):
        h = self.tok_embeddings(tokens) + self.pos_embeddings.weight[: tokens.size(1)]
        for layer in self.layers:
            h = layer(h)
        return self.output(self.norm(h))


class Shards(IterableDataset):
    """Endless stream of ready batches (tokens, next tokens)."""

    def __init__(self, p):
        self.p = p

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        g = torch.Generator().manual_seed(info.id if info else 0)
        while True:
            size = (self.p["batch"], self.p["seq"] + 1)
            chunk = torch.randint(0, self.p["vocab"], size, generator=g)
            yield chunk[:, :-1].contiguous(), chunk[:, 1:].contiguous()


def train(steps, preset):
    p = PRESETS[preset]
    with DEVICE:
        model = Transformer(p).to(torch.bfloat16 if HAVE_CUDA else torch.float32)
    optim = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), fused=HAVE_CUDA)
    workers = 4 if HAVE_CUDA else 0
    loader = DataLoader(Shards(p), batch_size=None, num_workers=workers, pin_memory=HAVE_CUDA)
    stream = iter(loader)
    for step in range(1, steps + 1):
        tokens, targets = (t.to(DEVICE, non_blocking=True) for t in next(stream))
        loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
        loss.backward()
        optim.step()
        optim.zero_grad()
        if step % 50 == 0 or step == steps:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(42)
    train(110 if HAVE_CUDA else 5, "h100" if HAVE_CUDA else "tiny")
