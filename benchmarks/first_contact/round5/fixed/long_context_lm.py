import os
import torch
from torch import nn
import torch.nn.functional as F

small = os.environ.get("SMALL") == "1"
dev = "cuda" if torch.cuda.is_available() else "cpu"
cfg = dict(V=64, D=32, H=2, L=1, T=32, B=2, N=30) if small else dict(V=4096, D=768, H=12, L=6, T=2048, B=4, N=70)


def slopes(h):
    return torch.tensor([2 ** (-8 * (i + 1) / h) for i in range(h)])


class LinearBias(nn.Module):
    """Distance penalty added to attention scores, one slope per head."""

    def __init__(self, heads, length):
        super().__init__()
        self.length = length
        self.register_buffer("m", slopes(heads).view(1, heads, 1, 1))
        self.register_buffer("table", self.build(), persistent=False)

    def build(self):
        pos = torch.arange(self.length)
        gap = (pos[None, :] - pos[:, None]).float()
        bias = self.m * gap
        bias = bias.masked_fill(gap > 0, float("-inf"))
        return bias.to(torch.bfloat16)

    def forward(self, dtype):
        return self.table.to(dtype)


class Mixer(nn.Module):
    def __init__(self, d, h, length):
        super().__init__()
        self.h = h
        self.ln = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.bias = LinearBias(h, length)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln(x)).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=self.bias(q.dtype))
        return self.proj(out.transpose(1, 2).reshape(b, t, d))


class MLP(nn.Sequential):
    def __init__(self, d):
        super().__init__(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))


class LM(nn.Module):
    def __init__(self, V, D, H, L, T, **_):
        super().__init__()
        self.wte = nn.Embedding(V, D)
        self.mix = nn.ModuleList([Mixer(D, H, T) for _ in range(L)])
        self.ff = nn.ModuleList([MLP(D) for _ in range(L)])
        self.ln = nn.LayerNorm(D)
        self.out = nn.Linear(D, V, bias=False)

    def forward(self, ids):
        x = self.wte(ids)
        for mix, ff in zip(self.mix, self.ff):
            x = x + mix(x)
            x = x + ff(x)
        return self.out(self.ln(x))


def main():
    torch.manual_seed(0)
    lm = LM(**cfg).to(dev)
    opt = torch.optim.AdamW(lm.parameters(), 3e-4, fused=True)
    text = torch.randint(cfg["V"], (cfg["B"] * 8, cfg["T"] + 1), device=dev)
    for n in range(cfg["N"]):
        chunk = text.view(8, cfg["B"], -1)[n % 8]
        with torch.autocast(dev, torch.bfloat16):
            logits = lm(chunk[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), chunk[:, 1:].flatten())
        loss.backward()
        opt.step()
        opt.zero_grad()
        if n % 20 == 0:
            print(n, loss.item())


main()
