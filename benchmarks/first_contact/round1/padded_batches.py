"""Trains an encoder on texts of different lengths."""
import torch
from torch import nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

device = "cuda" if torch.cuda.is_available() else "cpu"


def corpus(n):
    g = torch.Generator().manual_seed(0)
    for i in range(n):
        length = 1024 if i % 16 == 0 else int(torch.randint(32, 200, (1,), generator=g))
        yield torch.randint(1, 8000, (length,), generator=g).to(device)


def batches(texts, size):
    for i in range(0, len(texts) - size + 1, size):
        yield pad_sequence(texts[i : i + size], batch_first=True)  # flaw: none-yet(padding)


class Encoder(nn.Module):
    def __init__(self, dim=512, layers=4):
        super().__init__()
        self.emb = nn.Embedding(8000, dim, padding_idx=0)
        layer = nn.TransformerEncoderLayer(dim, 8, 4 * dim, 0.0, "gelu", batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.top = nn.Linear(dim, 8000)

    def forward(self, ids):
        return self.top(self.enc(self.emb(ids)))


net = Encoder().to(device)
opt = torch.optim.AdamW(net.parameters(), 1e-4, fused=True)
texts = list(corpus(16 * 64))
for epoch in range(5):
    for ids in batches(texts, 16):
        with torch.autocast(device, torch.bfloat16):
            loss = F.cross_entropy(net(ids).flatten(0, 1), ids.flatten(), ignore_index=0)
        opt.zero_grad()
        loss.backward()
        opt.step()
