"""Card fraud: hashed merchant, device and place tokens of a payment, online Adagrad."""
import os
import torch
from torch import nn
import torch.nn.functional as F

small = bool(os.environ.get("TINY"))
BUCKETS = 2000 if small else 300_000
PAYMENTS = 32 if small else 512
BATCHES = 4 if small else 180
SALTS = (2654435761, 40503, 97531)


def hashed(raw):
    return torch.stack([(raw * salt + (raw >> 7)) % BUCKETS for salt in SALTS], dim=-1).flatten(1)


class TokenBag(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.rows = nn.Parameter(torch.randn(BUCKETS, size) * 0.05)

    def forward(self, tokens):
        return F.embedding_bag(tokens, self.rows, mode="sum", sparse=True)


class FraudNet(nn.Module):
    def __init__(self, size=24):
        super().__init__()
        self.bag = TokenBag(size)
        self.judge = nn.Sequential(nn.Linear(size + 6, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, tokens, amounts):
        return self.judge(torch.cat([self.bag(tokens), amounts], dim=1)).squeeze(1)


def payments(dice):
    popular = torch.rand(PAYMENTS, 3, generator=dice).pow(3)
    raw = (popular * 4_000_000).long()
    amounts = torch.randn(PAYMENTS, 6, generator=dice)
    fraud = ((amounts[:, 0] > 1) | (popular[:, 0] < 0.01)).float()
    return hashed(raw), amounts, fraud


torch.manual_seed(23)
dice = torch.Generator().manual_seed(24)
net = FraudNet()
opt = torch.optim.Adagrad(net.parameters(), lr=0.02, eps=1e-7)
for batch in range(BATCHES):
    tokens, amounts, fraud = payments(dice)
    loss = F.binary_cross_entropy_with_logits(net(tokens, amounts), fraud)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if batch % 25 == 0:
        print(batch, f"{loss.item():.4f}")
print("close", f"{loss.item():.4f}")
