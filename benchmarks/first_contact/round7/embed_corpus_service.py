"""Embed a pinned corpus of passages with a bidirectional encoder."""

import torch
import torch.nn as nn
import torch.nn.functional as F

cuda = torch.cuda.is_available()
device = torch.device("cuda" if cuda else "cpu")
vocab, dim, depth, heads, length, batch = (16384, 768, 8, 12, 256, 128) if cuda else (99, 32, 2, 2, 8, 4)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, dim))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.Sequential(*[Layer() for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)

    def forward(self, ids):
        return F.normalize(self.norm(self.layers(self.embed(ids))).mean(1), dim=-1)


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    encoder = Encoder().to(device, torch.bfloat16).eval()
    batches = 300 if cuda else 4
    corpus = torch.randint(vocab, (batches, batch, length))
    corpus = corpus.pin_memory() if cuda else corpus
    vectors = torch.empty(batches, batch, dim, device=device, dtype=torch.bfloat16)
    for i, ids in enumerate(corpus):
        vectors[i] = encoder(ids.to(device, non_blocking=True))
    print(f"{batches * batch} passages, mean {vectors.float().mean().item():.6f}")


main()
