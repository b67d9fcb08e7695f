"""Makes an index of street scenes: every picture becomes a unit vector, kept on the device until the end."""
import os
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
WIDTH, DEPTH, HEADS, PATCH, SIDE, BATCH, BATCHES = (32, 2, 4, 8, 32, 2, 3) if TINY else (768, 12, 12, 16, 224, 128, 900)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(self.before(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.after(x))))


class SceneEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.places = nn.Parameter(torch.randn((SIDE // PATCH) ** 2, WIDTH) * 0.02)
        self.blocks = nn.Sequential(*[Block() for _ in range(DEPTH)])
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, pictures):
        x = self.patches(pictures).flatten(2).transpose(1, 2) + self.places
        return F.normalize(self.norm(self.blocks(x)).mean(1).float(), dim=-1)


def pictures(device) -> Iterator[torch.Tensor]:
    pool = torch.rand(4 * BATCH, 3, SIDE, SIDE, device=device, dtype=torch.bfloat16)
    for _ in range(BATCHES):
        yield pool[torch.randint(len(pool), (BATCH,), device=device)]


@torch.inference_mode()
def build_index(encoder, stream, device):
    index = torch.empty(BATCHES * BATCH, WIDTH, device=device)
    for number, batch in enumerate(stream):
        index[number * BATCH:(number + 1) * BATCH] = encoder(batch)
    return index


torch.manual_seed(23)
device = "cuda" if torch.cuda.is_available() else "cpu"
encoder = SceneEncoder().to(device, torch.bfloat16).eval()
index = build_index(encoder, pictures(device), device)
print(f"{len(index)} scenes, mean likeness {(index.mean(0) @ index.mean(0)).item():.4f}")
