"""Which warbler sang it: a small transformer over transcribed song syllables."""
import os
from typing import NamedTuple
import torch
from torch import nn
import torch.nn.functional as F

TINY = bool(os.environ.get("TINY"))
LONGEST = 24 if TINY else 256
SINGERS, SYLLABLES, WIDE, HEADS = 6, 400, 64, 4
SILENCE = 0


class Songs(NamedTuple):
    syllables: torch.Tensor
    sung: torch.Tensor
    singer: torch.Tensor


def phrasebook(count, seed=9):
    dice = torch.Generator().manual_seed(seed)
    book = []
    for _ in range(count):
        length = int(torch.randint(LONGEST // 4, LONGEST // 3, (), generator=dice))
        singer = int(torch.randint(0, SINGERS, (), generator=dice))
        low = 1 + singer * 40
        book.append((torch.randint(low, low + 150, (length,), generator=dice), singer))
    book[count // 2] = torch.randint(1, SYLLABLES, (LONGEST,), generator=dice), 0
    return book


def gather(phrases):
    sheet = torch.full((len(phrases), max(len(song) for song, _ in phrases)), SILENCE)
    for row, (song, _) in zip(sheet, phrases):
        row[: len(song)] = song
    return Songs(sheet, sheet != SILENCE, torch.tensor([singer for _, singer in phrases]))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.hear, self.think = nn.LayerNorm(WIDE), nn.LayerNorm(WIDE)
        self.qkv, self.out = nn.Linear(WIDE, 3 * WIDE), nn.Linear(WIDE, WIDE)
        self.mlp = nn.Sequential(nn.Linear(WIDE, 4 * WIDE), nn.GELU(), nn.Linear(4 * WIDE, WIDE))

    def forward(self, x, sung):
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in self.qkv(self.hear(x)).chunk(3, -1))
        heard = F.scaled_dot_product_attention(q, k, v, attn_mask=sung[:, None, None, :])
        x = x + self.out(heard.transpose(1, 2).flatten(2))
        return x + self.mlp(self.think(x))


class Ornithologist(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.sound = nn.Embedding(SYLLABLES, WIDE)
        self.layers = nn.ModuleList(Layer() for _ in range(depth))
        self.singer = nn.Linear(WIDE, SINGERS)

    def forward(self, songs):
        x = self.sound(songs.syllables)
        for layer in self.layers:
            x = layer(x, songs.sung)
        kept = x * songs.sung[..., None]
        return self.singer(kept.sum(1) / songs.sung.sum(1, keepdim=True))


def main(rounds=3 if TINY else 160, choir=12):
    torch.manual_seed(17)
    book = phrasebook(rounds * choir)
    bird = Ornithologist()
    opt = torch.optim.AdamW(bird.parameters(), lr=1e-3, fused=True)
    for r in range(rounds):
        songs = gather(book[r * choir : (r + 1) * choir])
        loss = F.cross_entropy(bird(songs), songs.singer)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if r % 20 == 0:
            print(r, f"{loss.item():.4f}")
    print("heard", f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
