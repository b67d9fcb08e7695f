"""Distils a wide polymer property net into a narrow one; causal attention over monomer chains."""
import os
import torch
from torch import nn
import torch.nn.functional as F

tiny = "TINY" in os.environ
MONOMERS, CHAIN, BATCH, ROUNDS = (20, 8, 4, 3) if tiny else (60, 96, 16, 200)


class Block(nn.Module):
    def __init__(self, wide, heads):
        super().__init__()
        self.heads = heads
        self.one, self.two = nn.RMSNorm(wide, eps=1e-6), nn.RMSNorm(wide, eps=1e-6)
        self.qkv, self.out = nn.Linear(wide, 3 * wide, bias=False), nn.Linear(wide, wide, bias=False)
        self.up, self.down = nn.Linear(wide, 3 * wide), nn.Linear(3 * wide, wide)

    def forward(self, x):
        q, k, v = self.qkv(self.one(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.two(x))))


class ChainNet(nn.Module):
    def __init__(self, wide, heads, depth):
        super().__init__()
        self.monomer = nn.Embedding(MONOMERS, wide)
        self.blocks = nn.Sequential(*(Block(wide, heads) for _ in range(depth)))
        self.properties = nn.Linear(wide, 4)

    def forward(self, chain):
        return self.properties(self.blocks(self.monomer(chain))[:, -1])


def main():
    torch.manual_seed(29)
    elder = ChainNet(128, 4, 2).eval().requires_grad_(False)
    pupil = ChainNet(64, 4, 2)
    opt = torch.optim.AdamW(pupil.parameters(), lr=1e-3, fused=True)
    for r in range(ROUNDS):
        chain = torch.randint(0, MONOMERS, (BATCH, CHAIN))
        with torch.no_grad():
            wanted = elder(chain)
        opt.zero_grad(set_to_none=True)
        loss = F.mse_loss(pupil(chain), wanted)
        loss.backward()
        nn.utils.clip_grad_norm_(pupil.parameters(), 1.0)
        opt.step()
        if r % 20 == 0:
            print(r, f"{loss.item():.5f}")
    print("distilled", f"{loss.item():.5f}")


if __name__ == "__main__":
    main()
