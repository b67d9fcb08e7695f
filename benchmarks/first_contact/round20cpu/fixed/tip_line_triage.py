"""A newsroom's tip line: reads the night's messages in one go and sorts them by desk and urgency."""
import random
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

DESKS = ("city", "courts", "sports", "weather", "culture")


@dataclass
class Setup:
    messages: int = 8000
    rows: int = 16
    words: int = 4000
    width: int = 96
    heads: int = 4
    depth: int = 2
    longest: int = 240


@dataclass
class Message:
    ids: list[int]
    desk: str = ""
    urgency: float = field(default=0.0)


class Encoder(nn.Module):
    def __init__(self, setup):
        super().__init__()
        self.words = nn.Embedding(setup.words, setup.width, padding_idx=0)
        self.places = nn.Embedding(setup.longest, setup.width)
        self.blocks = nn.ModuleList(Block(setup.width, setup.heads) for _ in range(setup.depth))
        self.desk = nn.Linear(setup.width, len(DESKS))
        self.urgency = nn.Linear(setup.width, 1)

    def forward(self, ids):
        real = ids != 0
        x = self.words(ids) + self.places.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x, real[:, None, None])
        weight = real[:, :, None].float()
        gist = (x * weight).sum(1) / weight.sum(1)
        return self.desk(gist), self.urgency(gist).squeeze(1)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_a, self.norm_b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width))

    def forward(self, x, real):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm_a(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=real)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.norm_b(x))


def night(setup):
    dice = random.Random(23)
    inbox = []
    for _ in range(setup.messages):
        length = min(setup.longest, max(4, int(dice.lognormvariate(3.3, 0.95))))
        inbox.append(Message([dice.randrange(1, setup.words) for _ in range(length)]))
    return inbox


def handfuls(inbox, rows):
    waiting = sorted(inbox, key=lambda message: len(message.ids))
    while waiting:
        yield waiting[:rows]
        del waiting[:rows]


def sheet(messages):
    return nn.utils.rnn.pad_sequence([torch.tensor(message.ids) for message in messages], batch_first=True)


@torch.inference_mode()
def triage(encoder, inbox, rows):
    for number, messages in enumerate(handfuls(inbox, rows), 1):
        desks, urgencies = encoder(sheet(messages))
        for message, desk, urgency in zip(messages, desks.argmax(1).tolist(), urgencies.tolist()):
            message.desk, message.urgency = DESKS[desk], urgency
        if number % 60 == 0:
            print(f"{number * rows} messages read")


if __name__ == "__main__":
    setup = Setup()
    torch.manual_seed(9)
    encoder = Encoder(setup).eval()
    inbox = night(setup)
    triage(encoder, inbox, setup.rows)
    for desk in DESKS:
        mine = sorted((message.urgency for message in inbox if message.desk == desk), reverse=True)
        print(f"{desk:8} {len(mine):5} messages, most urgent {[round(value, 3) for value in mine[:3]]}")
