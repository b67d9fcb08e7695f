# Offline job: turn product reviews into unit vectors, chunk after chunk.
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
DTYPE = torch.bfloat16 if DEVICE.type == "cuda" else torch.float32
VOCAB, LENGTH = (128, 16) if SMALL else (8192, 192)
DIM, HEADS, DEPTH = (32, 2, 1) if SMALL else (768, 12, 6)
CHUNK, CHUNKS = (8, 30) if SMALL else (256, 70)


class ReviewEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.lookup = nn.Embedding(VOCAB, DIM)
        self.spot = nn.Parameter(torch.zeros(LENGTH, DIM))
        names = {"n1": lambda: nn.LayerNorm(DIM), "qkv": lambda: nn.Linear(DIM, 3 * DIM), "o": lambda: nn.Linear(DIM, DIM),
                 "n2": lambda: nn.LayerNorm(DIM), "up": lambda: nn.Linear(DIM, 4 * DIM), "dn": lambda: nn.Linear(4 * DIM, DIM)}
        self.tiers = nn.ModuleList(nn.ModuleDict({k: f() for k, f in names.items()}) for _ in range(DEPTH))

    def forward(self, ids):
        x = self.lookup(ids) + self.spot
        for t in self.tiers:
            q, k, v = t["qkv"](t["n1"](x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4).unbind(0)
            x = x + t["o"](F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
            x = x + t["dn"](F.gelu(t["up"](t["n2"](x))))
        return F.normalize(x.mean(1), dim=-1)


class VectorStore:
    def __init__(self, rows, dim):
        self.rows = torch.empty(rows, dim, dtype=DTYPE, pin_memory=DEVICE.type == "cuda")
        self.used = 0

    def append(self, vectors):
        n = vectors.shape[0]
        self.rows[self.used:self.used + n].copy_(vectors, non_blocking=True)
        self.used += n


class Job:
    def __init__(self, encoder, store, hooks=()):
        self.encoder, self.store, self.hooks = encoder, store, list(hooks)

    def run(self, chunks):
        with torch.inference_mode():
            for n, ids in enumerate(chunks):
                self.store.append(self.encoder(ids))
                for hook in self.hooks:
                    hook(n)


def progress(every):
    def hook(n):
        if (n + 1) % every == 0:
            print(f"{n + 1} chunks queued")
    return hook


def tidy(n):
    torch.cuda.empty_cache()  # flaw: cache-emptied-in-step


def reviews():
    pool = torch.randint(VOCAB, (CHUNK * 6, LENGTH), device=DEVICE)
    for n in range(CHUNKS):
        at = (n % 6) * CHUNK
        yield pool[at:at + CHUNK]


torch.manual_seed(0)
store = VectorStore(CHUNK * CHUNKS, DIM)
Job(ReviewEncoder().to(DEVICE, DTYPE).eval(), store, [progress(20), tidy]).run(reviews())
if DEVICE.type == "cuda":
    torch.cuda.synchronize()
print("stored", store.used, "norm", store.rows[-1].float().norm().item())
