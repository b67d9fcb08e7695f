"""Masked-base modelling of promoter windows (A C G T + mask) with a pre-norm encoder."""
import os
import random
import torch
import torch.nn as nn
import torch.nn.functional as F

if os.environ.get("TINY") == "1":
    WINDOWS, LENGTH, DIM, LAYERS, HEADS, BATCH, UPDATES = 64, 32, 64, 2, 4, 8, 10
else:
    WINDOWS, LENGTH, DIM, LAYERS, HEADS, BATCH, UPDATES = 8192, 1024, 512, 6, 8, 64, 260
MASK = 4
dev = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
random.seed(0)
torch.manual_seed(0)
torch.set_float32_matmul_precision("high")


class Centred(nn.Module):
    """Learned gain and offset around zero-mean, unit-variance features."""

    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(dim))
        self.offset = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, h):
        return F.layer_norm(h, self.gain.shape, self.gain, self.offset, self.eps)


class Mixer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, h):
        b, n, d = h.shape
        q, k, v = self.qkv(h).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.n2 = Centred(dim), Centred(dim)
        self.mix = Mixer(dim, heads)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, h):
        h = h + self.mix(self.n1(h))
        return h + self.down(F.gelu(self.up(self.n2(h))))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Embedding(8, DIM)
        self.place = nn.Parameter(torch.randn(LENGTH, DIM) * 0.02)
        self.layers = nn.ModuleList([Layer(DIM, HEADS) for _ in range(LAYERS)])
        self.last = Centred(DIM)
        self.head = nn.Linear(DIM, 8)

    def forward(self, tokens):
        h = self.base(tokens) + self.place
        for layer in self.layers:
            h = layer(h)
        return self.head(self.last(h))


gen = torch.Generator(dev).manual_seed(13)
genome = torch.randint(0, 4, (WINDOWS, LENGTH), generator=gen, device=dev)
genome[:, LENGTH // 2:] = genome[:, :LENGTH // 2].flip(1)


def masked_batches():
    while True:
        for rows in torch.randperm(WINDOWS, generator=gen, device=dev).split(BATCH):
            target = genome[rows]
            hide = torch.rand(target.shape, generator=gen, device=dev) < 0.15
            yield target.masked_fill(hide, MASK), target.masked_fill(~hide, -100)


model = Encoder().to(dev)
opt = torch.optim.AdamW(model.parameters(), lr=4e-4, betas=(0.9, 0.98), fused=dev.type == "cuda")
losses = []
for update, (tokens, target) in zip(range(UPDATES), masked_batches()):
    with torch.autocast(dev.type, dtype=torch.bfloat16, enabled=dev.type == "cuda"):
        logits = model(tokens)
        loss = F.cross_entropy(logits.view(-1, 8), target.view(-1), ignore_index=-100)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    losses.append(loss.detach())
print("mean loss %.5f" % torch.stack(losses).mean().item())
