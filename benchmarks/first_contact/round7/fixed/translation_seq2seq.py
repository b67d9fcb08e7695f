"""Encoder-decoder translation with label smoothing."""

import torch
import torch.nn as nn
import torch.nn.functional as F

use_cuda = torch.cuda.is_available()
device = torch.device("cuda" if use_cuda else "cpu")
torch.set_float32_matmul_precision("high")

hparams = {
    "vocab": 32000 if use_cuda else 160,
    "d_model": 512 if use_cuda else 32,
    "heads": 8 if use_cuda else 2,
    "layers": 3 if use_cuda else 1,
    "batch": 96 if use_cuda else 3,
    "src_len": 128 if use_cuda else 8,
    "tgt_len": 128 if use_cuda else 8,
    "steps": 130 if use_cuda else 4,
    "smoothing": 0.1,
}


def split(x, heads):
    b, t, d = x.shape
    return x.view(b, t, heads, d // heads).transpose(1, 2)


def merge(x):
    return x.transpose(1, 2).flatten(2)


class Layer(nn.Module):
    def __init__(self, d, heads, cross):
        super().__init__()
        self.heads, self.cross = heads, cross
        self.self_norm, self.ff_norm = nn.LayerNorm(d), nn.LayerNorm(d)
        self.self_qkv, self.self_out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        if cross:
            self.cross_norm = nn.LayerNorm(d)
            self.cross_q, self.cross_kv = nn.Linear(d, d), nn.Linear(d, 2 * d)
            self.cross_out = nn.Linear(d, d)
        self.ff = nn.Sequential(nn.Linear(d, 4 * d), nn.ReLU(inplace=True), nn.Linear(4 * d, d))

    def forward(self, x, memory=None):
        q, k, v = (split(p, self.heads) for p in self.self_qkv(self.self_norm(x)).chunk(3, -1))
        x = x + self.self_out(merge(F.scaled_dot_product_attention(q, k, v, is_causal=self.cross)))
        if self.cross:
            q = split(self.cross_q(self.cross_norm(x)), self.heads)
            k, v = (split(p, self.heads) for p in self.cross_kv(memory).chunk(2, -1))
            x = x + self.cross_out(merge(F.scaled_dot_product_attention(q, k, v)))
        return x + self.ff(self.ff_norm(x))


class Seq2Seq(nn.Module):
    def __init__(self, hp):
        super().__init__()
        d = hp["d_model"]
        self.src = nn.Embedding(hp["vocab"], d)
        self.tgt = nn.Embedding(hp["vocab"], d)
        self.pos = nn.Parameter(torch.randn(max(hp["src_len"], hp["tgt_len"]), d) * 0.02)
        self.encoder = nn.ModuleList(Layer(d, hp["heads"], False) for _ in range(hp["layers"]))
        self.decoder = nn.ModuleList(Layer(d, hp["heads"], True) for _ in range(hp["layers"]))
        self.norm = nn.LayerNorm(d)
        self.generator = nn.Linear(d, hp["vocab"], bias=False)

    def forward(self, src, tgt):
        memory = self.src(src) + self.pos[: src.size(1)]
        for layer in self.encoder:
            memory = layer(memory)
        x = self.tgt(tgt) + self.pos[: tgt.size(1)]
        for layer in self.decoder:
            x = layer(x, memory)
        return self.generator(self.norm(x))


class LabelSmoothing(nn.Module):
    def __init__(self, classes, smoothing):
        super().__init__()
        self.classes = classes
        self.smoothing = smoothing

    def forward(self, logits, target):
        return F.cross_entropy(logits, target, label_smoothing=self.smoothing)


def make_pairs(hp, n):
    src = torch.randint(2, hp["vocab"], (n, hp["src_len"]), device=device)
    tgt = torch.randint(2, hp["vocab"], (n, hp["tgt_len"] + 1), device=device)
    return src, tgt


torch.manual_seed(3)
model = Seq2Seq(hparams).to(device)
criterion = LabelSmoothing(hparams["vocab"], hparams["smoothing"])
optimizer = torch.optim.Adam(model.parameters(), lr=5e-4, betas=(0.9, 0.98), fused=use_cuda)
src_all, tgt_all = make_pairs(hparams, hparams["batch"] * 8)

for step in range(hparams["steps"]):
    lo = (step % 8) * hparams["batch"]
    src, tgt = src_all[lo : lo + hparams["batch"]], tgt_all[lo : lo + hparams["batch"]]
    with torch.autocast(device.type, dtype=torch.bfloat16):
        out = model(src, tgt[:, :-1])
        loss = criterion(out.flatten(0, 1), tgt[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if step % 50 == 0:
        print(f"step {step}: {loss.item():.4f}")
print(f"loss {loss.item():.4f}")
