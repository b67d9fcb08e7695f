"""Contrastive pre-training on pairs of augmented audio descriptors, large batch (NT-Xent)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
FULL = device.type == "cuda"

batch_size = 8192 if FULL else 16
in_dim = 1024 if FULL else 24
width = 2048 if FULL else 32
z_dim = 128 if FULL else 16
steps = 250 if FULL else 6
temperature = 0.2


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(a, b), nn.LayerNorm(b), nn.GELU()]
    return nn.Sequential(*layers[:-2])


class NTXent(nn.Module):
    def __init__(self, n, tau):
        super().__init__()
        self.n, self.tau = n, tau
        self.register_buffer("self_mask", torch.eye(2 * n, dtype=torch.bool), persistent=False)
        self.register_buffer("partner", torch.cat([torch.arange(n, 2 * n), torch.arange(n)]), persistent=False)

    def forward(self, z1, z2):
        z = F.normalize(torch.cat([z1, z2]), dim=1)
        sim = (z @ z.t()).float() / self.tau
        return F.cross_entropy(sim.masked_fill(self.self_mask, float("-inf")), self.partner)


def augment(x):
    gain = 0.8 + 0.4 * torch.rand(len(x), 1, device=x.device)
    return torch.addcmul(0.1 * torch.randn_like(x), x, gain)


torch.manual_seed(0)
encoder = mlp(in_dim, width, width, width).to(device)
projector = mlp(width, width, z_dim).to(device)
criterion = NTXent(batch_size, temperature).to(device)
params = [*encoder.parameters(), *projector.parameters()]
optimizer = torch.optim.AdamW(params, lr=1e-3, weight_decay=1e-4, fused=FULL)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)

bank = torch.randn(16 * batch_size, in_dim, device=device)

for step in range(steps):
    x = bank[torch.randint(len(bank), (batch_size,), device=device)]
    views = torch.cat([augment(x), augment(x)])
    with torch.autocast(device.type, dtype=torch.bfloat16):
        z1, z2 = projector(encoder(views)).chunk(2)
        loss = criterion(z1, z2)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 50 == 0:
        print(f"step {step:4d} loss {loss.item():.4f} lr {schedule.get_last_lr()[0]:.2e}")

print(f"final loss {loss.item():.5f}")
