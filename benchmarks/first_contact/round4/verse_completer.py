"""Complete a set of verses greedily, token by token."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm_in, self.norm_ff = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.merge = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.ff_up, self.ff_down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        q, k, v = self.qkv(self.norm_in(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.merge(y.transpose(1, 2).flatten(2))
        return x + self.ff_down(F.gelu(self.ff_up(self.norm_ff(x))))


class VerseModel(nn.Module):
    def __init__(self, vocab, dim, depth, heads, longest):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.randn(longest, dim) * 0.02)
        self.layers = nn.Sequential(*[Layer(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)

    def forward(self, ids):
        x = self.layers(self.tok(ids) + self.pos[: ids.shape[1]])
        return F.linear(self.norm(x[:, -1]), self.tok.weight)


class Completer:
    def __init__(self, model, longest, device):
        self.model, self.longest, self.device = model, longest, device

    @torch.inference_mode()
    def __call__(self, openings):
        n, have = openings.shape
        page = torch.zeros(n, self.longest, dtype=torch.long, device=self.device)
        page[:, :have] = openings
        for at in range(have, self.longest):
            scores = self.model(page[:, :at])  # flaw: none-yet(no-kv-cache)
            page[:, at] = scores.argmax(-1)
        return page


def main():
    if os.environ.get("SMALL") == "1":
        vocab, dim, depth, heads, longest, have, verses, rounds = 128, 32, 2, 2, 46, 16, 4, 1
    else:
        vocab, dim, depth, heads, longest, have, verses, rounds = 8192, 768, 8, 12, 256, 128, 96, 2
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    torch.manual_seed(0)
    model = VerseModel(vocab, dim, depth, heads, longest).to(device, dtype).eval()
    complete = Completer(model, longest, device)
    for _ in range(rounds):
        openings = torch.randint(vocab, (verses, have), device=device)
        page = complete(openings)
        print(page[:, have:].float().mean().item())


if __name__ == "__main__":
    main()
