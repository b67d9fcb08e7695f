import os
import random
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

SETTINGS = """
data.clips: 7680
data.samples: 16384
data.margin: 2048
data.num_workers: 0  # flaw: loader-without-workers
model.patch: 128
model.width: 512
model.depth: 8
model.classes: 40
train.batch: 256
train.epochs: 6
train.lr: 3e-4
"""
TINY_SETTINGS = """
data.clips: 96
data.samples: 1024
data.margin: 128
model.width: 64
model.depth: 1
train.batch: 16
"""


def parse(text):
    out = {}
    for line in text.strip().splitlines():
        key, value = line.split("#")[0].split(":")
        out[key.strip()] = float(value) if "e-" in value else int(value)
    return out


conf = parse(SETTINGS)
if os.environ.get("TINY") == "1":
    conf.update(parse(TINY_SETTINGS))

device = "cuda" if torch.cuda.is_available() else "cpu"
on_gpu = device == "cuda"
torch.manual_seed(0)
torch.set_float32_matmul_precision("high")


class NoisyClips(Dataset):
    """int16 clips; every access crops, filters, and mixes a noise clip at a random SNR."""

    def __init__(self, clips, samples, margin, classes):
        rng = np.random.default_rng(3)
        self.samples, self.margin = samples, margin
        self.audio = rng.integers(-9000, 9000, (clips, samples + margin), dtype=np.int16)
        self.noise = rng.standard_normal((16, samples)).astype(np.float32)
        self.label = rng.integers(0, classes, clips)
        freq = np.fft.rfftfreq(samples).astype(np.float32)
        self.tilts = np.stack([(1 + 40 * freq) ** -a for a in np.linspace(0, 1, 8)]).astype(np.float32)

    def __len__(self):
        return len(self.audio)

    def __getitem__(self, i):
        rng = random.Random(i)
        at = rng.randrange(self.margin)
        wave = self.audio[i, at:at + self.samples].astype(np.float32) / 32768
        spectrum = np.fft.rfft(wave) * self.tilts[rng.randrange(8)]
        wave = np.fft.irfft(spectrum, self.samples).astype(np.float32)
        wave += self.noise[rng.randrange(16)] * rng.uniform(0.01, 0.1)
        wave /= np.sqrt(np.mean(wave * wave)) + 1e-6
        return torch.from_numpy(wave), int(self.label[i])


class PatchSpotter(nn.Module):
    def __init__(self, patch, width, depth, classes, samples):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(patch, width)
        self.place = nn.Parameter(torch.randn(samples // patch, width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            width, width // 64, 4 * width, dropout=0.0, activation="gelu",
            batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, wave):
        x = self.embed(wave.unflatten(1, (-1, self.patch))) + self.place
        return self.head(self.norm(self.body(x).mean(1)))


def build_loader():
    data = NoisyClips(conf["data.clips"], conf["data.samples"], conf["data.margin"], conf["model.classes"])
    workers = conf["data.num_workers"]
    extra = dict(persistent_workers=True, prefetch_factor=4) if workers else {}
    order = RandomSampler(data, generator=torch.Generator().manual_seed(1))
    return DataLoader(data, conf["train.batch"], sampler=order, drop_last=True,
                      num_workers=workers, pin_memory=on_gpu, **extra)


if __name__ == "__main__":
    loader = build_loader()
    net = PatchSpotter(conf["model.patch"], conf["model.width"], conf["model.depth"],
                       conf["model.classes"], conf["data.samples"]).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=conf["train.lr"], fused=on_gpu)
    criterion = nn.CrossEntropyLoss()
    began = time.perf_counter()
    for epoch in range(conf["train.epochs"]):
        seen = torch.zeros((), device=device)
        for wave, label in loader:
            wave = wave.to(device, non_blocking=True)
            label = label.to(device, non_blocking=True)
            with torch.autocast(device, torch.bfloat16, enabled=on_gpu):
                loss = criterion(net(wave), label)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            seen += loss.detach()
        print(f"epoch {epoch} loss {seen.item() / len(loader):.4f}")
    print(f"{time.perf_counter() - began:.1f} s")
