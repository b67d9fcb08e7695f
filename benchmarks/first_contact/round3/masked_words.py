#!/usr/bin/env python
# BERT-style pretraining on synthetic sentences
import os, torch
import torch.nn.functional as F
from torch import nn

S = os.environ.get("SMALL") == "1"
VOCAB, DIM, LAYERS, HEADS = (512, 32, 2, 2) if S else (30528, 512, 4, 8)
BATCH, LEN, STEPS = (2, 32, 30) if S else (32, 512, 80)
HIDE = LEN * 15 // 100 // 4 * 4 or 4
MASK_ID = 3
device = "cuda" if torch.cuda.is_available() else "cpu"


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(VOCAB, DIM), nn.Embedding(LEN, DIM)
        self.norm = nn.LayerNorm(DIM)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(DIM, HEADS, 4 * DIM, dropout=0.0, activation=F.gelu, batch_first=True)
            for _ in range(LAYERS)
        )
        self.transform = nn.Sequential(nn.Linear(DIM, DIM), nn.GELU(), nn.LayerNorm(DIM))
        self.decoder = nn.Linear(DIM, VOCAB)

    def encode(self, ids):
        x = self.norm(self.tok(ids) + self.pos.weight)
        for layer in self.layers:
            x = layer(x)
        return x

    def predict(self, x):
        return self.decoder(self.transform(x))


def corrupt(ids):
    places = torch.rand(ids.shape, device=ids.device).topk(HIDE, dim=1).indices
    wanted = ids.gather(1, places)
    return ids.scatter(1, places, MASK_ID), places, wanted


def objective(model, ids):
    broken, places, wanted = corrupt(ids)
    hidden = model.encode(broken)
    scores = model.predict(hidden)  # flaw: none-yet(logits-for-unused-positions)
    scores = scores.gather(1, places[..., None].expand(-1, -1, VOCAB))  # flaw: none-yet(logits-for-unused-positions)
    return F.cross_entropy(scores.flatten(0, 1), wanted.flatten())


model = Encoder().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
sentences = torch.randint(5, VOCAB, (BATCH * 30, LEN), device=device)
for step in range(STEPS):
    ids = sentences[(step % 30) * BATCH :][:BATCH]
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = objective(model, ids)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 40 == 39:
        print(f"step {step + 1:4d}  mlm loss {loss.item():.3f}")
