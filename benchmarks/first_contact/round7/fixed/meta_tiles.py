"""Land-use classification of satellite tiles: convolution as token mixer, MLP on the last axis."""

import torch
from torch import nn
from torch.nn import functional as F


class Mixer(nn.Module):
    """3 x 3 convolution over (batch, height, width, channel) maps."""

    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.conv = nn.Conv2d(dim, dim, 3, padding=1)

    def forward(self, x):
        y = self.norm(x).permute(0, 3, 1, 2)
        y = self.conv(y)
        return x + y.permute(0, 2, 3, 1)


class ChannelMLP(nn.Module):
    def __init__(self, dim, ratio=2):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up, self.down = nn.Linear(dim, ratio * dim), nn.Linear(ratio * dim, dim)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Stage(nn.Module):
    def __init__(self, cin, dim, depth, patch):
        super().__init__()
        self.patch = nn.Conv2d(cin, dim, patch, patch)
        self.blocks = nn.Sequential(*[m for _ in range(depth) for m in (Mixer(dim), ChannelMLP(dim))])

    def forward(self, x):
        x = self.patch(x).permute(0, 2, 3, 1)
        return self.blocks(x).permute(0, 3, 1, 2)


class MetaNet(nn.Module):
    def __init__(self, dim, classes=45):
        super().__init__()
        self.stages = nn.Sequential(Stage(3, dim, 3, 4), Stage(dim, 2 * dim, 3, 2), Stage(2 * dim, 4 * dim, 2, 2))
        self.head = nn.Linear(4 * dim, classes)

    def forward(self, x):
        return self.head(self.stages(x).mean((2, 3)))


def main():
    cuda = torch.cuda.is_available()
    device = "cuda" if cuda else "cpu"
    dim, side, batch, steps = (96, 256, 96, 120) if cuda else (8, 32, 2, 3)
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    tiles = torch.randint(0, 255, (batch * 8, 3, side, side), dtype=torch.uint8, device=device)
    labels = torch.randint(0, 45, (len(tiles),), device=device)
    net = MetaNet(dim).to(device, memory_format=torch.channels_last)
    decay = [p for p in net.parameters() if p.dim() > 1]
    rest = [p for p in net.parameters() if p.dim() <= 1]
    groups = [{"params": decay, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, fused=True)
    for step in range(steps):
        pick = torch.randint(0, len(tiles), (batch,), device=device)
        x = tiles[pick].to(torch.bfloat16).div_(255).contiguous(memory_format=torch.channels_last)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(x), labels[pick], label_smoothing=0.1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(f"iter {step:4d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
