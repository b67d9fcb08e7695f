"""Part segmentation of point clouds with shared MLPs and a pooled global feature."""
import os
import torch
from torch import nn
import torch.nn.functional as F


def shared(*dims):
    layers = []
    for i, o in zip(dims, dims[1:]):
        layers += [nn.Linear(i, o), nn.LayerNorm(o), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class PartNet(nn.Module):
    def __init__(self, width, parts, categories):
        super().__init__()
        self.local = shared(8, width, 2 * width)
        self.deep = shared(2 * width, 4 * width, 8 * width)
        self.kind = nn.Embedding(categories, 2 * width)
        self.context = nn.Linear(8 * width, 2 * width)
        self.decode = shared(2 * width, 2 * width, 2 * width)
        self.classify = nn.Linear(2 * width, parts)

    def forward(self, points, category):
        local = self.local(points)
        pooled = self.deep(local).amax(1)
        context = self.context(pooled) + self.kind(category)
        return self.classify(self.decode(local + context[:, None]))


class Clouds:
    def __init__(self, count, points, parts, categories, device):
        self.xyz = torch.randn(count, points, 8, device=device)
        self.xyz[..., 6:] = 0
        self.part = (self.xyz[..., 0].abs() * 6).long().clamp_(max=parts - 1)
        self.category = torch.randint(categories, (count,), device=device)

    def batches(self, size, epochs):
        for _ in range(epochs):
            order = torch.randperm(len(self.xyz), device=self.xyz.device)
            for chunk in order.split(size):
                yield self.xyz[chunk], self.part[chunk], self.category[chunk]


def main():
    small = os.environ.get("SMALL") == "1"
    batch, points, width, epochs, per_epoch = (2, 32, 8, 3, 10) if small else (48, 2048, 96, 6, 16)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    clouds = Clouds(batch * per_epoch, points, 48, 16, device)
    net = PartNet(width, 48, 16).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=device.type == "cuda")
    hits = torch.zeros((), device=device)
    for n, (xyz, part, category) in enumerate(clouds.batches(batch, epochs)):
        with torch.autocast(device.type, torch.bfloat16):
            logits = net(xyz, category)
        loss = F.cross_entropy(logits.flatten(0, 1).float(), part.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (n + 1) % per_epoch == 0:
            hits = (logits.detach().argmax(-1) == part).float().mean()
            print(f"epoch {(n + 1) // per_epoch}: loss {loss.item():.3f}, accuracy {hits.item():.3f}")


if __name__ == "__main__":
    main()
