"""Long-range regulation from DNA sequence: a transformer with positive feature maps instead of a softmax."""
import dataclasses
import functools

import torch
from torch import nn
import torch.nn.functional as F


@dataclasses.dataclass
class Setup:
    length: int
    bin_size: int
    dim: int
    heads: int
    layers: int
    batch: int
    tracks: int
    steps: int


@functools.cache
def setup():
    if torch.cuda.is_available():
        return Setup(length=65_536, bin_size=16, dim=512, heads=8, layers=4, batch=4, tracks=16, steps=110)
    return Setup(length=256, bin_size=16, dim=32, heads=2, layers=1, batch=2, tracks=8, steps=4)


def feature_map(x):
    return F.elu(x) + 1.0


class KernelAttention(nn.Module):
    """out_i = sum_j (phi(q_i) . phi(k_j)) v_j / sum_j phi(q_i) . phi(k_j), over the whole sequence."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        q, k = feature_map(q), feature_map(k) / n
        weight = q @ k.transpose(-1, -2)  # flaw: none-yet(matmul-order)
        mixed = weight @ v  # flaw: none-yet(matmul-order)
        total = q @ k.sum(dim=2, keepdim=True).transpose(-1, -2)
        y = mixed / total
        return self.out(y.transpose(1, 2).reshape(b, n, d))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = KernelAttention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class RegulationModel(nn.Module):
    """Predicts the read counts of several tracks for each bin of the sequence."""

    def __init__(self, s):
        super().__init__()
        self.bin_size = s.bin_size
        self.base = nn.Embedding(8, 16)  # A C G T N, padded
        self.enter = nn.Linear(16 * s.bin_size, s.dim)
        self.position = nn.Parameter(0.02 * torch.randn(s.length // s.bin_size, s.dim))
        self.blocks = nn.ModuleList(Block(s.dim, s.heads) for _ in range(s.layers))
        self.head = nn.Sequential(nn.LayerNorm(s.dim), nn.Linear(s.dim, s.tracks))

    def forward(self, bases):
        x = self.base(bases).unflatten(1, (-1, self.bin_size)).flatten(2)
        x = self.enter(x) + self.position
        for block in self.blocks:
            x = block(x)
        return F.softplus(self.head(x))


def poisson_loss(rate, counts):
    return (rate - counts * torch.log(rate + 1e-6)).mean()


class Genome:
    def __init__(self, s, device):
        self.s, self.device = s, device
        self.gen = torch.Generator(device).manual_seed(0)
        self.sequence = torch.randint(4, (16 * s.length,), device=device, generator=self.gen)
        purine = (self.sequence % 2).float().view(-1, s.bin_size).mean(1)
        phase = torch.arange(s.tracks, device=device)
        self.counts = torch.poisson(2 + torch.sin(20 * purine[:, None] + phase), generator=self.gen)

    def sample(self):
        s = self.s
        bins = s.length // s.bin_size
        first = torch.randint(len(self.counts) - bins, (s.batch, 1), device=self.device, generator=self.gen)
        where = first + torch.arange(bins, device=self.device)
        bases = self.sequence.view(-1, s.bin_size)[where].flatten(1)
        return bases, self.counts[where]


def main():
    s = setup()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = RegulationModel(s).to(device)
    if device.type == "cuda":
        for block in model.blocks:
            block.compile()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    genome = Genome(s, device)
    losses = []
    for _ in range(s.steps):
        bases, counts = genome.sample()
        with torch.autocast(device.type, dtype=torch.bfloat16):
            rate = model(bases)
        loss = poisson_loss(rate.float(), counts)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    print(f"Poisson loss {losses[0].item():.4f} -> {losses[-1].item():.4f}")


if __name__ == "__main__":
    main()
