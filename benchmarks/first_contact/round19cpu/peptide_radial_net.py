"""Energies of small peptides by continuous-filter convolutions on a radial basis of the distances."""
import torch
import torch.nn as nn

ATOMS, BATCH, BASIS, WIDTH, CUTOFF = 18, 10, 64, 64, 5.0


class Radial(nn.Module):
    """Distances to a row of bumps along the radius."""

    def __init__(self, basis=BASIS, cutoff=CUTOFF):
        super().__init__()
        self.centers = nn.Parameter(torch.linspace(0.5, cutoff, basis))
        self.sharpness = 10.0

    def forward(self, distance):
        bumps = [torch.exp(-self.sharpness * (distance - c) ** 2) for c in self.centers]  # flaw: python-loop-over-tensor
        return torch.stack(bumps, dim=-1)  # flaw: python-loop-over-tensor


class Interaction(nn.Module):
    def __init__(self, width, basis):
        super().__init__()
        self.filter = nn.Sequential(nn.Linear(basis, width), nn.Softplus(), nn.Linear(width, width))
        self.enter = nn.Linear(width, width, bias=False)
        self.update = nn.Sequential(nn.Linear(width, width), nn.Softplus(), nn.Linear(width, width))

    def forward(self, atoms, radial, near):
        kernel = self.filter(radial) * near
        message = torch.einsum("bijw,bjw->biw", kernel, self.enter(atoms))
        return atoms + self.update(message)


class PeptideNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.kind = nn.Embedding(5, WIDTH)
        self.radial = Radial()
        self.interactions = nn.ModuleList(Interaction(WIDTH, BASIS) for _ in range(2))
        self.energy = nn.Sequential(nn.Linear(WIDTH, 32), nn.Softplus(), nn.Linear(32, 1))
        self.register_buffer("others", 1.0 - torch.eye(ATOMS))

    def forward(self, kinds, places):
        distance = (places[:, :, None] - places[:, None]).square().sum(-1).add(1e-8).sqrt()
        fade = 0.5 * (torch.cos(distance * (torch.pi / CUTOFF)) + 1.0) * (distance < CUTOFF)
        near = (fade * self.others)[..., None]
        radial = self.radial(distance)
        atoms = self.kind(kinds)
        for interaction in self.interactions:
            atoms = interaction(atoms, radial, near)
        return self.energy(atoms).sum((1, 2))


def conformers(count, gen):
    """Random coils with a pair potential as the energy."""
    bonds = torch.randn(count, ATOMS, 3, generator=gen)
    places = (1.4 * bonds / bonds.norm(dim=2, keepdim=True)).cumsum(1)
    kinds = torch.randint(5, (count, ATOMS), generator=gen)
    r = torch.cdist(places, places) + 10 * torch.eye(ATOMS)
    charge = torch.tensor([-0.4, -0.1, 0.1, 0.2, 0.3])[kinds]
    pair = charge[:, :, None] * charge[:, None] / r + 0.2 * torch.exp(-r)
    energy = pair.sum((1, 2)) / 2
    return kinds, places, (energy - energy.mean()) / energy.std()


def main():
    torch.manual_seed(1)
    gen = torch.Generator().manual_seed(1)
    kinds, places, energy = conformers(3000, gen)
    net = PeptideNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    smooth = None
    for step in range(1, 541):
        rows = torch.randint(len(energy), (BATCH,), generator=gen)
        loss = nn.functional.l1_loss(net(kinds[rows], places[rows]), energy[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        smooth = loss.detach() if smooth is None else smooth.lerp(loss.detach(), 0.05)
        if step % 90 == 0:
            print(f"step {step:4d}  mean absolute error {smooth.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
