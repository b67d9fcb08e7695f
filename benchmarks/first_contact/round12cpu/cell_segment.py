"""Cell segmentation with a small encoder-decoder; ported from a TensorFlow project."""
import torch
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(1)
NUM_STEPS = 500


def nchw(x):
    return x.permute(0, 3, 1, 2).contiguous()  # flaw: layout-churn


def nhwc(x):
    return x.permute(0, 2, 3, 1).contiguous()  # flaw: layout-churn


class ConvBlock(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, padding=1)
        self.norm = nn.GroupNorm(4, cout)

    def forward(self, x):
        x = nchw(x)  # flaw: layout-churn
        return nhwc(F.relu(self.norm(self.conv(x))))  # flaw: layout-churn


class Gate(nn.Module):
    """Squeeze-and-excite gate on the features of every pixel."""

    def __init__(self, ch):
        super().__init__()
        self.fc = nn.Conv2d(ch, ch, 1)

    def forward(self, x):
        x = nchw(x)  # flaw: layout-churn
        return nhwc(x * torch.sigmoid(self.fc(x.mean((2, 3), keepdim=True))))  # flaw: layout-churn


class SegNet(nn.Module):
    def __init__(self, ch=16):
        super().__init__()
        self.d1, self.g1 = ConvBlock(1, ch), Gate(ch)
        self.d2, self.g2 = ConvBlock(ch, ch), Gate(ch)
        self.u1, self.g3 = ConvBlock(2 * ch, ch), Gate(ch)
        self.out = nn.Conv2d(ch, 1, 1)

    def forward(self, x):
        a = self.g1(self.d1(nhwc(x)))  # flaw: layout-churn
        b = self.g2(self.d2(nhwc(F.max_pool2d(nchw(a), 2))))  # flaw: layout-churn
        up = nhwc(F.interpolate(nchw(b), scale_factor=2, mode="nearest"))  # flaw: layout-churn
        h = self.g3(self.u1(torch.cat([a, up], 3)))  # flaw: layout-churn
        return self.out(nchw(h))  # flaw: layout-churn


def fields(n, gen, size=48):
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    centre = torch.randint(8, size - 8, (n, 3, 2), generator=gen)
    dist = (yy - centre[..., :1, None]) ** 2 + (xx - centre[..., 1:, None]) ** 2
    mask = (dist.amin(1) < 36).float().unsqueeze(1)
    return mask + 0.4 * torch.randn(n, 1, size, size, generator=gen), mask


def dice(logits, mask):
    p = torch.sigmoid(logits)
    return 1 - (2 * (p * mask).sum() + 1) / (p.sum() + mask.sum() + 1)


torch.manual_seed(8)
gen = torch.Generator().manual_seed(8)
net = SegNet()
opt = torch.optim.Adam(net.parameters(), lr=2e-3, fused=True)
for step in range(NUM_STEPS):
    image, mask = fields(4, gen)
    loss = dice(net(image), mask)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 250 == 249:
        print(f"{step + 1}: dice loss {loss.item():.4f}")
