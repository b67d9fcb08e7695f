import os
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


def settings():
    if os.environ.get("SMALL"):
        return {"batch": 2, "samples": 4096, "dim": 32, "blocks": 2, "heads": 2, "steps": 30, "clips": 8}
    return {"batch": 32, "samples": 49152, "dim": 512, "blocks": 6, "heads": 8, "steps": 80, "clips": 256}


class FrameNet(nn.Module):
    """Works on non-overlapping frames of 64 samples; returns the cleaned waveform."""
    HOP = 64

    def __init__(self, dim, blocks, heads, frames):
        super().__init__()
        self.encode = nn.Linear(self.HOP, dim)
        self.where = nn.Parameter(torch.randn(frames, dim) * 0.02)
        self.blocks = nn.ModuleList()
        for _ in range(blocks):
            self.blocks.append(nn.ModuleDict({
                "ln_a": nn.LayerNorm(dim), "qkv": nn.Linear(dim, dim * 3), "mix": nn.Linear(dim, dim),
                "ln_f": nn.LayerNorm(dim), "up": nn.Linear(dim, dim * 4), "down": nn.Linear(dim * 4, dim)}))
        self.heads = heads
        self.decode = nn.Linear(dim, self.HOP)

    def forward(self, wav):
        b = wav.shape[0]
        h = self.encode(wav.view(b, -1, self.HOP)) + self.where
        for m in self.blocks:
            q, k, v = m["qkv"](m["ln_a"](h)).chunk(3, dim=-1)
            q, k, v = (t.view(b, t.shape[1], self.heads, -1).transpose(1, 2) for t in (q, k, v))
            a = F.scaled_dot_product_attention(q, k, v)
            h = h + m["mix"](a.transpose(1, 2).reshape(h.shape))
            h = h + m["down"](F.gelu(m["up"](m["ln_f"](h))))
        return wav - self.decode(h).float().reshape(b, -1)


class Corruptor:
    def __init__(self, snr_low, snr_high, device):
        self.low, self.high, self.device = snr_low, snr_high, device

    def __call__(self, clean):
        snr = torch.empty(clean.shape[0], 1, device=self.device).uniform_(self.low, self.high)
        hiss = torch.randn(*clean.shape).to(self.device)  # flaw: tensor-made-on-host
        level = clean.square().mean(-1, keepdim=True).sqrt() * torch.pow(10.0, -snr / 20)
        return torch.addcmul(clean, level, hiss)


def tones(n, samples, device):
    t = torch.arange(samples, device=device) / 16000
    f = torch.rand(n, 3, 1, device=device) * 2000 + 80
    return torch.sin(2 * math.pi * f * t).mean(1)


def train():
    s = settings()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(3)
    net = FrameNet(s["dim"], s["blocks"], s["heads"], s["samples"] // FrameNet.HOP).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    library = tones(s["clips"], s["samples"], device)
    corrupt = Corruptor(0, 20, device)
    history = []
    for i in range(s["steps"]):
        clean = library[torch.randint(s["clips"], (s["batch"],), device=device)]
        noisy = corrupt(clean)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            guess = net(noisy)
        loss = F.l1_loss(guess, clean)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()
        optimizer.zero_grad()
        if i % 20 == 0:
            history.append(loss.detach())
    print(torch.stack(history).tolist())


train()
