"""A graph network on made-up molecules; a collate function joins graphs to one."""
import os
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Molecules(Dataset):
    def __len__(self):
        return 64 * 330

    def __getitem__(self, i):
        atoms = 100
        g = random.Random(i)
        bonds = [(g.randrange(atoms), g.randrange(atoms)) for _ in range(480)]
        return {"atoms": torch.full((atoms,), i % 20), "bonds": bonds, "energy": i % 7 / 7}


def join(graphs):
    atoms = torch.cat([g["atoms"] for g in graphs])
    rows, base = [], 0
    for g in graphs:
        rows.append(torch.stack([torch.tensor([a + base, b + base], dtype=torch.long) for a, b in g["bonds"]]))  # flaw: slow-sample-line
        base += len(g["atoms"])
    energy = torch.tensor([g["energy"] for g in graphs])
    return atoms, torch.cat(rows).t().contiguous(), energy


class Message(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.send, self.keep = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, h, src, dst):
        inbox = torch.zeros_like(h).index_add_(0, dst, self.send(h)[src].to(h.dtype))
        return self.norm(h + torch.relu(self.keep(h) + inbox))


class Net(nn.Module):
    def __init__(self, dim=1024, rounds=4):
        super().__init__()
        self.embed = nn.Embedding(20, dim)
        self.rounds = nn.ModuleList(Message(dim) for _ in range(rounds))
        self.out = nn.Linear(dim, 1)

    def forward(self, atoms, bonds):
        h = self.embed(atoms)
        for r in self.rounds:
            h = r(h, bonds[0], bonds[1])
        return self.out(h.view(-1, 100, h.shape[-1]).mean(1)).squeeze(-1)


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = Net().to(device)
    opt = torch.optim.AdamW(net.parameters(), fused=True)
    workers = max(1, len(os.sched_getaffinity(0)) - 1)
    data = DataLoader(Molecules(), batch_size=64, collate_fn=join, num_workers=workers, persistent_workers=True, pin_memory=True)
    for atoms, bonds, energy in data:
        atoms, bonds, energy = [t.to(device, non_blocking=True) for t in (atoms, bonds, energy)]
        with torch.autocast(device, torch.bfloat16):
            guess = net(atoms, bonds)
        loss = nn.functional.l1_loss(guess.float(), energy)
        opt.zero_grad()
        loss.backward()
        opt.step()
