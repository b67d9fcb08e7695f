"""Samples molecule strings from a small decoder-only transformer."""

import torch
import torch.nn.functional as F
from torch import nn

ALPHABET = "^$CNOFSclnos()[]=#123456@+-H"
DIM, HEADS, DEPTH, LONGEST = 96, 4, 3, 110


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.proj = nn.Linear(DIM, DIM)
        self.norm2 = nn.LayerNorm(DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # flaw: generation-without-cache
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, DIM))
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(len(ALPHABET), DIM)
        self.place = nn.Embedding(LONGEST, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, len(ALPHABET))

    def forward(self, tokens):
        x = self.token(tokens) + self.place.weight[: tokens.shape[1]]  # flaw: generation-without-cache
        for block in self.blocks:
            x = block(x)  # flaw: generation-without-cache
        return self.head(self.norm(x[:, -1]))


@torch.inference_mode()
def sample(model, prompts, temperature=0.9):
    tokens = torch.full((len(prompts), LONGEST), 1)
    length = len(prompts[0])
    tokens[:, :length] = torch.tensor([[ALPHABET.index(c) for c in p] for p in prompts])
    for place in range(length, LONGEST):
        logits = model(tokens[:, :place])  # flaw: generation-without-cache
        weights = torch.softmax(logits / temperature, -1)
        tokens[:, place] = torch.multinomial(weights, 1).squeeze(1)
    return ["".join(ALPHABET[i] for i in row) for row in tokens.tolist()]


def main():
    torch.manual_seed(0)
    model = Decoder().eval()
    for start in ("^CC", "^c1", "^N("):
        strings = sample(model, [start] * 48)
        print(strings[0][1:30], len(set(strings)))


if __name__ == "__main__":
    main()
