"""Keypoint heatmaps with a stack of hourglass modules."""

import torch
from torch import nn
from torch.nn import functional as F

on_cuda = torch.cuda.is_available()
device = "cuda" if on_cuda else "cpu"
BATCH, SIDE, FEATURES, STACKS, STEPS = (32, 256, 96, 2, 120) if on_cuda else (2, 64, 8, 1, 3)
KEYPOINTS = 17


class Conv(nn.Module):
    def __init__(self, cin, cout, kernel=3, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, kernel, stride, kernel // 2)  # flaw: conv-bias-before-norm
        self.bn = nn.BatchNorm2d(cout)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.bn(self.conv(x)))


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(Conv(channels, channels // 2, 1), Conv(channels // 2, channels // 2), Conv(channels // 2, channels, 1))

    def forward(self, x):
        return x + self.body(x)


class Hourglass(nn.Module):
    def __init__(self, depth, channels):
        super().__init__()
        self.skip = Residual(channels)
        self.before = Residual(channels)
        self.inner = Hourglass(depth - 1, channels) if depth > 1 else Residual(channels)
        self.after = Residual(channels)

    def forward(self, x):
        low = self.after(self.inner(self.before(F.max_pool2d(x, 2))))
        return self.skip(x) + F.interpolate(low, scale_factor=2, mode="nearest")


class PoseNet(nn.Module):
    def __init__(self):
        super().__init__()
        f = FEATURES
        self.stem = nn.Sequential(Conv(3, f // 2, 7, 2), Conv(f // 2, f), Residual(f))
        self.stacks = nn.ModuleList([Hourglass(3, f) for _ in range(STACKS)])
        self.heads = nn.ModuleList([nn.Conv2d(f, KEYPOINTS, 1) for _ in range(STACKS)])
        self.features = nn.ModuleList([Conv(f, f, 1) for _ in range(STACKS)])
        self.back = nn.ModuleList([nn.Conv2d(KEYPOINTS, f, 1) for _ in range(STACKS - 1)])

    def forward(self, image):
        x = self.stem(image)
        maps = []
        for i, stack in enumerate(self.stacks):
            y = self.features[i](stack(x))
            maps.append(self.heads[i](y))
            if i < len(self.back):
                x = x + y + self.back[i](maps[-1])
        return maps


def heatmaps(points, side):
    """Gaussian targets, (batch, keypoints, side, side), from points in [0, 1]."""
    grid = (torch.arange(side, device=points.device) + 0.5) / side
    gx = torch.exp(-((grid - points[..., :1]) ** 2) * (side / 2) ** 2)
    gy = torch.exp(-((grid - points[..., 1:]) ** 2) * (side / 2) ** 2)
    return gy.unsqueeze(-1) * gx.unsqueeze(-2)


torch.manual_seed(0)
torch.backends.cudnn.benchmark = True
people = torch.rand(BATCH * 8, 3, SIDE, SIDE, device=device).contiguous(memory_format=torch.channels_last)
joints = torch.rand(BATCH * 8, KEYPOINTS, 2, device=device)
model = PoseNet().to(device, memory_format=torch.channels_last)
optimizer = torch.optim.RMSprop(model.parameters(), lr=2.5e-4, foreach=True)

for step in range(STEPS):
    pick = torch.randint(0, len(people), (BATCH,), device=device)
    image, target = people[pick], heatmaps(joints[pick], SIDE // 2)
    with torch.autocast(device, dtype=torch.bfloat16):
        maps = model(image)
        loss = sum(F.mse_loss(m, target.to(m.dtype)) for m in maps)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(step, round(loss.item(), 5))
