# Sentiment classifier on product reviews, trained from scratch
import os
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import Dataset, DataLoader

small = os.environ.get("SMALL", "") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

PAD = 0
VOCAB = 500 if small else 20000
MAX_LEN = 64 if small else 512
DIM = 32 if small else 512
LAYERS = 1 if small else 6
BS = 4 if small else 96
N_STEPS = 30 if small else 120


class Reviews(Dataset):
    def __init__(self, n):
        rng = np.random.default_rng(3)
        lengths = np.clip(rng.lognormal(4.3, 0.35, n), 8, MAX_LEN).astype(int)
        self.texts = [torch.from_numpy(rng.integers(1, VOCAB, k)) for k in lengths]
        self.stars = rng.integers(0, 5, n)

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return self.texts[i], self.stars[i]


def collate(samples):
    texts, stars = zip(*samples)
    width = min(MAX_LEN, -(-max(len(t) for t in texts) // 8) * 8)
    ids = torch.full((len(texts), width), PAD)
    for row, t in zip(ids, texts):
        row[:len(t)] = t
    return ids, torch.tensor(stars)


class Layer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.ln1 = nn.LayerNorm(d)
        self.ln2 = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.o = nn.Linear(d, d)
        self.ff = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, d))
        return x + self.ff(self.ln2(x))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM, padding_idx=PAD)
        self.pos = nn.Parameter(torch.zeros(MAX_LEN, DIM))
        self.layers = nn.ModuleList(Layer(DIM, DIM // 16 if small else 8) for _ in range(LAYERS))
        self.head = nn.Linear(DIM, 5)

    def forward(self, ids):
        keep = ids != PAD
        mask = keep[:, None, None, :]
        x = self.tok(ids) + self.pos[:ids.size(1)]
        for layer in self.layers:
            x = layer(x, mask)
        w = keep.unsqueeze(-1).to(x.dtype)
        return self.head((x * w).sum(1) / w.sum(1))


def train():
    torch.manual_seed(0)
    loader = DataLoader(Reviews(BS * N_STEPS), batch_size=BS, shuffle=True, collate_fn=collate,
                        num_workers=1 if small else 6, pin_memory=device.type == "cuda")
    model = Classifier().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    for i, (ids, stars) in enumerate(loader):
        ids, stars = ids.to(device, non_blocking=True), stars.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(ids), stars)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 40 == 0:
            print(i, loss.item())


if __name__ == "__main__":
    train()
