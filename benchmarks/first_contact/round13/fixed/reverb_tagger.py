import os, math
from functools import partial

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

# settings ------------------------------------------------------------------
TINY = bool(int(os.environ.get("TINY", "0")))
CFG = {
    "clips": 64 if TINY else 2560,
    "samples": 2048 if TINY else 16384,
    "taps": 64 if TINY else 2400,
    "rooms": 8,
    "batch": 16 if TINY else 128,
    "epochs": 2 if TINY else 5,
    "workers": 0 if TINY else 4,
    "width": 64 if TINY else 1024,
    "layers": 2 if TINY else 16,
    "tags": 16,
}
DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True


def room_responses(n, taps, rng):
    decay = np.exp(-np.linspace(0, 6, taps))
    ir = rng.standard_normal((n, taps)) * decay
    ir[:, 0] = 1.0
    return (ir / np.abs(ir).sum(1, keepdims=True)).astype(np.float32)


class Clips(Dataset):
    def __init__(self, cfg):
        rng = np.random.default_rng(11)
        self.cfg = cfg
        self.base = rng.standard_normal((64, cfg["samples"]), dtype=np.float32)
        self.tone = rng.integers(0, cfg["tags"], cfg["clips"])
        self.rooms = room_responses(cfg["rooms"], cfg["taps"], rng)
        t = np.arange(cfg["samples"], dtype=np.float32) / 16000.0
        self.tones = np.stack([np.sin(2 * np.pi * 110 * (k + 1) * t) for k in range(cfg["tags"])]).astype(np.float32)

    def __len__(self):
        return self.cfg["clips"]

    @staticmethod
    def convolve(a, b):
        n = 1 << (len(a) + len(b) - 2).bit_length()
        return np.fft.irfft(np.fft.rfft(a, n) * np.fft.rfft(b, n), n)

    def augment(self, clip, seed):
        room = self.rooms[seed % len(self.rooms)]
        wet = self.convolve(clip, room)[: clip.shape[0]]
        gain = 0.7 + 0.6 * ((seed * 7919) % 101) / 100
        return wet * np.float32(gain)

    def __getitem__(self, i):
        tag = self.tone[i]
        clip = self.base[i % 64] * np.float32(0.3) + self.tones[tag]
        clip = self.augment(clip, i)
        return torch.from_numpy(np.ascontiguousarray(clip, dtype=np.float32)), int(tag)


class Layer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.heads = heads
        self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.proj = nn.Linear(d, d, bias=False)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
        return x + self.mlp(self.n2(x))


class Tagger(nn.Module):
    """Patches of raw waveform -> transformer -> tag."""

    def __init__(self, width, layers, tags, patch=256):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(patch, width)
        self.layers = nn.ModuleList(Layer(width, width // 64) for _ in range(layers))
        self.out = nn.Linear(width, tags)

    def forward(self, wave):
        x = self.embed(wave.unflatten(1, (-1, self.patch)))
        for layer in self.layers:
            x = layer(x)
        return self.out(x.mean(1))


def run(cfg):
    torch.manual_seed(5)
    on_gpu = DEV.type == "cuda"
    make_loader = partial(DataLoader, batch_size=cfg["batch"], num_workers=cfg["workers"], drop_last=True,
                          pin_memory=on_gpu, persistent_workers=cfg["workers"] > 0)
    loader = make_loader(Clips(cfg), shuffle=True)
    net = Tagger(cfg["width"], cfg["layers"], cfg["tags"]).to(DEV)
    if not TINY:
        for layer in net.layers:
            layer.compile()
    opt = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=on_gpu)
    for epoch in range(cfg["epochs"]):
        seen = torch.zeros(2, device=DEV)
        for wave, tag in loader:
            wave, tag = wave.to(DEV, non_blocking=True), tag.to(DEV, non_blocking=True)
            with torch.autocast(DEV.type, dtype=torch.bfloat16, enabled=on_gpu):
                loss = F.cross_entropy(net(wave), tag)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            seen[0] += loss.detach()
            seen[1] += 1
        print("epoch", epoch, "loss %.4f" % (seen[0] / seen[1]).item())


if __name__ == "__main__":
    run(CFG)
