"""Continue a handful of stories with top-k sampling."""
import argparse
import os

import torch
from torch import nn
from torch.nn import functional as F


def arguments():
    small = os.environ.get("SMALL") == "1"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=32 if small else 1024)
    parser.add_argument("--layers", type=int, default=2 if small else 8)
    parser.add_argument("--vocab", type=int, default=128 if small else 16384)
    parser.add_argument("--prompt", type=int, default=8 if small else 384)
    parser.add_argument("--new", type=int, default=30 if small else 120)
    parser.add_argument("--stories", type=int, default=2 if small else 24)
    parser.add_argument("--top-k", type=int, default=20)
    return parser.parse_args()


class Writer(nn.Module):
    def __init__(self, vocab, width, layers, longest, heads=8):
        super().__init__()
        self.heads, self.longest = heads, longest
        self.words, self.places = nn.Embedding(vocab, width), nn.Embedding(longest, width)
        self.n1 = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.n2 = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.qkv = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.mlp = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)

    def forward(self, ids):
        x = self.words(ids) + self.places.weight[: ids.size(1)]
        for n1, n2, qkv, out, mlp in zip(self.n1, self.n2, self.qkv, self.out, self.mlp):
            q, k, v = qkv(n1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + out(y.transpose(1, 2).flatten(2))
            x = x + mlp(n2(x))
        return self.head(self.norm(x[:, -1]))


@torch.inference_mode()
def continue_stories(model, text, start, count, top_k):
    for at in range(start, start + count):
        logits = model(text[:, :at])  # flaw: none-yet(generation-without-cache)
        values, places = logits.float().topk(top_k, dim=-1)
        noise = torch.empty_like(values).exponential_().log()
        pick = (values - noise).argmax(1, keepdim=True)
        text[:, at : at + 1] = places.gather(1, pick)
    return text


if __name__ == "__main__":
    a = arguments()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(11)
    model = Writer(a.vocab, a.width, a.layers, a.prompt + a.new).to(device, torch.bfloat16).eval()
    text = torch.zeros(a.stories, a.prompt + a.new, dtype=torch.long, device=device)
    text[:, : a.prompt] = torch.randint(a.vocab, (a.stories, a.prompt), device=device)
    text = continue_stories(model, text, a.prompt, a.new, a.top_k)
    print(text[0, -10:].tolist())
