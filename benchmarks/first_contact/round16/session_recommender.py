import os
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Plan:
    items: int = 32000
    sessions: int = 128
    clicks: int = 128
    width: int = 512
    layers: int = 3
    steps: int = 600


plan = Plan(200, 4, 12, 32, 2, 4) if os.environ.get("TINY") else Plan()
device = "cuda" if torch.cuda.is_available() else "cpu"


class NextItem(nn.Module):
    """Causal transformer over the clicks of a session (SASRec)."""

    def __init__(self, plan):
        super().__init__()
        self.items = nn.Embedding(plan.items, plan.width)
        self.places = nn.Embedding(plan.clicks, plan.width)
        layer = nn.TransformerEncoderLayer(plan.width, 8, 4 * plan.width, 0.0, "gelu", batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, plan.layers, norm=nn.LayerNorm(plan.width), enable_nested_tensor=False)
        nn.init.normal_(self.items.weight, std=0.02)
        self.register_buffer("order", torch.arange(plan.clicks), persistent=False)
        self.register_buffer("future", nn.Transformer.generate_square_subsequent_mask(plan.clicks), persistent=False)

    def forward(self, clicks):
        x = self.items(clicks) + self.places(self.order)
        return self.body(x, mask=self.future, is_causal=True)


class Objective:
    def __init__(self, plan):
        self.n = plan.items

    def __call__(self, scores, wanted):
        log_p = scores.float().log_softmax(-1)  # flaw: hand-written-loss
        hot = F.one_hot(wanted, self.n)  # flaw: hand-written-loss
        return -(log_p * hot).sum(-1).mean()  # flaw: hand-written-loss


class Trainer:
    def __init__(self, plan):
        torch.manual_seed(3)
        self.plan = plan
        self.net = NextItem(plan).to(device)
        self.objective = Objective(plan)
        self.opt = torch.optim.AdamW(self.net.parameters(), 3e-4, fused=True)
        self.losses = []

    def batches(self):
        p = self.plan
        for _ in range(p.steps):
            start = torch.randint(p.items, (p.sessions, 1), device=device)
            hops = torch.randint(1, 9, (p.sessions, p.clicks), device=device).cumsum(1)
            walk = torch.cat([start, start + hops], 1) % p.items
            yield walk[:, :-1], walk[:, 1:]

    def step(self, clicks, wanted):
        with torch.autocast(device, torch.bfloat16):
            states = self.net(clicks).flatten(0, 1)
            scores = states @ self.net.items.weight.T
        loss = self.objective(scores, wanted.flatten())
        loss.backward()
        self.opt.step()
        self.opt.zero_grad(set_to_none=True)
        return loss.detach()

    def fit(self):
        for clicks, wanted in self.batches():
            self.losses.append(self.step(clicks, wanted))
        curve = torch.stack(self.losses).tolist()
        print("loss", round(curve[0], 3), "->", round(curve[-1], 3))


Trainer(plan).fit()
