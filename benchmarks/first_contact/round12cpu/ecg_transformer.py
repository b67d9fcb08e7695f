"""ECG rhythm classification with patch tokens and nn.MultiheadAttention."""
import math

import torch
import torch.nn as nn

N_BATCHES = 120
torch.set_num_threads(1)


class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(d_model, n_heads, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.mlp = nn.Sequential(nn.Linear(d_model, 2 * d_model), nn.GELU(), nn.Linear(2 * d_model, d_model))

    def forward(self, x):
        h = self.norm1(x)
        h, _ = self.self_attn(h, h, h)  # flaw: slow-attention-kernel|hand-written-attention
        x = x + h
        return x + self.mlp(self.norm2(x))


class ECGNet(nn.Module):
    def __init__(self, leads=12, patch=10, d_model=48, layers=2, rhythms=5):
        super().__init__()
        self.patches = nn.Conv1d(leads, d_model, patch, stride=patch)
        self.register_buffer("position", self.sinusoid(250, d_model))
        self.layers = nn.ModuleList([EncoderLayer(d_model, 8) for _ in range(layers)])
        self.classify = nn.Linear(d_model, rhythms)

    @staticmethod
    def sinusoid(n, d):
        pos = torch.arange(n).unsqueeze(1) * torch.exp(torch.arange(0, d, 2) * (-math.log(1e4) / d))
        return torch.stack([pos.sin(), pos.cos()], -1).flatten(1)

    def forward(self, ecg):
        x = self.patches(ecg).transpose(1, 2) + self.position
        for layer in self.layers:
            x = layer(x)
        return self.classify(x.mean(1))


def heartbeats(n, gen):
    rhythm = torch.randint(0, 5, (n,), generator=gen)
    t = torch.linspace(0, 10, 2500)
    rate = (0.8 + 0.3 * rhythm)[:, None] + 0.05 * torch.randn(n, 1, generator=gen)
    beat = torch.exp(-((t * rate) % 1 - 0.3).square() / 0.002)
    leads = torch.linspace(0.4, 1.2, 12)[None, :, None] * beat[:, None]
    return leads + 0.1 * torch.randn(n, 12, 2500, generator=gen), rhythm


if __name__ == "__main__":
    torch.manual_seed(14)
    gen = torch.Generator().manual_seed(14)
    ecg, rhythm = heartbeats(128, gen)
    net = ECGNet()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    for batch in range(1, N_BATCHES + 1):
        pick = torch.randint(0, len(ecg), (4,), generator=gen)
        loss = nn.functional.cross_entropy(net(ecg[pick]), rhythm[pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if batch % 60 == 0:
            print(f"batch {batch} loss {loss.item():.4f}")
