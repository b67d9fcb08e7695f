"""Writes the night's weather bulletins for radio stations, many stations at once, with kept keys and values."""
import torch
import torch.nn.functional as F
from torch import nn

STATIONS, ROUNDS = 64, 7
WORDS, WIDTH, HEADS, DEPTH, PROMPT, LENGTH = 2000, 256, 8, 3, 24, 112


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 1024), nn.GELU(), nn.Linear(1024, WIDTH))

    def forward(self, x, store, start):
        rows, new, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).view(rows, new, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        end = start + new
        store[0, :, :, start:end] = k
        store[1, :, :, start:end] = v
        y = F.scaled_dot_product_attention(q, store[0, :, :, :end], store[1, :, :, :end], is_causal=new > 1)
        x = x + self.out(y.transpose(1, 2).reshape(rows, new, WIDTH))
        return x + self.feed(x)


class Announcer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, ids, store, start):
        x = self.words(ids) + self.places.weight[start : start + ids.shape[1]]
        for layer, part in zip(self.layers, store):
            x = layer(x, part, start)
        return self.head(self.norm(x[:, -1]))


def bulletin(model, prompts, store, heat, generator):
    text = torch.empty(len(prompts), LENGTH, dtype=torch.long)
    text[:, :PROMPT] = prompts
    scores = model(prompts, store, 0)
    for at in range(PROMPT, LENGTH):
        chance = (scores / heat).softmax(1)
        text[:, at] = torch.multinomial(chance, 1, generator=generator).squeeze(1)
        if at + 1 < LENGTH:
            scores = model(text[:, at : at + 1], store, at)
    return text


def main():
    torch.manual_seed(41)
    generator = torch.Generator().manual_seed(42)
    model = Announcer().eval()
    with torch.inference_mode():
        store = torch.empty(DEPTH, 2, STATIONS, HEADS, LENGTH, WIDTH // HEADS)
        for number in range(ROUNDS):
            prompts = torch.randint(WORDS, (STATIONS, PROMPT), generator=generator)
            text = bulletin(model, prompts, store, 0.8, generator)
            print(f"round {number}: station 0 says {text[0, PROMPT : PROMPT + 8].tolist()}")


if __name__ == "__main__":
    main()
