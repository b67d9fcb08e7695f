"""Shape classification of point clouds with dynamic graph convolutions (DGCNN)."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def neighbours(x, k):
    """Indices (B, N, k) of the k nearest points of each point in the feature space x (B, N, C)."""
    x = x.detach().float()
    square = x.square().sum(-1)
    # |x_i|^2 is the same for all j, so it does not change the order
    with torch.autocast(x.device.type, enabled=False):  # bfloat16 would make many distances equal
        distance = torch.baddbmm(square[:, None, :], x, x.transpose(1, 2), alpha=-2.0)
    return distance.argsort(dim=-1)[:, :, :k]  # flaw: full-sort


class EdgeConv(nn.Module):
    """max over neighbours j of  leaky_relu(norm(A x_j + B x_i)); A and B act on points, not on edges."""

    def __init__(self, cin, cout, k):
        super().__init__()
        self.k = k
        self.project = nn.Linear(cin, 2 * cout)
        self.norm = nn.LayerNorm(cout)

    def forward(self, x):
        b, n, _ = x.shape
        index = neighbours(x, self.k)
        theirs, own = self.project(x).chunk(2, dim=-1)
        flat = index + torch.arange(b, device=x.device)[:, None, None] * n
        gathered = F.embedding(flat, theirs.reshape(b * n, -1))
        peak = gathered.amax(dim=2)
        return F.leaky_relu(self.norm(peak + own), 0.2)


class DGCNN(nn.Module):
    def __init__(self, width, classes, k):
        super().__init__()
        self.convs = nn.ModuleList([
            EdgeConv(4, width, k), EdgeConv(width, width, k), EdgeConv(width, 2 * width, k)])
        self.mix = nn.Linear(4 * width, 16 * width)
        self.head = nn.Sequential(
            nn.Linear(16 * width, 8 * width), nn.LayerNorm(8 * width), nn.ReLU(inplace=True),
            nn.Linear(8 * width, classes))

    def forward(self, x):
        features = []
        for conv in self.convs:
            x = conv(x)
            features.append(x)
        h = self.mix(torch.cat(features, dim=-1))
        return self.head(h.amax(dim=1))


def superquadrics(count, points, classes, device):
    """Noisy points on surfaces |x|^p + |y|^p + |z|^p = 1; the exponent is the class."""
    gen = torch.Generator(device).manual_seed(0)
    label = torch.randint(classes, (count,), device=device, generator=gen)
    p = (0.6 + 0.4 * label)[:, None, None]
    ray = torch.randn(count, points, 3, device=device, generator=gen)
    radius = ray.abs().pow(p).sum(-1, keepdim=True).pow(-1 / p)
    cloud = ray * radius + 0.01 * torch.randn(ray.shape, device=device, generator=gen)
    return torch.cat([cloud, torch.ones_like(radius)], dim=-1), label


def train(args):
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    device = args.device
    clouds, labels = superquadrics(4 * args.batch, args.points, args.classes, device)
    model = DGCNN(args.width, args.classes, args.k).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    correct = torch.zeros((), device=device)
    losses = []
    for step in range(args.steps):
        part = slice(step % 4 * args.batch, (step % 4 + 1) * args.batch)
        with torch.autocast(device, dtype=torch.bfloat16):
            logits = model(clouds[part])
        loss = F.cross_entropy(logits.float(), labels[part])
        opt.zero_grad()
        loss.backward()
        opt.step()
        correct += (logits.detach().argmax(-1) == labels[part]).float().mean()
        losses.append(loss.detach())
        if (step + 1) % 40 == 0:
            print(f"step {step + 1:4d}  loss {torch.stack(losses[-40:]).mean().item():.4f}")
    return losses[-1].item(), correct.item() / args.steps


def main():
    cuda = torch.cuda.is_available()
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--device", default="cuda" if cuda else "cpu")
    ap.add_argument("--batch", type=int, default=24 if cuda else 2)
    ap.add_argument("--points", type=int, default=2048 if cuda else 64)
    ap.add_argument("--width", type=int, default=64 if cuda else 8)
    ap.add_argument("--classes", type=int, default=8)
    ap.add_argument("--k", type=int, default=20 if cuda else 6)
    ap.add_argument("--steps", type=int, default=120 if cuda else 3)
    loss, accuracy = train(ap.parse_args())
    print(f"last loss {loss:.4f}, mean accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
