"""Writes discrete prosody units (pitch, energy and duration codes) for a text-to-speech voice, unit by unit."""
import dataclasses

import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass(frozen=True)
class Voice:
    units: int = 320
    width: int = 192
    heads: int = 4
    depth: int = 4
    longest: int = 192
    utterances: int = 4
    streams: int = 4
    temperature: float = 0.9


class Block(nn.Module):
    def __init__(self, v: Voice):
        super().__init__()
        self.heads = v.heads
        self.norm1, self.norm2 = nn.LayerNorm(v.width), nn.LayerNorm(v.width)
        self.qkv = nn.Linear(v.width, 3 * v.width)
        self.out = nn.Linear(v.width, v.width)
        self.mlp = nn.Sequential(nn.Linear(v.width, 4 * v.width), nn.GELU(), nn.Linear(4 * v.width, v.width))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.norm2(x))


class UnitModel(nn.Module):
    def __init__(self, v: Voice):
        super().__init__()
        self.unit = nn.Embedding(v.units, v.width)
        self.place = nn.Embedding(v.longest, v.width)
        self.speaker = nn.Linear(8, v.width)
        self.blocks = nn.ModuleList(Block(v) for _ in range(v.depth))
        self.norm = nn.LayerNorm(v.width)
        self.head = nn.Linear(v.width, v.units, bias=False)

    def forward(self, units, speaker):
        places = self.place.weight[: units.shape[1]]
        x = self.unit(units) + places + self.speaker(speaker)[:, None]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, -1]))


def choose(scores, temperature, generator):
    noise = torch.empty_like(scores).exponential_(generator=generator)
    return ((scores / temperature).softmax(-1) / noise).argmax(-1)


def speak(model, voice, speaker, generator):
    """One utterance per stream: yields the units as they are chosen."""
    written = torch.zeros(voice.streams, voice.longest, dtype=torch.long)
    for at in range(1, voice.longest):
        scores = model(written[:, :at], speaker)  # flaw: generation-without-cache
        written[:, at] = choose(scores, voice.temperature, generator)
        yield written[:, at]


@torch.inference_mode()
def main():
    voice = Voice()
    torch.manual_seed(9)
    generator = torch.Generator().manual_seed(9)
    model = UnitModel(voice).eval()
    used = torch.zeros(voice.units)
    for utterance in range(voice.utterances):
        speaker = torch.randn(voice.streams, 8, generator=generator)
        for units in speak(model, voice, speaker, generator):
            used.index_add_(0, units, torch.ones(len(units)))
        share = used / used.sum()
        entropy = -(share * share.clamp(min=1e-9).log()).sum()
        print(f"utterance {utterance}  units in use {int((used > 0).sum())}  entropy {entropy:.3f}", flush=True)


if __name__ == "__main__":
    main()
