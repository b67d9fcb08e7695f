"""Predict a molecular property from sorted Coulomb-matrix rows with a set transformer."""
import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

MAX_ATOMS = 32
CHARGES = np.array([1, 6, 7, 8, 9], dtype=np.float32)


def parse_args():
    cuda = torch.cuda.is_available()
    p = argparse.ArgumentParser()
    p.add_argument("--molecules", type=int, default=40960 if cuda else 64)
    p.add_argument("--batch-size", type=int, default=512 if cuda else 8)
    p.add_argument("--epochs", type=int, default=2 if cuda else 1)
    p.add_argument("--dim", type=int, default=768 if cuda else 32)
    p.add_argument("--layers", type=int, default=6 if cuda else 1)
    p.add_argument("--lr", type=float, default=2e-4)
    return p.parse_args()


class Molecules(Dataset):
    def __init__(self, n, seed=0):
        rng = np.random.default_rng(seed)
        self.n_atoms = rng.integers(29, MAX_ATOMS + 1, n)
        self.z = CHARGES[rng.integers(0, 5, (n, MAX_ATOMS))]
        self.pos = rng.standard_normal((n, MAX_ATOMS, 3), dtype=np.float32) * 3.0

    def __len__(self):
        return len(self.n_atoms)

    def __getitem__(self, i):
        k = self.n_atoms[i]
        z, pos = self.z[i, :k], self.pos[i, :k]
        dist = np.linalg.norm(pos[:, None] - pos[None], axis=-1)
        np.fill_diagonal(dist, 1.0)
        coulomb = z[:, None] * z[None] / dist
        np.fill_diagonal(coulomb, 0.5 * z**2.4)
        order = np.argsort(-np.linalg.norm(coulomb, axis=1))
        rows = np.zeros((MAX_ATOMS, MAX_ATOMS), dtype=np.float32)
        rows[:k, :k] = coulomb[order][:, order]
        mask = np.zeros(MAX_ATOMS, dtype=bool)
        mask[:k] = True
        target = np.float32(np.log1p(np.abs(coulomb).sum()) + 0.1 * pos[0, 0])
        return torch.from_numpy(rows), torch.from_numpy(mask), torch.tensor(target)


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x, mask):
        b, n, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(a.transpose(1, 2).reshape(b, n, d))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class CoulombTransformer(nn.Module):
    def __init__(self, dim, layers):
        super().__init__()
        self.inp = nn.Linear(MAX_ATOMS, dim)
        self.layers = nn.ModuleList(Layer(dim, max(1, dim // 64)) for _ in range(layers))
        self.head = nn.Linear(dim, 1)

    def forward(self, rows, mask):
        h = self.inp(torch.log1p(rows))
        for layer in self.layers:
            h = layer(h, mask[:, None, None, :])
        pooled = (h * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return self.head(pooled).squeeze(-1)


def main():
    args = parse_args()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")

    loader = DataLoader(Molecules(args.molecules), args.batch_size, shuffle=True, drop_last=True, pin_memory=cuda,
                        num_workers=14 if cuda else 0, persistent_workers=cuda)
    model = CoulombTransformer(args.dim, args.layers).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=cuda)

    for epoch in range(args.epochs):
        total = torch.zeros((), device=device)
        for rows, mask, target in loader:
            rows = rows.to(device, non_blocking=True)
            mask = mask.to(device, non_blocking=True)
            target = target.to(device, non_blocking=True)
            with torch.autocast(device.type, dtype=torch.bfloat16):
                pred = model(rows, mask)
                loss = F.l1_loss(pred, target)
            loss.backward()
            opt.step()
            opt.zero_grad(set_to_none=True)
            total += loss.detach()
        print(f"epoch {epoch}: mae {total.item() / len(loader):.4f}")


if __name__ == "__main__":
    main()
