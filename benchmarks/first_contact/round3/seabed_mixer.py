import os
import torch
from torch import nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"


class Stage(nn.Module):
    """Convolution over space, then a channel network on tokens."""

    def __init__(self, c):
        super().__init__()
        self.conv = nn.Conv2d(c, c, 3, padding=1)
        self.norm = nn.LayerNorm(c)
        self.fc1, self.fc2 = nn.Linear(c, 2 * c), nn.Linear(2 * c, c)

    def forward(self, x):
        y = self.conv(x)
        y = y.permute(0, 2, 3, 1).contiguous()
        y = self.fc2(F.gelu(self.fc1(self.norm(y))))
        y = y.permute(0, 3, 1, 2).contiguous()  # flaw: none-yet(layout-churn)
        return x + y


class Seabed(nn.Module):
    def __init__(self, c, depth, kinds):
        super().__init__()
        self.patch = nn.Conv2d(1, c, 4, 4)
        self.stages = nn.Sequential(*(Stage(c) for _ in range(depth)))
        self.head = nn.Conv2d(c, kinds, 1)

    def forward(self, sonar):
        return self.head(self.stages(self.patch(sonar)))


def main():
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    c, depth, side, batch, steps = (8, 2, 16, 2, 30) if SMALL else (128, 6, 256, 32, 100)
    net = Seabed(c, depth, 8).to(dev, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    sonar = torch.randn(batch * 2, 1, side, side, device=dev)
    ground = torch.randint(8, (batch * 2, side // 4, side // 4), device=dev)
    for i in range(steps):
        part = slice(i % 2 * batch, (i % 2 + 1) * batch)
        with torch.autocast(dev, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(sonar[part]), ground[part])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(loss.item())


if __name__ == "__main__":
    main()
