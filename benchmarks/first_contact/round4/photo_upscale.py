import os
import torch
from torch import nn
import torch.nn.functional as F

PRESETS = {
    "base": dict(batch=16, patch=96, dim=64, blocks=8, scale=2, iters=70),
    "test": dict(batch=2, patch=16, dim=8, blocks=2, scale=2, iters=30),
}
opt = PRESETS["test" if os.environ.get("SMALL") else "base"]
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.backends.cudnn.benchmark = True


class ChannelNorm(nn.Module):
    def __init__(self, channels, eps=1e-6):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1, channels, 1, 1))
        self.offset = nn.Parameter(torch.zeros(1, channels, 1, 1))
        self.eps = eps

    def forward(self, x):
        centre = x.float().mean(1, keepdim=True)  # flaw: hand-written-norm
        spread = (x - centre).pow(2).mean(1, keepdim=True)  # flaw: hand-written-norm
        x = (x - centre) / torch.sqrt(spread + self.eps)  # flaw: hand-written-norm
        return x * self.gain + self.offset  # flaw: hand-written-norm


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm1 = ChannelNorm(c)
        self.conv1 = nn.Conv2d(c, 2 * c, 3, padding=1)
        self.conv2 = nn.Conv2d(2 * c, c, 3, padding=1)
        self.norm2 = ChannelNorm(c)
        self.up, self.down = nn.Conv2d(c, 2 * c, 1), nn.Conv2d(2 * c, c, 1)

    def forward(self, x):
        x = x + self.conv2(F.gelu(self.conv1(self.norm1(x))))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Upscaler(nn.Module):
    def __init__(self, c, n, r):
        super().__init__()
        self.head = nn.Conv2d(3, c, 3, padding=1)
        self.body = nn.Sequential(*[Block(c) for _ in range(n)])
        self.tail = nn.Sequential(nn.Conv2d(c, 3 * r * r, 3, padding=1), nn.PixelShuffle(r))
        self.r = r

    def forward(self, x):
        h = self.head(x)
        return self.tail(h + self.body(h)) + F.interpolate(x, scale_factor=self.r, mode="nearest")


hr_pool = torch.rand(opt["batch"] * 4, 3, opt["patch"] * opt["scale"], opt["patch"] * opt["scale"], device=device)
hr_pool = hr_pool.to(memory_format=torch.channels_last)
net = Upscaler(opt["dim"], opt["blocks"], opt["scale"]).to(device, memory_format=torch.channels_last)
optim = torch.optim.Adam(net.parameters(), lr=2e-4, betas=(0.9, 0.99), fused=device.type == "cuda")

for it in range(opt["iters"]):
    hr = hr_pool[torch.randint(len(hr_pool), (opt["batch"],), device=device)]
    lr = F.avg_pool2d(hr, opt["scale"])
    with torch.autocast(device.type, torch.bfloat16):
        sr = net(lr)
    loss = F.l1_loss(sr.float(), hr)
    optim.zero_grad()
    loss.backward()
    optim.step()
    if it % 10 == 0 and it:
        print(f"iter {it} l1 {loss.item():.5f}")
