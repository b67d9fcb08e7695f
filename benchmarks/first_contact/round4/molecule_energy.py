# energies of small molecules from pairwise distances (all molecules have the same number of atoms)
import os
import torch, torch.nn as nn, torch.nn.functional as F

if os.environ.get('SMALL'):
    MOLS, ATOMS, DIM, LAYERS, STEPS = 4, 6, 16, 2, 30
else:
    MOLS, ATOMS, DIM, LAYERS, STEPS = 512, 24, 256, 4, 120
GAUSS = 64
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')


class Filtered(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.filter = nn.Sequential(nn.Linear(GAUSS, d), nn.SiLU(), nn.Linear(d, d))
        self.inp = nn.Linear(d, d, bias=False)
        self.post = nn.Sequential(nn.Linear(d, d), nn.SiLU(), nn.Linear(d, d))

    def forward(self, h, basis):
        # filters weigh the neighbours' features: sum over j of W(r_ij) * h_j
        w = self.filter(basis)
        return h + self.post((w * self.inp(h).unsqueeze(1)).sum(2, dtype=torch.float32))


class EnergyNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.atom = nn.Embedding(16, DIM)
        self.layers = nn.ModuleList([Filtered(DIM) for _ in range(LAYERS)])
        self.read = nn.Sequential(nn.Linear(DIM, DIM // 2), nn.SiLU(), nn.Linear(DIM // 2, 8))
        self.register_buffer('centres', torch.linspace(0, 6, GAUSS))

    def forward(self, z, pos):
        r = torch.cdist(pos, pos)
        basis = torch.exp((r[..., None] - self.centres).square() * -10.)
        h = self.atom(z)
        for l in self.layers:
            h = l(h, basis)
        return self.read(h)[..., 0].float().sum(1)


def library(n):
    z = torch.randint(1, 10, (n, ATOMS), device=device)
    pos = torch.randn(n, ATOMS, 3, device=device) * 2
    pairs = torch.cdist(pos, pos) + torch.eye(ATOMS, device=device) * 9
    return z, pos, -(1 / (1 + pairs)).sum((1, 2)) / ATOMS


z, pos, energy = library(MOLS * 8)
net = EnergyNet().to(device)
opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=device.type == 'cuda')
for step in range(STEPS):
    pick = torch.randint(len(z), (MOLS,), device=device)
    with torch.autocast(device.type, torch.bfloat16):
        guess = net(z[pick], pos[pick])
    loss = F.l1_loss(guess, energy[pick])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 40 == 0:
        print('%4d  %.4f' % (step, loss.item()))
