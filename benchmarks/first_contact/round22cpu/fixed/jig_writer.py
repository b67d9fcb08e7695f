"""Drafts two-part jigs: a small causal model proposes notes, a checker counts the ones in the mode."""
import time

import torch
import torch.nn.functional as F
from torch import nn

NOTES, BAR, BARS, DRAFTS = 64, 12, 12, 8
MODE = torch.tensor([0, 2, 3, 5, 7, 9, 10])


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.join = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 3 * dim), nn.GELU(), nn.Linear(3 * dim, dim))

    def split(self, x):
        return self.qkv(self.before(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)

    def finish(self, x, seen):
        x = x + self.join(seen.transpose(1, 2).flatten(2))
        return x + self.mlp(self.after(x))

    def forward(self, x):
        q, k, v = self.split(x)
        return self.finish(x, F.scaled_dot_product_attention(q, k, v, is_causal=True))

    def extend(self, x, shelf, at):
        """One more position; `shelf` holds the keys and values of those before."""
        q, k, v = self.split(x)
        shelf[0][:, :, at : at + 1] = k
        shelf[1][:, :, at : at + 1] = v
        seen = F.scaled_dot_product_attention(q, shelf[0][:, :, : at + 1], shelf[1][:, :, : at + 1])
        return self.finish(x, seen)


class Fiddler(nn.Module):
    def __init__(self, dim=128, heads=4, depth=3, longest=BAR * BARS):
        super().__init__()
        self.note = nn.Embedding(NOTES, dim)
        self.beat = nn.Embedding(longest, dim)
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.next = nn.Linear(dim, NOTES)
        self.register_buffer("beats", torch.arange(longest), persistent=False)

    def forward(self, tune):
        """Scores of the note that follows `tune`."""
        x = self.note(tune) + self.beat(self.beats[: tune.shape[1]])
        for layer in self.layers:
            x = layer(x)
        return self.next(self.norm(x[:, -1]))

    def shelves(self, rows):
        layer = self.layers[0]
        size = (rows, layer.heads, len(self.beats), layer.join.in_features // layer.heads)
        return [self.note.weight.new_empty(2, *size) for _ in self.layers]

    def follow(self, last, shelves, at):
        """The same, given the note at place `at` and what earlier calls left on the shelves."""
        x = self.note(last) + self.beat(self.beats[at : at + 1])
        for layer, shelf in zip(self.layers, shelves):
            x = layer.extend(x, shelf, at)
        return self.next(self.norm(x[:, -1]))


class Writer:
    def __init__(self, model, warmth, seed):
        self.model, self.warmth = model.eval(), warmth
        device = model.beats.device
        self.rng = torch.Generator(device).manual_seed(seed)

    def pick(self, scores):
        chance = torch.softmax(scores / self.warmth, dim=-1)
        return torch.multinomial(chance, 1, generator=self.rng).squeeze(1)

    @torch.inference_mode()
    def draft(self, first):
        tune = first.new_empty(len(first), BAR * BARS)
        tune[:, 0] = first
        shelves = self.model.shelves(len(first))
        for at in range(1, tune.shape[1]):
            tune[:, at] = self.pick(self.model.follow(tune[:, at - 1 : at], shelves, at - 1))
        return tune


def in_mode(tune, mode):
    return torch.isin(tune % 12, mode).float().mean(1)


def session(drafts):
    torch.manual_seed(70)
    torch.set_float32_matmul_precision("high")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    writer = Writer(Fiddler().to(device), 0.9, 71)
    mode = MODE.to(device)
    rng = torch.Generator(device).manual_seed(72)
    for number in range(drafts):
        begin = time.perf_counter()
        first = torch.randint(NOTES, (DRAFTS,), device=device, generator=rng)
        tunes = writer.draft(first)
        share = in_mode(tunes, mode)
        if number % 5 == 4:
            ms = (time.perf_counter() - begin) * 1e3
            best = int(share.argmax())
            print(f"draft {number + 1:3d}: {share.mean():.4f} in mode, best opens {tunes[best, :8].tolist()}, {ms:.0f} ms", flush=True)


if __name__ == "__main__":
    session(30)
