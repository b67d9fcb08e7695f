"""Depthwise-separable convolutions over feature maps that keep their channels last."""
import torch
from torch import nn


class Centre(nn.Module):
    """Normalises the features of each pixel."""

    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        var, mu = torch.var_mean(x, dim=-1, keepdim=True, unbiased=False)  # flaw: hand-written-norm
        x = (x - mu) * torch.rsqrt(var + 1e-6)  # flaw: hand-written-norm
        return torch.addcmul(self.bias, x, self.weight)  # flaw: hand-written-norm


class Stage(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dw = nn.Conv2d(dim, dim, 3, padding=1, groups=dim)
        self.norm = Centre(dim)
        self.grow = nn.Linear(dim, 4 * dim)
        self.shrink = nn.Linear(4 * dim, dim)

    def forward(self, x):
        y = self.dw(x).permute(0, 2, 3, 1)
        y = self.shrink(nn.functional.gelu(self.grow(self.norm(y))))
        return x + y.permute(0, 3, 1, 2)


class Net(nn.Module):
    def __init__(self, dim=384, depth=5, classes=200):
        super().__init__()
        self.stem = nn.Conv2d(3, dim, 8, stride=8)
        self.stages = nn.Sequential(*(Stage(dim) for _ in range(depth)))
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        return self.head(self.stages(self.stem(x)).mean((2, 3)))


class Trainer:
    def __init__(self, steps=350):
        torch.backends.cudnn.benchmark = True
        self.steps = steps
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.net = Net().to(self.device, memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05, momentum=0.9, fused=True)
        self.x = torch.randn(64, 3, 256, 256, device=self.device).to(memory_format=torch.channels_last)
        self.y = torch.randint(200, (64,), device=self.device)

    def fit(self):
        for _ in range(self.steps):
            self.optimizer.zero_grad()
            with torch.autocast(self.device, dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(self.net(self.x), self.y)
            loss.backward()
            self.optimizer.step()
        return float(loss)


print(Trainer().fit())
