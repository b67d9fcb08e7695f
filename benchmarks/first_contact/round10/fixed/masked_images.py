"""Masked image modelling: predict the codebook index of each hidden patch."""
import argparse

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class MaskedImageModel(nn.Module):
    def __init__(self, dim, depth, heads, patch, patches, codes):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(3 * patch * patch, dim)
        self.position = nn.Parameter(0.02 * torch.randn(patches, dim))
        self.hidden = nn.Parameter(0.02 * torch.randn(dim))
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, codes)

    def forward(self, image, mask):
        x = self.embed(F.pixel_unshuffle(image, self.patch).flatten(2).transpose(1, 2))
        x = torch.where(mask[..., None], self.hidden.to(x.dtype), x) + self.position
        return self.norm(self.blocks(x))


def random_masks(n, patches, hidden, device):
    """Boolean masks with the same number of hidden patches in each picture, and their places."""
    places = torch.rand(n, patches, device=device).topk(hidden, dim=1).indices
    mask = torch.zeros(n, patches, dtype=torch.bool, device=device)
    return mask.scatter_(1, places, True), places


def main():
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser()
    parser.add_argument("--dim", type=int, default=512 if cuda else 32)
    parser.add_argument("--depth", type=int, default=6 if cuda else 2)
    parser.add_argument("--codes", type=int, default=8192 if cuda else 64)
    parser.add_argument("--batch", type=int, default=128 if cuda else 2)
    parser.add_argument("--side", type=int, default=224 if cuda else 32)
    parser.add_argument("--steps", type=int, default=120 if cuda else 3)
    parser.add_argument("--hide", type=float, default=0.25)
    args = parser.parse_args()
    device = torch.device("cuda" if cuda else "cpu")
    torch.manual_seed(0)
    patch = 16
    patches = (args.side // patch) ** 2
    hidden = int(args.hide * patches)
    model = MaskedImageModel(args.dim, args.depth, 8, patch, patches, args.codes).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.05, fused=cuda)
    images = torch.randn(3, args.batch, 3, args.side, args.side, device=device)
    tokens = torch.randint(0, args.codes, (3, args.batch, patches), device=device)
    for step in range(args.steps):
        k = step % 3
        mask, places = random_masks(args.batch, patches, hidden, device)
        target = tokens[k].gather(1, places)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            features = model(images[k], mask)
            features = features.gather(1, places[..., None].expand(-1, -1, args.dim))
            logits = model.head(features)
            loss = F.cross_entropy(logits.flatten(0, 1), target.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
