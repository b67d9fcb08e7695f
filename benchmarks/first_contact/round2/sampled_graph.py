# Node embeddings with sampled negatives.
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

NODES, DIM, NEG = 400_000, 256, 64


class Walks(Dataset):
    def __init__(self, n=200_000):
        r = np.random.default_rng(3)
        self.src = r.integers(0, NODES, n)
        self.dst = r.integers(0, NODES, n)

    def __len__(self):
        return len(self.src)

    def __getitem__(self, i):
        u, v = self.src[i], self.dst[i]
        negatives = np.random.choice(NODES, NEG, replace=False)  # flaw: slow-sample-line
        negatives[negatives == v] = (v + 1) % NODES
        return np.int64(u), np.concatenate([[v], negatives])


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("feat", torch.randn(NODES, DIM))
        self.enc = nn.Sequential(nn.Linear(DIM, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, DIM))

    def forward(self, u, cand):
        a, b = self.enc(self.feat[u]), self.enc(self.feat[cand])
        return torch.einsum("bd,bkd->bk", a, b)


if __name__ == "__main__":
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    net = Scorer().to(dev)
    opt = torch.optim.Adam(net.parameters(), 1e-4, fused=True)
    dl = DataLoader(Walks(), 256, shuffle=True, num_workers=8, persistent_workers=True, pin_memory=dev == "cuda",
                    drop_last=True)
    gold = torch.zeros(256, dtype=torch.long, device=dev)
    for i, (u, cand) in enumerate(dl):
        u, cand = u.to(dev, non_blocking=True), cand.to(dev, non_blocking=True)
        with torch.autocast(dev, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(u, cand), gold)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if i % 100 == 0:
            print(i, loss.item())
