"""Predicts the next ingredient of historical recipes of different lengths."""
import os
import torch
from torch import nn
import torch.nn.functional as F

TINY = os.environ.get("TINY") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
cfg = dict(herbs=200, width=32, heads=2, depth=1, recipes=8, longest=16, steps=5) if TINY else dict(
    herbs=49152, width=512, heads=8, depth=4, recipes=96, longest=128, steps=300)


class Apothecary(nn.Module):
    def __init__(self, herbs, width, heads, depth, longest, **_):
        super().__init__()
        self.shelf = nn.Embedding(herbs, width)
        self.place = nn.Parameter(torch.randn(longest, width) * 0.02)
        block = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu",
                                           batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, depth, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.ladle = nn.Linear(width, herbs, bias=False)
        self.register_buffer("past", nn.Transformer.generate_square_subsequent_mask(longest), persistent=False)

    def forward(self, recipes, lengths):
        x = self.shelf(recipes) + self.place
        x = self.blocks(x, mask=self.past, is_causal=True)
        return self.ladle(last_of(self.norm(x), lengths))


def last_of(states, lengths):
    return states[torch.arange(len(lengths), device=lengths.device), lengths - 1]


def train():
    torch.manual_seed(15)
    net = Apothecary(**cfg).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    tally = torch.zeros((), device=device)
    for _ in range(cfg["steps"]):
        recipes = torch.randint(cfg["herbs"], (cfg["recipes"], cfg["longest"]), device=device)
        lengths = torch.randint(cfg["longest"] // 2, cfg["longest"] + 1, (cfg["recipes"],), device=device)
        following = (recipes[:, 0] * 7 + lengths) % cfg["herbs"]
        with torch.autocast(device, torch.bfloat16):
            loss = F.cross_entropy(net(recipes, lengths), following)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        tally += loss.detach()
    print(f"average surprise {tally.item() / cfg['steps']:.3f}")


train()
