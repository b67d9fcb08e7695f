"""Two-tower product retrieval trained with a symmetric in-batch contrastive objective."""
import os
import torch
from torch import nn
import torch.nn.functional as F

TINY = os.environ.get("TINY") == "1"
OBJECTIVES = {}


def objective(name):
    def register(cls):
        OBJECTIVES[name] = cls
        return cls
    return register


class Tower(nn.Sequential):
    def __init__(self, inputs, hidden, out):
        super().__init__(nn.Linear(inputs, hidden), nn.GELU(), nn.LayerNorm(hidden),
                         nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, out))

    def forward(self, x):
        return F.normalize(super().forward(x).float(), dim=-1)


@objective("contrastive")
class SymmetricContrast(nn.Module):
    def __init__(self, start=0.07):
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(1 / start).log())

    @staticmethod
    def one_way(sim):
        sim = sim - sim.amax(dim=1, keepdim=True).detach()  # flaw: hand-written-loss
        log_prob = sim - sim.exp().sum(1, keepdim=True).log()  # flaw: hand-written-loss
        return -log_prob.diagonal().mean()  # flaw: hand-written-loss

    def forward(self, queries, items):
        queries = self.log_scale.exp() * queries
        return 0.5 * (self.one_way(queries @ items.t()) + self.one_way(items @ queries.t()))


@objective("regression")
class CosineRegression(nn.Module):
    def forward(self, queries, items):
        return (1 - (queries * items).sum(-1)).mean()


class Experiment:
    defaults = {
        "objective": "contrastive",
        "batch": 64 if TINY else 16384,
        "features": 32 if TINY else 768,
        "hidden": 64 if TINY else 3072,
        "out": 16 if TINY else 256,
        "steps": 20 if TINY else 450,
        "pool": 8,
        "lr": 5e-4,
    }

    def __init__(self, **overrides):
        self.c = {**self.defaults, **overrides}
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.manual_seed(21)
        torch.backends.cuda.matmul.allow_tf32 = True
        self.query = Tower(self.c["features"], self.c["hidden"], self.c["out"]).to(self.device)
        self.item = Tower(self.c["features"], self.c["hidden"], self.c["out"]).to(self.device)
        self.loss = OBJECTIVES[self.c["objective"]]().to(self.device)
        params = [p for m in (self.query, self.item, self.loss) for p in m.parameters()]
        self.opt = torch.optim.AdamW(params, lr=self.c["lr"], fused=self.device.type == "cuda")
        self.pairs = self._pairs()

    def _pairs(self):
        n, d = self.c["pool"] * self.c["batch"], self.c["features"]
        g = torch.Generator(self.device).manual_seed(1)
        a = torch.randn(n, d, generator=g, device=self.device)
        b = a.roll(3, dims=1) + 0.5 * torch.randn(n, d, generator=g, device=self.device)
        return list(zip(a.split(self.c["batch"]), b.split(self.c["batch"])))

    def step(self, q, i):
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            eq, ei = self.query(q), self.item(i)
        loss = self.loss(eq, ei)
        loss.backward()
        self.opt.step()
        self.opt.zero_grad(set_to_none=True)
        return loss.detach()

    def run(self):
        history = torch.zeros(self.c["steps"], device=self.device)
        for k in range(self.c["steps"]):
            history[k] = self.step(*self.pairs[k % self.c["pool"]])
        return history


if __name__ == "__main__":
    h = Experiment().run().tolist()
    print(f"first {h[0]:.5f} last {h[-1]:.5f}")
