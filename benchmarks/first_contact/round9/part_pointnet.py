"""Part segmentation of point clouds with shared linear layers, local and global features."""

import torch
from torch import nn
from torch.nn import functional as F

RUN = {
    "cuda": dict(clouds=2048, points=2048, width=128, batch=128, steps=200),
    "cpu": dict(clouds=8, points=64, width=8, batch=2, steps=3),
}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PARTS = 48


class Shared(nn.Sequential):
    """Linear layer, batch norm and ReLU, over rows of points."""

    def __init__(self, cin, cout):
        super().__init__(nn.Linear(cin, cout, bias=False), nn.BatchNorm1d(cout), nn.ReLU(inplace=True))


class PointNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.local = nn.Sequential(Shared(8, width), Shared(width, 2 * width))
        self.deep = nn.Sequential(Shared(2 * width, 4 * width), Shared(4 * width, 8 * width))
        self.global_part = nn.Linear(8 * width, 4 * width, bias=False)
        self.local_part = nn.Linear(2 * width, 4 * width, bias=False)
        self.norm = nn.BatchNorm1d(4 * width)
        self.head = nn.Sequential(Shared(4 * width, 2 * width), nn.Linear(2 * width, PARTS))

    def forward(self, points):
        b, n, c = points.shape
        local = self.local(points.view(b * n, c))
        whole = self.deep(local).view(b, n, -1).max(1).values
        joint = self.local_part(local).view(b, n, -1) + self.global_part(whole)[:, None]
        return self.head(F.relu(self.norm(joint.view(b * n, -1)), inplace=True))


def rotations(count, device):
    angle = torch.rand(count, device=device) * (2 * torch.pi)
    c, s, zero, one = angle.cos(), angle.sin(), torch.zeros_like(angle), torch.ones_like(angle)
    return torch.stack([c, -s, zero, s, c, zero, zero, zero, one], -1).view(count, 3, 3)


def make_clouds(clouds, points, device):
    xyz = F.normalize(torch.randn(clouds, points, 3, device=device), dim=-1)
    parts = ((xyz[..., 0] > 0) + 2 * (xyz[..., 1] > 0) + 4 * (xyz[..., 2] * 6 + 6).clamp(0, 11).long()).clamp_max(PARTS - 1)
    return xyz, parts


def train(clouds, points, width, batch, steps):
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    xyz, parts = make_clouds(clouds, points, DEVICE)
    model = PointNet(width).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=DEVICE == "cuda")
    seen = torch.zeros(2, device=DEVICE)
    for step in range(1, steps + 1):
        rows = torch.randint(0, clouds, (batch,), device=DEVICE)
        cloud = xyz[rows] @ rotations(batch, DEVICE)
        inputs = F.pad(torch.cat([cloud, xyz[rows]], dim=-1), (0, 2))
        target = parts[rows].view(-1)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            logits = model(inputs)
            loss = F.cross_entropy(logits, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            seen += torch.stack([loss.detach(), (logits.argmax(-1) == target).float().mean()])
        if step % 50 == 0:
            loss_mean, accuracy = (seen / 50).tolist()
            print(f"step {step}: loss {loss_mean:.4f}, accuracy {accuracy:.3f}")
            seen.zero_()


if __name__ == "__main__":
    train(**RUN[DEVICE])
