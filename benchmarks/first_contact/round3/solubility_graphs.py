"""Message passing on dense padded molecular graphs, with attention pooling for each molecule."""
import os
import torch
from torch import nn
import torch.nn.functional as F

S = os.environ.get("SMALL") == "1"
MOLECULES, ATOMS, FEATURES, WIDTH, ROUNDS, STEPS = (6, 8, 8, 32, 2, 30) if S else (256, 64, 32, 512, 4, 70)


class Messages(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.send, self.keep = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, h, adjacency):
        n = self.norm(h)
        return h + F.relu(self.keep(n) + adjacency @ self.send(n))


class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.value = nn.Linear(WIDTH, 1), nn.Linear(WIDTH, WIDTH)

    def forward(self, h, present):
        pooled = []
        for g in range(h.size(0)):  # flaw: python-loop-over-tensor
            score = self.gate(h[g]).squeeze(-1) + present[g]  # flaw: python-loop-over-tensor
            weight = torch.softmax(score, dim=0)  # flaw: python-loop-over-tensor
            pooled.append((weight[:, None] * self.value(h[g])).sum(0))  # flaw: python-loop-over-tensor
        return torch.stack(pooled)  # flaw: python-loop-over-tensor


class Solubility(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(FEATURES, WIDTH)
        self.rounds = nn.ModuleList(Messages() for _ in range(ROUNDS))
        self.pool = Pool()
        self.out = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, 1))

    def forward(self, atoms, adjacency, present):
        h = self.inp(atoms)
        for message in self.rounds:
            h = message(h, adjacency)
        return self.out(self.pool(h, present)).squeeze(-1)


def fake_set(device):
    sizes = torch.randint(ATOMS // 2, ATOMS + 1, (MOLECULES,), device=device)
    real = torch.arange(ATOMS, device=device) < sizes[:, None]
    bonds = (torch.rand(MOLECULES, ATOMS, ATOMS, device=device) < 3 / ATOMS) & real[:, :, None] & real[:, None, :]
    bonds = (bonds | bonds.transpose(1, 2)).float()
    adjacency = bonds / bonds.sum(-1, keepdim=True).clamp(min=1)
    atoms = torch.randn(MOLECULES, ATOMS, FEATURES, device=device) * real[..., None]
    present = torch.zeros(real.shape, device=device).masked_fill(~real, -1e4)
    return atoms, adjacency, present, sizes.float().log()


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(14)
    sets = [fake_set(device) for _ in range(8)]
    model = Solubility().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for step in range(STEPS):
        atoms, adjacency, present, target = sets[step % 8]
        with torch.autocast(device.type, dtype=torch.bfloat16):
            guess = model(atoms, adjacency, present)
        loss = F.mse_loss(guess.float(), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("mse", loss.item())


if __name__ == "__main__":
    main()
