import os
import torch
from torch import nn
import torch.nn.functional as F

small = os.environ.get("SMALL", "") == "1"


class LayerNorm2d(nn.Module):
    def __init__(self, channels, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.eps = eps

    def forward(self, x):
        u = x.mean(1, keepdim=True)  # flaw: hand-written-norm
        s = (x - u).pow(2).mean(1, keepdim=True)  # flaw: hand-written-norm
        x = (x - u) / torch.sqrt(s + self.eps)  # flaw: hand-written-norm
        return self.weight[:, None, None] * x + self.bias[:, None, None]  # flaw: hand-written-norm


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.spatial = nn.Conv2d(dim, dim, 3, padding=1, groups=max(1, dim // 32))
        self.norm = LayerNorm2d(dim)
        self.expand = nn.Conv2d(dim, 2 * dim, 1)
        self.shrink = nn.Conv2d(2 * dim, dim, 1)

    def forward(self, x):
        return x + self.shrink(F.gelu(self.expand(self.norm(self.spatial(x)))))


class LeafNet(nn.Module):
    def __init__(self, dims, depths, classes=38):
        super().__init__()
        stages, cin = [], 3
        for i, (dim, depth) in enumerate(zip(dims, depths)):
            k = 4 if i == 0 else 2
            stages.append(nn.Conv2d(cin, dim, k, k))
            stages.extend(Block(dim) for _ in range(depth))
            cin = dim
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(cin, classes)

    def forward(self, x):
        return self.head(self.stages(x).mean((2, 3)))


def run():
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    batch, side, steps = (2, 32, 30) if small else (128, 224, 80)
    net = LeafNet((8, 16), (1, 1)) if small else LeafNet((96, 192, 384), (2, 2, 4))
    net = net.to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), lr=4e-3, weight_decay=0.05, fused=True)
    leaves = torch.rand(2 * batch, 3, side, side, device=device).to(memory_format=torch.channels_last)
    disease = torch.randint(38, (2 * batch,), device=device)
    for step in range(steps):
        half = slice(0, batch) if step % 2 else slice(batch, None)
        with torch.autocast(device.type, torch.bfloat16):
            loss = F.cross_entropy(net(leaves[half]), disease[half])
        loss.backward()
        opt.step()
        opt.zero_grad()
    return loss.item()


if __name__ == "__main__":
    print(f"loss {run():.3f}")
