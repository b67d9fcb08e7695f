"""Hybrid acoustic model: a transformer over filterbank frames predicts one senone per frame."""
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, Sampler

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
N_MELS, STACK, SENONES = 80, 4, 2048
UTTERANCES = 64 * 200 if CUDA else 16
BATCH = 64 if CUDA else 4
D_MODEL, LAYERS = (512, 8) if CUDA else (32, 1)
MAX_FRAMES = 1600 if CUDA else 64


class Utterances(Dataset):
    """Utterances are spans of one long recording, as cut by a forced alignment."""

    def __init__(self, count):
        rng = np.random.default_rng(5)
        recording = rng.standard_normal((200_000 if CUDA else 2000, N_MELS), dtype=np.float32)
        self.recording = torch.from_numpy(recording)
        self.alignment = torch.from_numpy(rng.integers(0, SENONES, len(recording)))
        frames = np.clip(rng.lognormal(np.log(MAX_FRAMES * 0.3), 0.6, count), MAX_FRAMES * 0.1, MAX_FRAMES)
        self.frames = (frames.astype(int) // STACK) * STACK
        self.starts = rng.integers(0, len(recording) - MAX_FRAMES, count)

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, i):
        s, n = self.starts[i], self.frames[i]
        feats = self.recording[s : s + n].reshape(n // STACK, N_MELS * STACK)
        return feats, self.alignment[s : s + n : STACK]


class LengthBuckets(Sampler):
    """Batches of utterances of similar length, in random order."""

    def __init__(self, frames, batch, pool=50):
        self.frames, self.batch, self.pool = frames, batch, pool

    def __len__(self):
        return len(self.frames) // self.batch

    def __iter__(self):
        order = np.random.permutation(len(self.frames))
        batches = []
        for i in range(0, len(order), self.batch * self.pool):
            part = order[i : i + self.batch * self.pool]
            part = part[np.argsort(self.frames[part])]
            batches += [part[j : j + self.batch].tolist() for j in range(0, len(part), self.batch)]
        random.shuffle(batches)
        return iter(batches)


def collate(samples):
    feats, targets = zip(*samples)
    lengths = torch.tensor([len(f) for f in feats])
    return pad_sequence(feats, batch_first=True), pad_sequence(targets, batch_first=True, padding_value=-100), lengths


class EncoderLayer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.attn_norm, self.ff_norm = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.ff = nn.Sequential(nn.Linear(d, 4 * d), nn.SiLU(), nn.Linear(4 * d, d))

    def forward(self, x, keep):
        b, t, d = x.shape
        q, k, v = self.qkv(self.attn_norm(x)).view(b, t, 3, self.heads, -1).transpose(1, 3).unbind(2)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=keep)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.ff(self.ff_norm(x))


class AcousticModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Linear(N_MELS * STACK, D_MODEL)
        self.pos = nn.Parameter(torch.zeros(MAX_FRAMES // STACK, D_MODEL))
        self.layers = nn.ModuleList(EncoderLayer(D_MODEL, max(1, D_MODEL // 64)) for _ in range(LAYERS))
        self.senones = nn.Linear(D_MODEL, SENONES)

    def forward(self, feats, lengths):
        t = feats.shape[1]
        keep = torch.arange(t, device=feats.device) < lengths[:, None]
        x = self.front(feats) + self.pos[:t]
        for layer in self.layers:
            x = layer(x, keep[:, None, None, :])
        return self.senones(x)


def main():
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    torch.set_float32_matmul_precision("high")
    data = Utterances(UTTERANCES)
    workers = 10 if CUDA else 0
    loader = DataLoader(data, batch_sampler=LengthBuckets(data.frames, BATCH), collate_fn=collate,
                        num_workers=workers, pin_memory=CUDA, persistent_workers=workers > 0)
    model = AcousticModel().to(DEVICE)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=CUDA)
    for step, (feats, targets, lengths) in enumerate(loader, 1):
        feats, targets, lengths = (t.to(DEVICE, non_blocking=True) for t in (feats, targets, lengths))
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            logits = model(feats, lengths)
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        if step % 50 == 0:
            print(f"step {step} frame loss {loss.item():.3f}")
    print("utterances seen", step * BATCH)


if __name__ == "__main__":
    main()
