"""Momentum contrast on satellite tiles (patch mixer backbone, queue of negatives)."""
import copy
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

TINY = os.environ.get("TINY") == "1"
DEV = "cuda" if torch.cuda.is_available() else "cpu"
conf = {
    "tile": {"patches": 16 if TINY else 64, "patch_dim": 192},
    "net": {"dim": 64 if TINY else 1024, "depth": 2 if TINY else 8, "out": 32 if TINY else 256},
    "queue": 64 if TINY else 16384,
    "batch": 8 if TINY else 512,
    "steps": 5 if TINY else 220,
    "momentum": 0.99,
    "tau": 0.2,
}


class MixerBlock(nn.Module):
    def __init__(self, patches, dim):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.t1, self.t2 = nn.Linear(patches, 4 * patches), nn.Linear(4 * patches, patches)
        self.c1, self.c2 = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def forward(self, x):
        x = x + self.t2(F.gelu(self.t1(self.ln1(x).transpose(1, 2)))).transpose(1, 2)
        return x + self.c2(F.gelu(self.c1(self.ln2(x))))


class Backbone(nn.Module):
    def __init__(self, tile, net):
        super().__init__()
        self.stem = nn.Linear(tile["patch_dim"], net["dim"])
        self.blocks = nn.ModuleList(MixerBlock(tile["patches"], net["dim"]) for _ in range(net["depth"]))
        self.proj = nn.Linear(net["dim"], net["out"])

    def forward(self, x):
        x = self.stem(x)
        for b in self.blocks:
            x = b(x)
        return F.normalize(self.proj(x.mean(1)).float(), dim=1)


class MoCo(nn.Module):
    def __init__(self, conf):
        super().__init__()
        self.query = Backbone(conf["tile"], conf["net"])
        self.key = copy.deepcopy(self.query)
        self.momentum, self.tau = conf["momentum"], conf["tau"]
        self.register_buffer("queue", F.normalize(torch.randn(conf["queue"], conf["net"]["out"]), dim=1))
        self.register_buffer("truth", torch.zeros(conf["batch"], dtype=torch.long))
        self.head = 0

    @torch.no_grad()
    def follow(self):
        torch._foreach_lerp_(list(self.key.parameters()), list(self.query.parameters()), 1 - self.momentum)

    @torch.no_grad()
    def remember(self, keys):
        self.queue[self.head:self.head + len(keys)] = keys
        self.head = (self.head + len(keys)) % len(self.queue)

    def forward(self, one, two):
        self.follow()
        q = self.query(one)
        k = self.key(two)  # flaw: wasted-gradient
        match = (q * k).sum(1, keepdim=True)  # flaw: wasted-gradient
        others = q @ self.queue.clone().T
        loss = F.cross_entropy(torch.cat([match, others], 1) / self.tau, self.truth)
        self.remember(k)
        return loss


def two_views(pool, gen, batch):
    pick = torch.randint(len(pool), (batch,), device=DEV, generator=gen)
    tiles = pool[pick]
    return (tiles + 0.2 * torch.randn(tiles.shape, device=DEV, generator=gen, dtype=tiles.dtype),
            tiles.flip(1) + 0.2 * torch.randn(tiles.shape, device=DEV, generator=gen, dtype=tiles.dtype))


torch.manual_seed(3)
torch.set_float32_matmul_precision("high")
moco = MoCo(conf).to(DEV)
if not TINY:
    for side in (moco.query, moco.key):
        for block in side.blocks:
            block.compile()
optimizer = torch.optim.AdamW(moco.query.parameters(), lr=1e-4, fused=True)
gen = torch.Generator(DEV).manual_seed(5)
pool = torch.randn(2048, conf["tile"]["patches"], conf["tile"]["patch_dim"], device=DEV, generator=gen)
smooth = torch.zeros((), device=DEV)
for step in range(conf["steps"]):
    a, b = two_views(pool, gen, conf["batch"])
    with torch.autocast(DEV, torch.bfloat16, enabled=DEV == "cuda"):
        loss = moco(a, b)
    moco.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    smooth.lerp_(loss.detach(), 0.1)
print(f"contrastive loss {smooth.item():.4f}")
