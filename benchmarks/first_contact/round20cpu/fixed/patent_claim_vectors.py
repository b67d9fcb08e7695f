"""Turns patent claims into vectors, batch by batch, for a search index. All claims are cut to the same length."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

SETTINGS = {
    "claims": 2560,
    "tokens": 256,
    "rows": 8,
    "words": 8000,
    "width": 128,
    "heads": 8,
    "layers": 2,
}


def distance_slopes(heads, tokens):
    place = torch.arange(tokens)
    apart = (place[:, None] - place).abs().float()
    slope = 2.0 ** -torch.arange(1, heads + 1).float()
    return -slope[:, None, None] * apart


class Mixer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.merge = nn.Linear(width, width)

    def forward(self, x, nearness):
        b, n, c = x.shape
        parts = self.project(x).view(b, n, 3, self.heads, c // self.heads)
        ask, offer, say = parts.unbind(2)
        ask, offer, say = (part.transpose(1, 2) for part in (ask, offer, say))
        heard = F.scaled_dot_product_attention(ask, offer, say, attn_mask=nearness[None]).transpose(1, 2)
        return self.merge(heard.reshape(b, n, c))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.mixer = Mixer(width, heads)
        self.wide = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)

    def forward(self, x, nearness):
        x = x + self.mixer(self.norms[0](x), nearness)
        return x + self.narrow(F.gelu(self.wide(self.norms[1](x))))


class ClaimEncoder(nn.Module):
    def __init__(self, words, width, heads, layers, tokens):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.register_buffer("nearness", distance_slopes(heads, tokens))

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, self.nearness)
        return F.normalize(self.norm(x).mean(1), dim=1)


def corpus(settings):
    rng = np.random.default_rng(5)
    ids = rng.zipf(1.3, (settings["claims"], settings["tokens"])) % settings["words"]
    return torch.from_numpy(ids)


def run(settings):
    torch.manual_seed(0)
    keys = ("words", "width", "heads", "layers", "tokens")
    encoder = ClaimEncoder(**{key: settings[key] for key in keys}).eval()
    claims = corpus(settings)
    vectors = torch.empty(len(claims), settings["width"])
    rows = settings["rows"]
    with torch.inference_mode():
        for number, ids in enumerate(claims.split(rows)):
            vectors[number * rows : number * rows + len(ids)] = encoder(ids)
            if number % 80 == 79:
                print(f"{(number + 1) * rows} claims, spread {vectors[: (number + 1) * rows].std(0).mean():.5f}")
    near = (vectors[:5] @ vectors.T).topk(4).indices[:, 1:]
    print("neighbours of the first claims:", near.tolist())


run(SETTINGS)
