"""DGCNN part segmentation: dynamic k-NN graphs in feature space, edge convolutions."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")


@torch.no_grad()
def knn(x, k):
    """Indices of the k nearest neighbours of each point: (B, N, C) -> (B, N, k)."""
    x = x.float()
    with torch.autocast(x.device.type, enabled=False):
        inner = torch.matmul(x, x.transpose(1, 2))
    square = x.square().sum(dim=-1)
    distance = square[:, :, None] - 2 * inner + square[:, None, :]
    return distance.argsort(dim=-1)[:, :, :k]  # flaw: full-sort


def neighbours(x, idx):
    b, n, c = x.shape
    k = idx.shape[-1]
    base = torch.arange(b, device=x.device).view(b, 1, 1) * n
    return F.embedding((idx + base).view(-1), x.reshape(b * n, c)).view(b, n, k, c)


class EdgeConv(nn.Module):
    def __init__(self, cin, cout, k):
        super().__init__()
        self.k = k
        self.centre = nn.Linear(cin, cout)
        self.edge = nn.Linear(cin, cout, bias=False)
        self.mix = nn.Linear(cout, cout)
        self.norm = nn.LayerNorm(cout)

    def forward(self, x):
        idx = knn(x, self.k)
        # W [x_i, x_j - x_i] is taken apart, so that the product runs over points and not over edges
        h = F.gelu(neighbours(self.edge(x), idx) + self.centre(x)[:, :, None])
        return self.norm(self.mix(h).amax(dim=2))


class DGCNN(nn.Module):
    def __init__(self, parts, k, width):
        super().__init__()
        self.lift = nn.Linear(3, width)
        self.convs = nn.ModuleList([EdgeConv(width, width, k) for _ in range(3)])
        self.globe = nn.Linear(4 * width, 512)
        self.head = nn.Sequential(nn.Linear(4 * width + 512, 256), nn.GELU(), nn.Linear(256, parts))

    def forward(self, points):
        feats = [self.lift(points)]
        for conv in self.convs:
            feats.append(conv(feats[-1]))
        local = torch.cat(feats, dim=-1)
        whole = self.globe(local).amax(dim=1, keepdim=True)
        return self.head(torch.cat([local, whole.expand(-1, local.shape[1], -1)], dim=-1))


def main():
    torch.manual_seed(0)
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    batch, points, k, width, steps = (16, 2048, 20, 64, 200) if gpu else (2, 64, 8, 16, 3)
    parts = 48
    shapes = torch.randn(256 if gpu else 4, points, 3, device=device)
    shapes = F.normalize(shapes, dim=-1) * (1 + 0.2 * torch.rand(len(shapes), points, 1, device=device))
    labels = ((shapes[..., 0] + 1.3) / 2.6 * parts).long().clamp(0, parts - 1)
    model = DGCNN(parts, k, width).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for step in range(steps):
        pick = torch.randint(0, len(shapes), (batch,), device=device)
        cloud = shapes[pick] + 0.01 * torch.randn(batch, points, 3, device=device)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = model(cloud)
        loss = F.cross_entropy(logits.float().flatten(0, 1), labels[pick].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            accuracy = (logits.argmax(-1) == labels[pick]).float().mean()
            print(f"step {step}: loss {loss.item():.3f}, part accuracy {accuracy.item():.3f}")


if __name__ == "__main__":
    main()
