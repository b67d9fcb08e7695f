"""Next-event model of bell towers: token streams of (bell, gap) pairs, trained left to right."""
import os
from collections import namedtuple

import torch
import torch.nn.functional as F
from torch import nn

Hall = namedtuple("Hall", "tokens span width heads depth batch peals")
HALL = Hall(64, 32, 32, 2, 2, 2, 4) if os.environ.get("TINY") == "1" else Hall(2048, 2048, 768, 12, 8, 8, 260)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Context:
    """What all layers of a forward pass share."""

    def __init__(self, hall):
        self.heads = hall.heads


class Ear(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.listen = nn.Linear(width, 3 * width, bias=False)
        self.answer = nn.Linear(width, width, bias=False)

    def forward(self, x, context):
        shape = x.shape[0], x.shape[1], context.heads, self.width // context.heads
        q, k, v = (part.reshape(shape).transpose(1, 2) for part in self.listen(x).split(self.width, -1))
        heard = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.answer(heard.transpose(1, 2).flatten(2))


class Tower(nn.Module):
    def __init__(self, hall):
        super().__init__()
        self.context = Context(hall)
        self.embed = nn.Embedding(hall.tokens, hall.width)
        self.when = nn.Embedding(hall.span, hall.width)
        self.floors = nn.ModuleList()
        for _ in range(hall.depth):
            w = hall.width
            mlp = nn.Sequential(nn.LayerNorm(w), nn.Linear(w, 4 * w), nn.GELU(), nn.Linear(4 * w, w))
            self.floors.append(nn.ModuleDict({"norm": nn.LayerNorm(w), "ear": Ear(w), "mlp": mlp}))
        self.norm = nn.LayerNorm(hall.width)

    def forward(self, events):
        x = self.embed(events) + self.when.weight[: events.shape[1]]
        for floor in self.floors:
            x = x + floor["ear"](floor["norm"](x), self.context)
            x = x + floor["mlp"](x)
        return self.norm(x) @ self.embed.weight.T


def peals(hall):
    g = torch.Generator(device).manual_seed(6)
    book = torch.randint(0, hall.tokens, (8, hall.batch, hall.span + 1), device=device, generator=g)
    for n in range(hall.peals):
        page = book[n % 8]
        yield page[:, :-1], page[:, 1:]


torch.manual_seed(2)
tower = Tower(HALL).to(device)
optim = torch.optim.AdamW(tower.parameters(), lr=2e-4, fused=True)
surprise = torch.zeros((), device=device)
for heard, following in peals(HALL):
    with torch.autocast(device.type, torch.bfloat16):
        scores = tower(heard)
        loss = F.cross_entropy(scores.flatten(0, 1), following.flatten())
    loss.backward()
    optim.step()
    optim.zero_grad(set_to_none=True)
    surprise += loss.detach()
print(f"mean surprise {surprise.item() / HALL.peals:.3f} nats")
