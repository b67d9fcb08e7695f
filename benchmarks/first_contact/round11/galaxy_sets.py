"""Photometric redshifts of all galaxies of a field at once: a transformer over the set of galaxies."""
import torch
import torch.nn.functional as F
from torch import nn

cuda = torch.cuda.is_available()
device = torch.device("cuda" if cuda else "cpu")
torch.manual_seed(2025)

n_fields, n_galaxies, n_bands = (32, 1024, 16) if cuda else (2, 32, 16)
width, n_heads, n_layers = (512, 8, 4) if cuda else (32, 2, 2)
n_steps = 150 if cuda else 5


class SetAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.scale = (width // heads) ** -0.5
        self.to_q = nn.Linear(width, width)
        self.to_kv = nn.Linear(width, 2 * width)
        self.merge = nn.Linear(width, width)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x):
        q = self.split(self.to_q(x))
        k, v = map(self.split, self.to_kv(x).chunk(2, dim=-1))
        affinity = q @ k.transpose(-2, -1) * self.scale  # flaw: hand-written-attention
        affinity = affinity.softmax(dim=-1)  # flaw: hand-written-attention
        mixed = affinity @ v  # flaw: hand-written-attention
        return self.merge(mixed.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attend = SetAttention(width, heads)
        self.norm_a, self.norm_b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attend(self.norm_a(x))
        return x + self.down(F.gelu(self.up(self.norm_b(x))))


class Redshifts(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(n_bands, width)
        self.layers = nn.Sequential(*(Layer(width, n_heads) for _ in range(n_layers)))
        self.read = nn.Linear(width, 8)

    def forward(self, magnitudes):
        return self.read(self.layers(self.embed(magnitudes)))


def survey():
    """Eight groups of fields: magnitudes per band and 8 quantiles of the redshift."""
    magnitudes = torch.randn(8, n_fields, n_galaxies, n_bands, device=device)
    local = magnitudes[..., :8].sigmoid()
    crowded = magnitudes.mean((2, 3), keepdim=True)
    return magnitudes.to(torch.bfloat16), local + 4 * crowded


magnitudes, redshifts = survey()
model = Redshifts().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
losses = []
for step in range(n_steps):
    part = step % len(magnitudes)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        predicted = model(magnitudes[part])
    loss = F.huber_loss(predicted.float(), redshifts[part], delta=0.5)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())

losses = torch.stack(losses).tolist()
print(f"huber loss: first {losses[0]:.4f}, last {losses[-1]:.4f}")
