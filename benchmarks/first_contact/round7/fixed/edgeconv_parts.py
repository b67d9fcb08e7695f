"""Part segmentation of point clouds with dynamic graph convolutions."""

import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
DEV = torch.device("cuda" if CUDA else "cpu")
BATCH, POINTS, NEIGHBOURS, WIDTH, STEPS = (24, 2048, 20, 64, 80) if CUDA else (2, 64, 5, 8, 3)
PARTS = 50
torch.set_float32_matmul_precision("high")


def pairwise_distance(x):
    inner = x @ x.transpose(1, 2)
    square = inner.diagonal(dim1=1, dim2=2)
    return square.unsqueeze(2) - 2 * inner + square.unsqueeze(1)


@torch.no_grad()
def knn(x, k):
    distance = pairwise_distance(x.float())
    return distance.topk(k, dim=-1, largest=False, sorted=False).indices


class EdgeConv(nn.Module):
    """max over neighbours j of f(x_i, x_j - x_i); the linear part is applied before the gather."""

    def __init__(self, cin, cout):
        super().__init__()
        self.centre = nn.Linear(cin, cout)
        self.edge = nn.Linear(cin, cout, bias=False)
        self.norm = nn.LayerNorm(cout)

    def forward(self, x, k):
        index = knn(x, k)
        b, n, _ = x.shape
        edge = self.edge(x)
        flat = (index + torch.arange(b, device=x.device).view(-1, 1, 1) * n).view(-1)
        neighbours = F.embedding(flat, edge.reshape(b * n, -1)).view(b, n, k, -1)
        pooled = neighbours.amax(2)
        return F.leaky_relu(self.norm(self.centre(x) - edge + pooled), 0.2)


class PartNet(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.convs = nn.ModuleList([EdgeConv(3, w), EdgeConv(w, w), EdgeConv(w, 2 * w)])
        self.wide = nn.Linear(4 * w, 1024)
        self.head = nn.Sequential(
            nn.Linear(1024 + 4 * w, 512), nn.ReLU(inplace=True), nn.Linear(512, 256), nn.ReLU(inplace=True), nn.Linear(256, PARTS)
        )

    def forward(self, points):
        features, x = [], points
        for conv in self.convs:
            x = conv(x, NEIGHBOURS)
            features.append(x)
        local = torch.cat(features, -1)
        world = self.wide(local).amax(1, keepdim=True).expand(-1, local.shape[1], -1)
        return self.head(torch.cat([local, world], -1))


def main():
    torch.manual_seed(0)
    clouds = torch.randn(BATCH * 6, POINTS, 3, device=DEV)
    clouds = clouds / clouds.norm(dim=-1, keepdim=True).clamp_min(0.3)
    parts = torch.randint(0, PARTS, (BATCH * 6, POINTS), device=DEV)
    model = PartNet(WIDTH).to(DEV)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for step in range(STEPS):
        pick = torch.randint(0, len(clouds), (BATCH,), device=DEV)
        cloud = clouds[pick] * (0.8 + 0.4 * torch.rand(BATCH, 1, 3, device=DEV))
        with torch.autocast(DEV.type, dtype=torch.bfloat16):
            logits = model(cloud)
            loss = F.cross_entropy(logits.flatten(0, 1), parts[pick].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"{step}: {loss.item():.4f}")


main()
