# What will a customer buy next?  A GRU over the session, scores against the item table.
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = bool(int(os.environ.get("TINY", "0")))
ITEMS = 300 if TINY else 5000
SESSIONS = 4 if TINY else 32
CLICKS = 10 if TINY else 30
STEPS = 6 if TINY else 120


class SessionModel(nn.Module):
    def __init__(self, items, width=64):
        super().__init__()
        self.items = nn.Embedding(items, width)
        nn.init.normal_(self.items.weight, std=0.1)
        self.walk = nn.GRU(width, width, batch_first=True)
        self.shape = nn.Linear(width, width)

    def forward(self, clicks):
        states, _ = self.walk(self.items(clicks))
        return F.linear(self.shape(states[:, -1]), self.items.weight)


class NextItemLoss(nn.Module):
    """Cross entropy of the purchase that follows the session."""

    def forward(self, scores, bought):
        return F.cross_entropy(scores, bought)


def shop(g):
    taste = torch.randint(ITEMS, (SESSIONS, 1), generator=g)
    clicks = (taste + torch.randint(40, (SESSIONS, CLICKS), generator=g)) % ITEMS
    return clicks, (clicks[:, -1] + 1) % ITEMS


def fit():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(30)
    model, objective = SessionModel(ITEMS), NextItemLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, fused=True)
    done = 0
    while done < STEPS:
        clicks, bought = shop(g)
        loss = objective(model(clicks), bought)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        done += 1
        if done % (STEPS // 2) == 0:
            yield done, loss.item()


for done, value in fit():
    print(f"{done:3d} sessions batches: {value:.4f}")
