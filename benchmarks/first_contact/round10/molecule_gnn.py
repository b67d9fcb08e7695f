"""Predict molecular properties with a message-passing network on batches of small graphs."""

import torch
import torch.nn as nn
import torch.nn.functional as F

IS_CUDA = torch.cuda.is_available()


class MessageLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.message = nn.Sequential(nn.Linear(3 * dim, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.update = nn.Sequential(nn.Linear(2 * dim, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.norm = nn.LayerNorm(dim)

    def forward(self, h, e, src, dst):
        m = self.message(torch.cat([h.index_select(0, src), h.index_select(0, dst), e], dim=-1))
        pooled = torch.zeros_like(h).index_add_(0, dst, m.to(h.dtype))
        return h + self.update(torch.cat([self.norm(h).to(h.dtype), pooled], dim=-1)).to(h.dtype)


class PropertyNet(nn.Module):
    def __init__(self, dim, depth, elements=100, radial=32, targets=12):
        super().__init__()
        self.atoms = nn.Embedding(elements, dim)
        self.edges = nn.Linear(radial, dim)
        self.register_buffer("centres", torch.linspace(0.0, 5.0, radial))
        self.layers = nn.ModuleList(MessageLayer(dim) for _ in range(depth))
        self.readout = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, targets))

    def forward(self, z, distance, src, dst, atoms_per_molecule):
        e = self.edges(torch.exp(-4.0 * (distance[:, None] - self.centres) ** 2))
        h = self.atoms(z).to(e.dtype)
        for layer in self.layers:
            h = layer(h, e, src, dst)
        molecules = h.view(-1, atoms_per_molecule, h.shape[-1]).sum(dim=1)
        return self.readout(molecules)


class MoleculeBatches:
    """Conformers of equal size; the topology differs from batch to batch."""

    def __init__(self, molecules, atoms, degree, device):
        self.molecules, self.atoms, self.degree, self.device = molecules, atoms, degree, device

    def __iter__(self):
        n = self.molecules * self.atoms
        while True:
            dst = torch.arange(n, device=self.device).repeat_interleave(self.degree)
            shift = torch.randint(1, self.atoms, dst.shape, device=self.device)
            src = dst // self.atoms * self.atoms + (dst + shift) % self.atoms
            z = torch.randint(1, 20, (n,), device=self.device)
            distance = torch.rand(dst.shape, device=self.device) * 5.0
            target = z.view(self.molecules, -1).float().mean(1, keepdim=True).expand(-1, 12) / 10
            yield z, distance, src, dst, target


class Experiment:
    def __init__(self, dim, depth, molecules, atoms, degree, steps):
        self.device = torch.device("cuda" if IS_CUDA else "cpu")
        self.atoms, self.steps = atoms, steps
        self.data = MoleculeBatches(molecules, atoms, degree, self.device)
        self.model = PropertyNet(dim, depth).to(self.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4, fused=True)
        self.history = []

    def train_step(self, batch):
        z, distance, src, dst, target = batch
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            prediction = self.model(z, distance, src, dst, self.atoms)
        loss = F.smooth_l1_loss(prediction.float(), target)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run(self):
        for step, batch in zip(range(self.steps), self.data):
            self.history.append(self.train_step(batch))
            del batch
            torch.cuda.empty_cache()  # flaw: cache-emptied-in-step
            if (step + 1) % 40 == 0:
                print(f"step {step + 1} loss {torch.stack(self.history[-40:]).mean().item():.4f}")
        print(f"final {self.history[-1].item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    if IS_CUDA:
        Experiment(dim=384, depth=5, molecules=1024, atoms=24, degree=8, steps=160).run()
    else:
        Experiment(dim=16, depth=2, molecules=8, atoms=6, degree=3, steps=6).run()
