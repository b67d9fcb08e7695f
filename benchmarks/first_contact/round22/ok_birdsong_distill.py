"""Distil a large birdsong tagger into a small one that fits a field recorder."""
import abc
import os

import torch
import torch.nn.functional as F
from torch import nn

torch.set_float32_matmul_precision("high")


class Patches(nn.Module):
    """A log-mel spectrogram as tokens: one for every stretch of eight frames."""

    def __init__(self, frames, bands, stretch, width):
        super().__init__()
        self.tokens = frames // stretch
        self.linear = nn.Linear(bands * stretch, width)
        self.position = nn.Parameter(torch.randn(self.tokens, width) * 0.02)

    def forward(self, spectrogram):
        return self.linear(spectrogram.unflatten(1, (self.tokens, -1)).flatten(2)) + self.position


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_a, self.norm_b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        q, k, v = self.qkv(self.norm_a(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm_b(x))


def tagger(frames, bands, width, heads, depth, species):
    return nn.Sequential(
        Patches(frames, bands, 8, width), *(Block(width, heads) for _ in range(depth)), nn.LayerNorm(width),
        nn.Linear(width, species),
    )


class Trainer(abc.ABC):
    def __init__(self, model, device, lr):
        self.model, self.device = model.to(device), device
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, fused=True)
        self.total = torch.zeros((), device=device)

    @abc.abstractmethod
    def loss(self, batch): ...

    def fit(self, batches, steps, report):
        for step, batch in zip(range(1, steps + 1), batches):
            with torch.autocast(self.device, dtype=torch.bfloat16):
                loss = self.loss(batch)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            self.total += loss.detach()
            if step % report == 0:
                print(f"step {step}: {type(self).__name__} loss {self.total.item() / report:.5f}", flush=True)
                self.total.zero_()


class Distiller(Trainer):
    def __init__(self, model, teacher, device, lr, temperature=2.0):
        super().__init__(model, device, lr)
        # only the student is trained; the teacher runs in the precision of the field tests
        self.teacher = teacher.to(device, torch.bfloat16).eval().requires_grad_(False)
        self.temperature = temperature

    def opinions(self, batch):
        with torch.no_grad(), torch.autocast(self.device, enabled=False):
            return F.log_softmax(self.teacher(batch).float() / self.temperature, -1)

    def loss(self, batch):
        own = F.log_softmax(self.model(batch) / self.temperature, -1)
        return F.kl_div(own.flatten(0, 1), self.opinions(batch).flatten(0, 1), reduction="batchmean", log_target=True)


def recordings(count, frames, bands, batch, device, seed):
    g = torch.Generator(device).manual_seed(seed)
    time = torch.linspace(0, 30, frames, device=device)
    pitch = torch.rand(count, 1, bands, device=device, generator=g) * 3
    songs = torch.sin(pitch * time.view(1, -1, 1))
    songs = (songs + 0.3 * torch.randn(songs.shape, device=device, generator=g)).bfloat16()
    while True:
        yield songs[torch.randint(count, (batch,), device=device, generator=g)]


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(88)
    if os.environ.get("TINY") == "1":
        frames, bands, species, count, batch, steps, report = 64, 8, 16, 32, 4, 40, 10
        sizes = {"large": (32, 4, 2), "small": (16, 2, 1)}
    else:
        frames, bands, species, count, batch, steps, report = 2048, 64, 512, 4096, 128, 2000, 100
        sizes = {"large": (1280, 20, 8), "small": (768, 12, 4)}
    teacher = tagger(frames, bands, *sizes["large"], species)
    student = tagger(frames, bands, *sizes["small"], species)
    distiller = Distiller(student, teacher, device, lr=4e-4)
    distiller.fit(recordings(count, frames, bands, batch, device, seed=89), steps, report)


if __name__ == "__main__":
    main()
