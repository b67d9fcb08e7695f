"""Chromatin accessibility tracks from one-hot DNA: conv-free stem, full attention over bins."""
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

TINY = bool(os.environ.get("TINY"))
HP = {
    "bins": 64 if TINY else 2048,
    "bases_per_bin": 32,
    "batch": 2 if TINY else 8,
    "d": 64 if TINY else 1024,
    "heads": 2 if TINY else 16,
    "layers": 2 if TINY else 5,
    "tracks": 16 if TINY else 128,
    "updates": 4 if TINY else 320,
    "lr": 1e-4,
}
DEVICE = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")


class HeadSplit(nn.Module):
    """Mixin-like base: moves heads next to the batch axis and back."""

    def fold(self, t):
        return t.unflatten(2, (self.heads, -1)).transpose(1, 2)

    def unfold(self, t):
        return t.transpose(1, 2).flatten(2)


class BinMixing(HeadSplit):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.gain = (d // heads) ** -0.5
        self.to_q, self.to_k, self.to_v = (nn.Linear(d, d, bias=False) for _ in range(3))
        self.merge = nn.Linear(d, d)

    def forward(self, x):
        q, k, v = self.fold(self.to_q(x)), self.fold(self.to_k(x)), self.fold(self.to_v(x))
        affinity = torch.einsum("bhse,bhte->bhst", k * self.gain, q)  # flaw: hand-written-attention
        weights = F.softmax(affinity, dim=-2).to(v.dtype)  # flaw: hand-written-attention
        mixed = torch.einsum("bhst,bhse->bhte", weights, v)  # flaw: hand-written-attention
        return self.merge(self.unfold(mixed))


class FeedForward(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.a, self.b = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        return x + self.b(F.gelu(self.a(self.norm(x))))


class Accessibility(nn.Module):
    def __init__(self, hp):
        super().__init__()
        d = hp["d"]
        self.stem = nn.Linear(4 * hp["bases_per_bin"], d)
        self.where = nn.Parameter(0.02 * torch.randn(hp["bins"], d))
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(hp["layers"]))
        self.mix = nn.ModuleList(BinMixing(d, hp["heads"]) for _ in range(hp["layers"]))
        self.ff = nn.ModuleList(FeedForward(d) for _ in range(hp["layers"]))
        self.tracks = nn.Linear(d, hp["tracks"])

    def forward(self, bases):
        x = self.stem(bases) + self.where
        for norm, mix, ff in zip(self.norms, self.mix, self.ff):
            x = x + mix(norm(x))
            x = ff(x)
        return self.tracks(x)


def genome(hp, regions=64):
    g = torch.Generator().manual_seed(4)
    letters = torch.randint(4, (regions, hp["bins"], hp["bases_per_bin"]), generator=g)
    onehot = F.one_hot(letters, 4).flatten(2)
    counts = (letters == 2).sum(-1, keepdim=True).expand(-1, -1, hp["tracks"])
    counts = counts + torch.randint(3, counts.shape, generator=g)
    return onehot.to(DEVICE, torch.float32), counts.to(DEVICE, torch.float32)


def train(hp):
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model = Accessibility(hp).to(DEVICE)
    if not TINY:
        for ff in model.ff:
            ff.compile()
    optim = torch.optim.AdamW(model.parameters(), lr=hp["lr"], fused=True)
    dna, counts = genome(hp)
    curve = torch.zeros(hp["updates"], device=DEVICE)
    for u in range(hp["updates"]):
        lo = u * hp["batch"] % (len(dna) - hp["batch"] + 1)
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=DEVICE.type == "cuda"):
            pred = model(dna[lo:lo + hp["batch"]])
            loss = F.poisson_nll_loss(pred, counts[lo:lo + hp["batch"]])
        optim.zero_grad(set_to_none=True)
        loss.backward()
        optim.step()
        curve[u] = loss.detach()
    return curve


if __name__ == "__main__":
    c = train(HP)
    print("poisson loss", round(c[0].item(), 4), "->", round(c[-2:].mean().item(), 4))
