"""Masked-frame pre-training of a speech encoder on synthetic log-mel frames."""
import os
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

TINY = os.environ.get("TINY") == "1"


@dataclass
class Cfg:
    mels: int = 80
    width: int = 64 if TINY else 1024
    heads: int = 4 if TINY else 16
    depth: int = 2 if TINY else 8
    frames: int = 32 if TINY else 512
    batch: int = 2 if TINY else 32
    steps: int = 6 if TINY else 420


class FrameNorm(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.width = width
        self.scale = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))

    def forward(self, h):
        return F.layer_norm(h, (self.width,), self.scale, self.shift, self.eps)


class EncoderLayer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        w = cfg.width
        self.heads = cfg.heads
        self.before_attn, self.before_ffn = FrameNorm(w), FrameNorm(w)
        self.qkv = nn.Linear(w, 3 * w)
        self.out = nn.Linear(w, w)
        self.up, self.down = nn.Linear(w, 4 * w), nn.Linear(4 * w, w)

    def forward(self, h):
        b, t, w = h.shape
        q, k, v = self.qkv(self.before_attn(h)).view(b, t, 3, self.heads, -1).unbind(2)
        a = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
        h = h + self.out(a.transpose(1, 2).reshape(b, t, w))
        return h + self.down(F.gelu(self.up(self.before_ffn(h))))


class SpeechEncoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.inp = nn.Linear(cfg.mels, cfg.width)
        self.pos = nn.Parameter(torch.randn(cfg.frames, cfg.width) * 0.02)
        self.layers = nn.ModuleList(EncoderLayer(cfg) for _ in range(cfg.depth))
        self.final = FrameNorm(cfg.width)
        self.head = nn.Linear(cfg.width, cfg.mels)

    def forward(self, mel):
        h = self.inp(mel) + self.pos
        for layer in self.layers:
            h = layer(h)
        return self.head(self.final(h))


def main():
    cfg = Cfg()
    torch.manual_seed(3)
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = SpeechEncoder(cfg).to(dev)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
    pool = torch.randn(8 * cfg.batch, cfg.frames, cfg.mels, device=dev)
    hidden = torch.rand(8 * cfg.batch, cfg.frames, 1, device=dev) < 0.3
    total = torch.zeros((), device=dev)
    for step in range(cfg.steps):
        at = step % 8 * cfg.batch
        mel, gone = pool[at:at + cfg.batch], hidden[at:at + cfg.batch]
        with torch.autocast(dev.type, dtype=torch.bfloat16):
            guess = net(mel.masked_fill(gone, 0.0))
            loss = F.l1_loss(guess.float(), mel)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        total += loss.detach()
        if (step + 1) % 60 == 0 or step + 1 == cfg.steps:
            print(f"step {step + 1}: mean loss {total.item() / (step + 1):.3f}")


if __name__ == "__main__":
    main()
