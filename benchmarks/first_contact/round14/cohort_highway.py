"""Discrete-time survival of one patient cohort: a deep narrow highway network, all patients in each update."""
import math
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
ACC = "cuda" if torch.cuda.is_available() else "cpu"
PATIENTS, COVARIATES, INTERVALS = (40, 12, 8) if TINY else (420, 96, 24)
WIDTH, DEPTH, UPDATES = (16, 3, 6) if TINY else (192, 26, 900)


class Highway(nn.Module):
    """Carry or transform: each unit decides for itself."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.turn = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)
        nn.init.constant_(self.gate.bias, -2.0)

    def forward(self, h):
        n = self.norm(h)
        t = torch.sigmoid(self.gate(n))
        return t * F.silu(self.turn(n)) + (1 - t) * h


class Hazard(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(COVARIATES, WIDTH)
        self.road = nn.Sequential(*[Highway(WIDTH) for _ in range(DEPTH)])
        self.leave = nn.Linear(WIDTH, INTERVALS)

    def forward(self, covariates):
        return self.leave(self.road(self.enter(covariates)))


def cohort():
    g = torch.Generator().manual_seed(31)
    x = torch.randn(PATIENTS, COVARIATES, generator=g)
    risk = x[:, :5].sum(1) / math.sqrt(5)
    time = (torch.rand(PATIENTS, generator=g).log().neg() * INTERVALS / 2 * torch.exp(-risk)).long().clamp(max=INTERVALS - 1)
    died = torch.rand(PATIENTS, generator=g) < 0.7
    interval = torch.arange(INTERVALS)
    at_risk = (interval <= time[:, None]).float()
    event = ((interval == time[:, None]) & died[:, None]).float()
    return [t.to(ACC) for t in (x, at_risk, event)]


def estimate():
    torch.manual_seed(30)
    torch.set_float32_matmul_precision("high")
    x, at_risk, event = cohort()
    hazard = Hazard().to(ACC)  # flaw: launch-bound
    optimizer = torch.optim.AdamW(hazard.parameters(), lr=3e-4, weight_decay=0.05, fused=True)
    trace = torch.zeros(UPDATES, device=ACC)
    for update in range(UPDATES):
        logit = hazard(x)
        loss = F.binary_cross_entropy_with_logits(logit, event, weight=at_risk)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        trace[update] = loss.detach()
    print("negative log likelihood %.4f, then %.4f" % (trace[0].item(), trace[-1].item()))


estimate()
