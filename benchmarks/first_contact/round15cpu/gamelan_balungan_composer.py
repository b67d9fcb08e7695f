"""Continues gamelan melodies note by note with a small decoder."""
import os

import torch
from torch import nn
from torch.nn import functional as F

TINY = os.environ.get("TINY") == "1"
NOTES, WIDTH, HEADS, LAYERS = 40, 192, 6, 3
VOICES, OPENING, LENGTH, PIECES = (2, 4, 10, 1) if TINY else (6, 96, 192, 3)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.merge = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        q, k, v = (
            part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.qkv(self.before(x)).chunk(3, -1)
        )
        heard = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.merge(heard.transpose(1, 2).flatten(2))
        return x + self.feed(self.between(x))


class Composer(nn.Module):
    def __init__(self):
        super().__init__()
        self.note, self.beat = nn.Embedding(NOTES, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.score = nn.Linear(WIDTH, NOTES)

    def forward(self, melody):
        x = self.note(melody) + self.beat.weight[: melody.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.score(x[:, -1])

    @torch.inference_mode()
    def unfold(self, melody):
        while melody.shape[1] < LENGTH:
            following = self(melody).argmax(-1, keepdim=True)  # flaw: generation-without-cache
            melody = torch.cat((melody, following), 1)  # flaw: generation-without-cache
            yield following
        self.finished = melody


torch.manual_seed(6)
composer = Composer().eval()
for piece in range(PIECES):
    opening = torch.randint(0, NOTES, (VOICES, OPENING))
    gongs = sum((notes % 8 == 0).sum().item() for notes in composer.unfold(opening))
    print(f"piece {piece}: {gongs} gongs, sum {composer.finished.sum().item()}")
