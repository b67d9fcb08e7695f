"""Perplexity of a language model on a held-out corpus, in windows with a stride."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if GPU else "cpu")
DTYPE = torch.bfloat16 if GPU else torch.float32
SETTINGS = dict(
    vocab=32000 if GPU else 100,
    dim=1536 if GPU else 32,
    heads=12 if GPU else 2,
    layers=16 if GPU else 2,
    window=2048 if GPU else 32,
)
BATCH = 4 if GPU else 2
WINDOWS = 960 if GPU else 8


class DecoderLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(dim), nn.RMSNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)
        self.up = nn.Linear(dim, 4 * dim, bias=False)
        self.down = nn.Linear(4 * dim, dim, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class LanguageModel(nn.Module):
    def __init__(self, vocab, dim, heads, layers, window):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.position = nn.Embedding(window, dim)
        self.layers = nn.Sequential(*[DecoderLayer(dim, heads) for _ in range(layers)])
        self.norm = nn.RMSNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)

    def hidden(self, ids):
        return self.norm(self.layers(self.embed(ids) + self.position.weight[: ids.shape[1]]))


def windows(corpus, size, stride):
    """Half-overlapping windows; only the new half of each one counts."""
    return corpus.unfold(0, size + 1, stride)


@torch.inference_mode()
def negative_log_likelihood(model, corpus, size):
    stride = size // 2
    total = torch.zeros((), device=DEVICE)
    counted = 0
    for batch in windows(corpus, size, stride).split(BATCH):
        hidden = model.hidden(batch[:, :-1])[:, -stride:]
        targets = batch[:, 1:][:, -stride:]
        logits = model.head(hidden).float()
        total += F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")
        counted += targets.numel()
    return total.item(), counted


def main():
    torch.manual_seed(0)
    with torch.device(DEVICE):
        model = LanguageModel(**SETTINGS).to(DTYPE).eval()
    size = SETTINGS["window"]
    length = size + 1 + (WINDOWS - 1) * (size // 2)
    corpus = torch.randint(SETTINGS["vocab"], (length,), device=DEVICE)
    total, counted = negative_log_likelihood(model, corpus, size)
    print(f"{counted} tokens, nll {total / counted:.4f}, perplexity {math.exp(total / counted):.1f}")


if __name__ == "__main__":
    main()
