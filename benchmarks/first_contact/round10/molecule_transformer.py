"""Graph-level regression with a transformer over atoms and random-walk position encodings."""

import torch
import torch.nn as nn
import torch.nn.functional as F

cuda = torch.cuda.is_available()
device = torch.device("cuda" if cuda else "cpu")

ATOMS = 64 if cuda else 8
WALK = 16 if cuda else 4
DIM, HEADS, DEPTH = (512, 8, 8) if cuda else (32, 2, 2)
GRAPHS = 512 if cuda else 4
LIBRARY = 16384 if cuda else 32
STEPS = 180 if cuda else 5


def random_walk_encoding(adjacency, length):
    """Probability of being back after 1, 2, ... steps."""
    transition = adjacency / adjacency.sum(-1, keepdim=True).clamp_min(1.0)
    power, diagonals = transition, []
    for _ in range(length):
        diagonals.append(power.diagonal(dim1=1, dim2=2))
        power = power @ transition
    return torch.stack(diagonals, dim=-1)


def make_library():
    """Atoms, encodings and targets of all molecules, computed once."""
    z = torch.randint(1, 30, (LIBRARY, ATOMS), device=device)
    encodings = []
    for chunk in torch.arange(LIBRARY, device=device).split(2048):
        bonds = (torch.rand(len(chunk), ATOMS, ATOMS, device=device) < 3 / ATOMS).float()
        bonds = torch.maximum(bonds, bonds.transpose(1, 2))
        encodings.append(random_walk_encoding(bonds, WALK))
    encoding = torch.cat(encodings)
    target = encoding.mean(dim=(1, 2)) * 10 + z.float().mean(1) / 30
    return z, encoding, target


class MultiHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.out = nn.Linear(DIM, DIM)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(b, n, DIM))


class Residual(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.inner = inner

    def forward(self, x):
        return x + self.inner(self.norm(x))


class MoleculeTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.atom = nn.Embedding(32, DIM)
        self.walk = nn.Linear(WALK, DIM)
        blocks = []
        for _ in range(DEPTH):
            mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))
            blocks += [Residual(MultiHead()), Residual(mlp)]
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(DIM, 1)

    def forward(self, z, encoding):
        x = self.blocks(self.atom(z) + self.walk(encoding))
        return self.head(x.mean(dim=1)).squeeze(-1)


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    z, encoding, target = make_library()
    model = MoleculeTransformer().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    for step in range(STEPS):
        rows = torch.randint(LIBRARY, (GRAPHS,), device=device)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            prediction = model(z[rows], encoding[rows])
        loss = F.l1_loss(prediction.float(), target[rows])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 30 == 0 or step == STEPS - 1:
            print(f"step {step} mae {loss.item():.4f}")


if __name__ == "__main__":
    main()
