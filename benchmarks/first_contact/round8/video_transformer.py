"""Video transformer with joint space-time attention over tubelets."""

import dataclasses

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


@dataclasses.dataclass
class Options:
    frames: int = 16
    side: int = 112
    tubelet: tuple = (2, 16, 16)
    dim: int = 768
    depth: int = 10
    heads: int = 12
    classes: int = 174
    batch: int = 48
    steps: int = 150


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(dim), SelfAttention(dim, heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VideoTransformer(nn.Module):
    def __init__(self, o: Options):
        super().__init__()
        t, h, w = o.tubelet
        tokens = (o.frames // t) * (o.side // h) * (o.side // w)
        self.tubelet = o.tubelet
        self.embed = nn.Linear(3 * t * h * w, o.dim)
        self.position = nn.Parameter(torch.randn(1, tokens, o.dim) * 0.02)
        self.layers = nn.ModuleList([EncoderLayer(o.dim, o.heads) for _ in range(o.depth)])
        self.norm = nn.LayerNorm(o.dim)
        self.head = nn.Linear(o.dim, o.classes)

    def tokens(self, video):
        b, c, t, h, w = video.shape
        pt, ph, pw = self.tubelet
        x = video.view(b, c, t // pt, pt, h // ph, ph, w // pw, pw)
        return x.permute(0, 2, 4, 6, 1, 3, 5, 7).flatten(4).flatten(1, 3)

    def forward(self, video):
        x = self.embed(self.tokens(video)) + self.position
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)  # flaw: needless-checkpointing
        return self.head(self.norm(x).mean(dim=1))


def main(o: Options, device: torch.device):
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model = VideoTransformer(o).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.05, fused=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=o.steps)
    shape = (4 * o.batch, 3, o.frames, o.side, o.side)
    videos = torch.randint(0, 256, shape, dtype=torch.uint8, device=device)
    labels = torch.randint(0, o.classes, (len(videos),), device=device)
    for step in range(o.steps):
        pick = torch.randint(0, len(videos), (o.batch,), device=device)
        clip = videos[pick].to(torch.bfloat16).sub_(115).div_(57)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(clip), labels[pick])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        scheduler.step()
        if step % 20 == 0:
            print(f"{step:4d}/{o.steps} loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.2e}")


if __name__ == "__main__":
    if torch.cuda.is_available():
        main(Options(), torch.device("cuda"))
    else:
        main(Options(4, 32, (2, 16, 16), 32, 2, 2, 10, 2, 3), torch.device("cpu"))
