"""Point cloud auto-encoder with a set transformer (learned queries) and the Chamfer distance."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attend(nn.Module):
    """Queries attend to a set; a feed-forward part follows."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.nq, self.nk, self.nf = nn.LayerNorm(dim), nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.q, self.kv, self.o = nn.Linear(dim, dim), nn.Linear(dim, 2 * dim), nn.Linear(dim, dim)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, other):
        b, n, d = x.shape
        q = self.q(self.nq(x)).view(b, n, self.heads, -1).transpose(1, 2)
        k, v = self.kv(self.nk(other)).view(b, other.shape[1], 2, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
        return x + self.ff(self.nf(x))


class ShapeAE(nn.Module):
    def __init__(self, points, latents, dim, depth):
        super().__init__()
        heads = dim // 64
        self.lift = nn.Sequential(nn.Linear(48, dim), nn.GELU(), nn.Linear(dim, dim))
        self.latents = nn.Parameter(torch.randn(1, latents, dim) * 0.02)
        self.queries = nn.Parameter(torch.randn(1, points, dim) * 0.02)
        self.read = Attend(dim, heads)
        self.think = nn.ModuleList([Attend(dim, heads) for _ in range(depth)])
        self.write = Attend(dim, heads)
        self.point = nn.Linear(dim, 3)
        self.register_buffer("octaves", torch.pi * 2.0 ** torch.arange(8))

    def fourier(self, cloud):
        angle = (cloud[..., None] * self.octaves).flatten(2)
        return torch.cat([angle.sin(), angle.cos()], dim=-1)

    def forward(self, cloud):
        b = len(cloud)
        z = self.read(self.latents.expand(b, -1, -1), self.lift(self.fourier(cloud)))
        for layer in self.think:
            z = layer(z, z)
        return self.point(self.write(self.queries.expand(b, -1, -1), z))


def chamfer(a, b):
    """Nearest neighbours without a graph; only the matched distances are differentiated."""
    with torch.no_grad():
        distance = torch.cdist(a, b)
        to_b, to_a = distance.argmin(dim=2), distance.argmin(dim=1)
    near_b = b.gather(1, to_b[:, :, None].expand(-1, -1, 3))
    near_a = a.gather(1, to_a[:, :, None].expand(-1, -1, 3))
    return F.mse_loss(a, near_b) + F.mse_loss(b, near_a)


def sample_shapes(count, points, device):
    """Superquadrics with random exponents."""
    direction = F.normalize(torch.randn(count, points, 3, device=device), dim=-1)
    power = torch.rand(count, 1, 3, device=device) + 0.5
    return direction.sign() * direction.abs().pow(power)


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    points, latents, dim, depth, batch, steps = (2048, 512, 512, 8, 32, 100) if gpu else (64, 8, 64, 1, 2, 3)
    model = ShapeAE(points, latents, dim, depth).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, weight_decay=0.01, fused=True)
    shapes = sample_shapes(512 if gpu else 4, points, device)
    for step in range(steps):
        cloud = shapes[torch.randint(0, len(shapes), (batch,), device=device)]
        with torch.autocast(device.type, dtype=torch.bfloat16):
            rebuilt = model(cloud)
        loss = chamfer(rebuilt.float(), cloud)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"step {step}: chamfer {loss.item():.5f}")


if __name__ == "__main__":
    main()
