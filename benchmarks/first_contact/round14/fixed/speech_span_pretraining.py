"""Masked prediction of log-mel frames, spans chosen as in wav2vec 2.0."""
import os
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

TINY = os.environ.get("TINY") == "1"


@dataclass
class Settings:
    utterances: int = 16 if TINY else 2048
    frames: int = 40 if TINY else 400
    mels: int = 80
    width: int = 64 if TINY else 512
    depth: int = 2 if TINY else 6
    heads: int = 8
    batch: int = 4 if TINY else 96
    updates: int = 4 if TINY else 560
    span: int = 10
    workers: int = 2 if TINY else 8


class Utterances(Dataset):
    def __init__(self, s):
        g = torch.Generator().manual_seed(3)
        self.frames = torch.randn(s.utterances, s.frames, s.mels, generator=g)

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, index):
        return self.frames[index]


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_a, self.norm_b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm_a(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.norm_b(x))))


class Encoder(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.inp = nn.Linear(s.mels, s.width)
        self.mask_vector = nn.Parameter(torch.zeros(s.width))
        self.position = nn.Parameter(torch.randn(s.frames, s.width) * 0.02)
        self.layers = nn.ModuleList(Layer(s.width, s.heads) for _ in range(s.depth))
        self.norm = nn.LayerNorm(s.width)
        self.back = nn.Linear(s.width, s.mels)

    def forward(self, frames, hidden):
        x = torch.where(hidden[..., None], self.mask_vector, self.inp(frames)) + self.position
        for layer in self.layers:
            x = layer(x)
        return self.back(self.norm(x))


def choose_spans(rng, rows, frames, span):
    """For each row about half of its frames, in spans that may overlap."""
    hidden = np.zeros((rows, frames), dtype=bool)
    wanted = int(0.65 * frames / span)
    for row in range(rows):
        starts = rng.choice(frames - span, wanted, replace=False)
        where = (starts[:, None] + np.arange(span)).ravel()
        hidden[row, np.unique(where)] = True
    return hidden


class Transport:
    """Brings what the host made to where the model is."""

    def __init__(self, device):
        self.device = torch.device(device)

    def frames(self, batch):
        return batch.to(self.device, non_blocking=True)

    def spans(self, array):
        host = torch.from_numpy(array)
        if self.device.type == "cuda":
            host = host.pin_memory()
        return host.to(self.device, non_blocking=True)


def main():
    s = Settings()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rng = np.random.default_rng(5)
    model = Encoder(s).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    utterances = Utterances(s)
    loader = DataLoader(
        utterances, batch_size=s.batch, num_workers=s.workers, persistent_workers=True, pin_memory=device == "cuda",
        sampler=RandomSampler(utterances, replacement=True, num_samples=s.batch * s.updates),
    )
    transport = Transport(device)
    for update, batch in enumerate(loader):
        frames = transport.frames(batch)
        hidden = transport.spans(choose_spans(rng, frames.shape[0], frames.shape[1], s.span))
        with torch.autocast(device, dtype=torch.bfloat16):
            guess = model(frames, hidden)
            loss = F.mse_loss(guess.float(), frames)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if update % 100 == 0:
            print(f"update {update}: {loss.item():.4f}", flush=True)
    print(f"last: {loss.item():.4f}")


if __name__ == "__main__":
    main()
