"""Batched sampling of chat replies from a decoder with half-precision weights."""
import os
import time

import torch
import torch.nn.functional as F
from torch import nn

if os.environ.get("SMALL") == "1":
    VOCAB, WIDTH, HEADS, DEPTH, BATCH, PROMPT, NEW, ROUNDS = 128, 32, 2, 2, 2, 8, 30, 1
else:
    VOCAB, WIDTH, HEADS, DEPTH, BATCH, PROMPT, NEW, ROUNDS = 8192, 1024, 16, 8, 192, 320, 128, 3


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, past=None):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        if past is not None:
            k = torch.cat((past[0], k), dim=2)  # flaw: cat-in-loop
            v = torch.cat((past[1], v), dim=2)  # flaw: cat-in-loop
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.down(F.gelu(self.up(self.n2(x)))), (k, v)


class Chat(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, WIDTH)
        self.pos = nn.Embedding(PROMPT + NEW, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(DEPTH))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, ids, start, pasts):
        x = self.emb(ids) + self.pos.weight[start : start + ids.shape[1]]
        kept = []
        for layer, past in zip(self.layers, pasts):
            x, present = layer(x, past)
            kept.append(present)
        return self.head(self.norm(x[:, -1])), kept


@torch.inference_mode()
def reply(model, prompt):
    logits, pasts = model(prompt, 0, [None] * DEPTH)
    tokens = []
    for n in range(NEW):
        chance = logits.float().softmax(-1)
        token = (chance / torch.empty_like(chance).exponential_()).argmax(-1, keepdim=True)
        tokens.append(token)
        logits, pasts = model(token, PROMPT + n, pasts)
    return torch.cat(tokens, dim=1)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(5)
    model = Chat().to(device, torch.bfloat16).eval()
    for r in range(ROUNDS):
        prompt = torch.randint(VOCAB, (BATCH, PROMPT), device=device)
        began = time.perf_counter()
        text = reply(model, prompt)
        print(r, text[0, :8].tolist(), f"{time.perf_counter() - began:.2f} s")


main()
