"""A shallow language model over byte-pair tokens, in bfloat16."""
import dataclasses

import torch
import torch.nn as nn


@dataclasses.dataclass(frozen=True)
class Settings:
    n_vocab: int = 50257  # flaw: misaligned-matmul
    n_embd: int = 768
    n_layer: int = 2
    tokens: int = 8192


class Shallow(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.wte = nn.Embedding(s.n_vocab, s.n_embd)
        self.h = nn.Sequential(*[nn.Sequential(nn.Linear(s.n_embd, s.n_embd), nn.GELU(), nn.LayerNorm(s.n_embd)) for _ in range(s.n_layer)])
        self.lm_head = nn.Linear(s.n_embd, s.n_vocab, bias=False)  # flaw: misaligned-matmul

    def forward(self, ids):
        return self.lm_head(self.h(self.wte(ids)))


def main(s=Settings()):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Shallow(s).to(device, torch.bfloat16)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    stream = torch.randint(s.n_vocab, (16, s.tokens + 1), device=device)
    for i in range(320):
        row = stream[i % 16]
        loss = nn.functional.cross_entropy(model(row[:-1]), row[1:])
        opt.zero_grad()
        loss.backward()
        opt.step()


main()
