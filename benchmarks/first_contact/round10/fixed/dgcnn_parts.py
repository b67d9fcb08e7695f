"""Part segmentation of point clouds with dynamic graph convolutions."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def neighbours(x, k):
    """Indices of the k nearest points of each point; x is (batch, points, features)."""
    with torch.no_grad():
        x = x.float()
        square = x.square().sum(-1)
        distance = square[:, :, None] + square[:, None] - 2 * x @ x.transpose(1, 2)
        return distance.topk(k, dim=-1, largest=False).indices


def gather(x, index):
    b, n, k = index.shape
    flat = index.reshape(b, n * k, 1).expand(-1, -1, x.shape[-1])
    return x.gather(1, flat).view(b, n, k, -1)


class EdgeConv(nn.Module):
    def __init__(self, cin, cout, k):
        super().__init__()
        self.k = k
        self.local = nn.Linear(cin, cout)
        self.centre = nn.Linear(cin, cout)
        self.norm = nn.LayerNorm(cout)

    def forward(self, x):
        index = neighbours(x, self.k)
        edges = gather(self.local(x), index).amax(2)
        return F.gelu(self.norm(edges + self.centre(x)))


class DGCNN(nn.Module):
    def __init__(self, parts, width, k):
        super().__init__()
        dims = [3, width, width, 2 * width]
        self.convs = nn.ModuleList(EdgeConv(a, b, k) for a, b in zip(dims, dims[1:]))
        total = sum(dims[1:])
        self.globe = nn.Linear(total, 8 * width)
        self.head = nn.Sequential(
            nn.Linear(total + 8 * width, 4 * width), nn.GELU(), nn.Linear(4 * width, parts)
        )

    def forward(self, x):
        features = []
        for conv in self.convs:
            x = conv(x)
            features.append(x)
        local = torch.cat(features, -1)
        pooled = self.globe(local).amax(1, keepdim=True).expand(-1, local.shape[1], -1)
        return self.head(torch.cat([local, pooled], -1))


def cloud_batches(count, batch, points, parts, device):
    generator = torch.Generator(device=device).manual_seed(0)
    for _ in range(count):
        xyz = torch.randn(batch, points, 3, device=device, generator=generator)
        xyz = F.normalize(xyz, dim=-1) * (1 + 0.2 * xyz[..., :1])
        part = ((xyz[..., 2] + 1.3) / 2.6 * parts).long().clamp(0, parts - 1)
        yield xyz, part


def main():
    cuda = torch.cuda.is_available()
    device = "cuda" if cuda else "cpu"
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    batch, points, width, k, steps = (24, 2048, 64, 24, 120) if cuda else (2, 64, 16, 4, 2)
    model = DGCNN(8, width, k).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, fused=cuda)
    confusion = torch.zeros(8, 8, dtype=torch.long, device=device)
    for xyz, part in cloud_batches(steps, batch, points, 8, device):
        with torch.autocast(device, dtype=torch.bfloat16):
            logits = model(xyz)
            loss = F.cross_entropy(logits.flatten(0, 1), part.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        guess = logits.argmax(-1).flatten() + 8 * part.flatten()
        confusion += torch.bincount(guess, minlength=64).view(8, 8)
    hits = confusion.diagonal()
    iou = hits / (confusion.sum(0) + confusion.sum(1) - hits).clamp(min=1)
    print(f"mean IoU {iou.mean().item():.3f}")


if __name__ == "__main__":
    main()
