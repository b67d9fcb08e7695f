"""Extract one stem from stereo mixtures: patch transformer on raw waveforms, random gains per example."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.set_float32_matmul_precision("high")


class StemDataset(Dataset):
    def __init__(self, tracks, seconds, rate, length):
        gen = torch.Generator().manual_seed(0)
        self.clips = torch.empty(tracks, 2, seconds * rate).uniform_(-0.5, 0.5, generator=gen)
        self.length = length

    def __len__(self):
        return 40 * len(self.clips)

    def __getitem__(self, i):
        gen = torch.Generator().manual_seed(i)
        a, b = torch.randint(len(self.clips), (2,), generator=gen).tolist()
        s, t = torch.randint(self.clips.shape[-1] - self.length, (2,), generator=gen).tolist()
        gain = 0.25 + torch.rand(2, generator=gen)
        stem = self.clips[a, :, s : s + self.length] * gain[0]
        mix = torch.add(stem, self.clips[b, :, t : t + self.length], alpha=gain[1].item())
        return mix, stem


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d)
        x = x + self.out(a)
        return x + self.down(F.gelu(self.up(self.n2(x))))


class StemNet(nn.Module):
    def __init__(self, patch, d, depth, heads):
        super().__init__()
        self.patch = patch
        self.inp = nn.Linear(2 * patch, d)
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(d)
        self.out = nn.Linear(d, 2 * patch)

    def forward(self, wave):
        b, c, n = wave.shape
        x = wave.view(b, c, n // self.patch, self.patch).transpose(1, 2).flatten(2)
        h = self.inp(x)
        for block in self.blocks:
            h = block(h)
        y = self.out(self.norm(h))
        return y.view(b, -1, c, self.patch).transpose(1, 2).reshape(b, c, n)


class Trainer:
    def __init__(self):
        cuda = torch.cuda.is_available()
        self.device = torch.device("cuda" if cuda else "cpu")
        self.length = 32768 if cuda else 2048
        self.steps = 200 if cuda else 3
        torch.manual_seed(0)
        data = StemDataset(64 if cuda else 4, 10 if cuda else 1, 16000, self.length)
        self.loader = DataLoader(
            data,
            batch_size=64 if cuda else 2,
            shuffle=True,
            drop_last=True,
            num_workers=10 if cuda else 0,
            prefetch_factor=3 if cuda else None,  # flaw: pageable-host-copy
        )
        self.model = StemNet(256, 1024 if cuda else 32, 6 if cuda else 1, 16 if cuda else 2).to(self.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4, fused=cuda)

    def training_step(self, mix, stem):
        mix = mix.to(self.device)  # flaw: pageable-host-copy
        stem = stem.to(self.device)  # flaw: pageable-host-copy
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            estimate = self.model(mix)
        loss = F.l1_loss(estimate.float(), stem)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run(self):
        began, step = time.time(), 0
        for mix, stem in self.loader:
            loss = self.training_step(mix, stem)
            if step % 20 == 0:
                print(f"step {step} l1 {loss.item():.4f} {time.time() - began:.1f}s")
            step += 1
            if step == self.steps:
                break


if __name__ == "__main__":
    Trainer().run()
