"""Masked image modelling: predict the codebook entries of hidden patches (images already tokenised)."""
import torch
from torch import nn
import torch.nn.functional as F


class Config(dict):
    __getattr__ = dict.__getitem__


FULL = Config(images=64, patches=576, hidden=128, dim=768, heads=12, layers=4, codebook=16384, steps=120)
TINY = Config(images=2, patches=16, hidden=8, dim=32, heads=2, layers=1, codebook=64, steps=4)


class Encoder(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.patch = nn.Embedding(c.codebook + 8, c.dim)
        self.place = nn.Parameter(torch.randn(c.patches, c.dim) * 0.02)
        self.layers = nn.ModuleList(
            nn.ModuleDict({
                "norm1": nn.LayerNorm(c.dim), "qkv": nn.Linear(c.dim, 3 * c.dim),
                "proj": nn.Linear(c.dim, c.dim), "norm2": nn.LayerNorm(c.dim),
                "up": nn.Linear(c.dim, 4 * c.dim), "down": nn.Linear(4 * c.dim, c.dim),
            }) for _ in range(c.layers))
        self.heads = c.heads

    def forward(self, codes):
        x = (self.patch(codes) + self.place).to(torch.bfloat16)
        for layer in self.layers:
            parts = layer["qkv"](layer["norm1"](x)).unflatten(2, (3, self.heads, -1))
            q, k, v = (p.transpose(1, 2) for p in parts.unbind(2))
            x = x + layer["proj"](F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
            x = x + layer["down"](F.gelu(layer["up"](layer["norm2"](x))))
        return x


class MaskedCodeModel(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.mask_code = c.codebook
        self.encoder = Encoder(c)
        self.norm = nn.LayerNorm(c.dim)
        self.to_codes = nn.Linear(c.dim, c.codebook)

    def forward(self, codes, hidden):
        """codes: images x patches; hidden: flat positions of the patches that the encoder may not see."""
        truth = codes.flatten()[hidden]
        seen = codes.flatten().index_fill(0, hidden, self.mask_code).view_as(codes)
        features = self.norm(self.encoder(seen))
        logits = self.to_codes(features).flatten(0, 1)  # flaw: unused-logits
        return F.cross_entropy(logits[hidden], truth)  # flaw: unused-logits


class Batches:
    """Tokenised images with a fixed number of hidden patches per image."""

    def __init__(self, c, device, seed=33):
        gen = torch.Generator(device).manual_seed(seed)
        shape = (6, c.images, c.patches)
        rough = torch.randint(0, 64, shape, generator=gen, device=device)
        self.codes = (rough * rough) % c.codebook
        order = torch.rand(shape, generator=gen, device=device).argsort(2)[..., :c.hidden]
        offset = torch.arange(c.images, device=device)[:, None] * c.patches
        self.hidden = (order + offset).flatten(1)

    def __call__(self, step):
        i = step % len(self.codes)
        return self.codes[i], self.hidden[i]


def main():
    gpu = torch.cuda.is_available()
    c = FULL if gpu else TINY
    device = torch.device("cuda" if gpu else "cpu")
    torch.manual_seed(32)
    model = MaskedCodeModel(c).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.05, fused=True)
    batches = Batches(c, device)
    losses = []
    for step in range(c.steps):
        with torch.autocast(device.type, torch.bfloat16):
            loss = model(*batches(step))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    losses = torch.stack(losses).cpu()
    print(f"first {losses[0].item():.4f} last {losses[-1].item():.4f}")


if __name__ == "__main__":
    main()
