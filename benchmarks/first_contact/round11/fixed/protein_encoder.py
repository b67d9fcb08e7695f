"""Contact-free secondary-structure prediction with a protein encoder trained from scratch."""
import argparse
from types import SimpleNamespace

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

PRESETS = {
    "base": SimpleNamespace(dim=768, depth=10, length=512, batch=20, steps=110),
    "tiny": SimpleNamespace(dim=32, depth=2, length=16, batch=2, steps=4),
}
AMINO_ACIDS, STRUCTURES = 32, 8


def rotate(x, cos, sin):
    """Rotary position code on the last dimension (two halves)."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


class EncoderBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.heads = max(1, dim // 64)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.gate, self.value = nn.Linear(dim, 3 * dim), nn.Linear(dim, 3 * dim)
        self.shrink = nn.Linear(3 * dim, dim)

    def forward(self, x, cos, sin):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        h = F.scaled_dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v)
        x = x + self.out(h.transpose(1, 2).reshape(b, n, d))
        y = self.norm2(x)
        return x + self.shrink(F.silu(self.gate(y)) * self.value(y))


class ProteinEncoder(nn.Module):
    def __init__(self, dim, depth, length):
        super().__init__()
        self.embed = nn.Embedding(AMINO_ACIDS, dim)
        self.blocks = nn.ModuleList(EncoderBlock(dim) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, STRUCTURES)
        head_dim = dim // max(1, dim // 64)
        rate = 10_000.0 ** (-torch.arange(0, head_dim, 2) / head_dim)
        angle = torch.arange(length)[:, None] * rate
        self.register_buffer("cos", angle.cos().to(torch.bfloat16), persistent=False)
        self.register_buffer("sin", angle.sin().to(torch.bfloat16), persistent=False)
        self.gradient_checkpointing = False

    def enable_gradient_checkpointing(self):
        self.gradient_checkpointing = True

    def forward(self, residues):
        x = self.embed(residues)
        for block in self.blocks:
            if self.gradient_checkpointing and self.training:
                inputs = (x, self.cos, self.sin)
                x = checkpoint(block, *inputs, use_reentrant=False)
            else:
                x = block(x, self.cos, self.sin)
        return self.head(self.norm(x))


class Proteins:
    """Random sequences; the structure of a residue depends on its neighbours."""

    def __init__(self, preset, device):
        self.gen = torch.Generator(device).manual_seed(0)
        self.shape, self.device = (preset.batch, preset.length), device

    def __iter__(self):
        while True:
            residues = torch.randint(20, self.shape, device=self.device, generator=self.gen)
            structure = (residues + residues.roll(1, 1) + residues.roll(-4, 1)) % STRUCTURES
            yield residues, structure


def train(preset, device, lr):
    torch.manual_seed(0)
    model = ProteinEncoder(preset.dim, preset.depth, preset.length).to(device)
    if device == "cuda":
        for block in model.blocks:
            block.compile()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, fused=True)
    scores = torch.zeros(preset.steps, 2, device=device)
    for step, (residues, structure) in zip(range(preset.steps), Proteins(preset, device)):
        with torch.autocast(device, dtype=torch.bfloat16):
            logits = model(residues)
        loss = F.cross_entropy(logits.float().flatten(0, 1), structure.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scores[step, 0] = loss.detach()
        scores[step, 1] = (logits.detach().argmax(-1) == structure).float().mean()
    return scores


def main():
    cuda = torch.cuda.is_available()
    ap = argparse.ArgumentParser()
    ap.add_argument("--preset", choices=PRESETS, default="base" if cuda else "tiny")
    ap.add_argument("--lr", type=float, default=3e-4)
    args = ap.parse_args()
    scores = train(PRESETS[args.preset], "cuda" if cuda else "cpu", args.lr)
    print(f"loss {scores[0, 0].item():.4f} -> {scores[-1, 0].item():.4f}")
    print(f"accuracy of the last ten steps {scores[-10:, 1].mean().item():.3f}")


if __name__ == "__main__":
    main()
