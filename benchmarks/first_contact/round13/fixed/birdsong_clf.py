"""Species classifier on synthetic field recordings: log spectrograms, patch transformer."""
import json
import os

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

SETTINGS = json.loads("""
{
  "full": {"clips": 1792, "seconds": 3, "rate": 16000, "batch": 64, "epochs": 5, "width": 1024, "depth": 8, "species": 96},
  "tiny": {"clips": 32, "seconds": 1, "rate": 16000, "batch": 8, "epochs": 2, "width": 64, "depth": 2, "species": 8}
}
""")
TINY = os.environ.get("TINY") == "1"
S = SETTINGS["tiny" if TINY else "full"]
LOADING = dict(
    num_workers=5,
    prefetch_factor=4,
    persistent_workers=True,
)
device = "cuda" if torch.cuda.is_available() else "cpu"
FRAMES = 256 if not TINY else 64
BINS = 128


class EpochOrder(Sampler):
    """Yields (epoch, clip), so that the augmentation is a function of both."""

    def __init__(self, n):
        self.n, self.epoch = n, 0

    def __len__(self):
        return self.n

    def __iter__(self):
        order = np.random.default_rng(self.epoch).permutation(self.n)
        epoch, self.epoch = self.epoch, self.epoch + 1
        return ((epoch, int(i)) for i in order)


class FieldRecordings(Dataset):
    def __init__(self, clips, seconds, rate, species):
        rng = np.random.default_rng(5)
        self.label = rng.integers(0, species, clips)
        self.pitch = 400 + 40.0 * self.label + rng.normal(0, 5, clips)
        self.t = np.arange(seconds * rate, dtype=np.float32) / rate
        self.hop = (len(self.t) - 512) // (FRAMES - 1)
        self.window = np.hanning(512).astype(np.float32)

    def __len__(self):
        return len(self.label)

    def __getitem__(self, key):
        epoch, i = key
        rng = np.random.default_rng((11, epoch, i))
        wave = np.sin(2 * np.pi * np.float32(self.pitch[i]) * self.t)
        wave += rng.standard_normal(len(wave), dtype=np.float32) * np.float32(0.3)
        view = np.lib.stride_tricks.sliding_window_view(wave, 512)[:: self.hop][:FRAMES]
        spec = np.abs(np.fft.rfft(view * self.window))[:, 1:257]
        spec = np.log1p(spec.reshape(FRAMES, BINS, 2).mean(2)).astype(np.float32)
        lo = rng.integers(0, BINS - 8)
        spec[:, lo:lo + 8] = 0
        return torch.from_numpy(spec), int(self.label[i])


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, d // 64, 64).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class BirdNet(nn.Module):
    def __init__(self, d, depth, species):
        super().__init__()
        self.stem = nn.Linear(BINS, d)
        self.pos = nn.Parameter(torch.randn(FRAMES, d) * 0.02)
        self.blocks = nn.ModuleList(Block(d) for _ in range(depth))
        self.head = nn.Linear(d, species)

    def forward(self, spec):
        x = self.stem(spec) + self.pos
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    order = EpochOrder(S["clips"])
    data = FieldRecordings(S["clips"], S["seconds"], S["rate"], S["species"])
    loader = DataLoader(data, S["batch"], sampler=order, drop_last=True, pin_memory=device == "cuda", **LOADING)
    net = BirdNet(S["width"], S["depth"], S["species"]).to(device)
    if not TINY:
        for block in net.blocks:
            block.compile()
    opt = torch.optim.AdamW(net.parameters(), 1e-4, fused=True)
    total = torch.zeros((), device=device)
    for epoch in range(S["epochs"]):
        total.zero_()
        for spec, label in loader:
            spec, label = spec.to(device, non_blocking=True), label.to(device, non_blocking=True)
            with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
                loss = F.cross_entropy(net(spec), label)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            total += loss.detach()
    print(f"last epoch loss {total.item() / len(loader):.4f}")


if __name__ == "__main__":
    main()
