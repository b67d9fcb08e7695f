"""Batched decoding of verses with a preallocated cache."""
import os
import torch
import torch.nn.functional as F
from torch import nn

if os.environ.get("SMALL") == "1":
    VOCAB, WIDTH, HEADS, DEPTH, BATCH, PROMPT, NEW = 128, 32, 2, 2, 2, 8, 30
else:
    VOCAB, WIDTH, HEADS, DEPTH, BATCH, PROMPT, NEW = 8192, 1024, 8, 10, 256, 384, 160


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, cache, start):
        b, t, _ = x.shape
        end = start + t
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        cache[0, :, :, start:end] = k
        cache[1, :, :, start:end] = v
        y = F.scaled_dot_product_attention(q, cache[0, :, :, :end], cache[1, :, :, :end], is_causal=start == 0)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.mlp(self.n2(x))


class Poet(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCAB, WIDTH), nn.Embedding(PROMPT + NEW, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(DEPTH))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, ids, caches, start):
        x = self.words(ids) + self.places.weight[start : start + ids.shape[1]]
        for layer, cache in zip(self.layers, caches):
            x = layer(x, cache, start)
        return self.head(self.norm(x[:, -1]))


@torch.inference_mode()
def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    poet = Poet().to(device, torch.bfloat16).eval()
    caches = torch.zeros(DEPTH, 2, BATCH, HEADS, PROMPT + NEW, WIDTH // HEADS, device=device, dtype=torch.bfloat16)
    verse = torch.randint(VOCAB, (BATCH, PROMPT + NEW), device=device)
    logits = poet(verse[:, :PROMPT], caches, 0)
    for at in range(PROMPT, PROMPT + NEW):
        verse[:, at] = logits.argmax(-1)
        if at + 1 < PROMPT + NEW:
            logits = poet(verse[:, at : at + 1], caches, at)
    print(verse[0, PROMPT : PROMPT + 10].tolist())


if __name__ == "__main__":
    main()
