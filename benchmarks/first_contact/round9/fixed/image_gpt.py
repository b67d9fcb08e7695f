"""Autoregressive model of images: pixels are quantised to 512 colours and predicted in raster order."""

from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Options:
    side: int = 48
    colours: int = 512
    width: int = 512
    layers: int = 8
    heads: int = 8
    batch: int = 16
    steps: int = 100
    lr: float = 3e-4


class CausalSelfAttention(nn.Module):
    def __init__(self, o: Options):
        super().__init__()
        self.heads = o.heads
        self.c_attn = nn.Linear(o.width, 3 * o.width)
        self.c_proj = nn.Linear(o.width, o.width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.c_attn(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, o: Options):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(o.width), nn.LayerNorm(o.width)
        self.attn = CausalSelfAttention(o)
        self.c_fc, self.c_out = nn.Linear(o.width, 4 * o.width), nn.Linear(4 * o.width, o.width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.c_out(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class ImageGPT(nn.Module):
    def __init__(self, o: Options):
        super().__init__()
        self.wte = nn.Embedding(o.colours + 1, o.width)
        self.wpe = nn.Parameter(torch.randn(o.side**2, o.width) * 0.02)
        self.start = o.colours
        self.blocks = nn.Sequential(*[Block(o) for _ in range(o.layers)])
        self.ln_f = nn.LayerNorm(o.width)
        self.head = nn.Linear(o.width, o.colours, bias=False)

    def forward(self, colours):
        previous = F.pad(colours[:, :-1], (1, 0), value=self.start)
        x = self.wte(previous) + self.wpe
        logits = self.head(self.ln_f(self.blocks(x)))
        return F.cross_entropy(logits.flatten(0, 1), colours.flatten())


def decay_groups(model, weight_decay):
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    return [dict(params=matrices, weight_decay=weight_decay), dict(params=vectors, weight_decay=0.0)]


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    o = Options() if cuda else Options(side=6, colours=16, width=32, layers=2, heads=2, batch=2, steps=3)
    data = torch.randint(0, o.colours, (40 * o.batch, o.side**2), device=device)
    model = ImageGPT(o).to(device)
    optimizer = torch.optim.AdamW(decay_groups(model, 0.01), lr=o.lr, betas=(0.9, 0.95), fused=cuda)
    losses = []
    for step in range(o.steps):
        batch = data[torch.randint(0, len(data), (o.batch,), device=device)]
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = model(batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
        if (step + 1) % 25 == 0:
            nats = torch.stack(losses[-25:]).mean().item()
            print(f"step {step + 1}: {nats:.3f} nats per pixel")
    print(f"end: {losses[-1].item():.4f}")


if __name__ == "__main__":
    main()
