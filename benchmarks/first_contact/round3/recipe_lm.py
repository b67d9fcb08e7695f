import os
from dataclasses import dataclass, asdict
import torch
from torch import nn
import torch.nn.functional as F


@dataclass(frozen=True)
class Hyper:
    vocab: int = 16384
    width: int = 768
    heads: int = 12
    depth: int = 6
    length: int = 512
    micro: int = 24
    accumulate: int = 2


SMALL = os.environ.get("SMALL") == "1"
hyper = Hyper(128, 32, 2, 1, 16, 2, 2) if SMALL else Hyper()
UPDATES = 30 if SMALL else 60
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Layer(nn.Module):
    def __init__(self, h: Hyper):
        super().__init__()
        self.heads = h.heads
        self.n1, self.n2 = nn.LayerNorm(h.width), nn.LayerNorm(h.width)
        self.qkv, self.out = nn.Linear(h.width, 3 * h.width, bias=False), nn.Linear(h.width, h.width, bias=False)
        self.mlp = nn.Sequential(nn.Linear(h.width, 4 * h.width), nn.GELU(approximate="tanh"), nn.Linear(4 * h.width, h.width))

    def forward(self, x):
        q, k, v = self.qkv(self.n1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.n2(x))


class Recipes(nn.Module):
    def __init__(self, h: Hyper):
        super().__init__()
        self.emb, self.pos = nn.Embedding(h.vocab, h.width), nn.Embedding(h.length, h.width)
        self.layers = nn.Sequential(*[Layer(h) for _ in range(h.depth)])
        self.norm, self.head = nn.LayerNorm(h.width), nn.Linear(h.width, h.vocab, bias=False)

    def forward(self, ids):
        return self.head(self.norm(self.layers(self.emb(ids) + self.pos.weight)))


def main():
    print(asdict(hyper))
    model = Recipes(hyper).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    text = torch.randint(hyper.vocab, (32, hyper.micro, hyper.length + 1), device=device)
    mean = torch.zeros((), device=device)
    for update in range(UPDATES):
        for part in range(hyper.accumulate):
            ids = text[(update * hyper.accumulate + part) % 32]
            with torch.autocast(device.type, dtype=torch.bfloat16):
                loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()) / hyper.accumulate
            loss.backward()
            mean += loss.detach()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    print("mean loss", mean.item() / UPDATES)


if __name__ == "__main__":
    main()
