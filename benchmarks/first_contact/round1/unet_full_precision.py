"""Cuts tissue out of microscope pictures."""
import torch
from torch import nn

torch.backends.cudnn.benchmark = True
device = "cuda" if torch.cuda.is_available() else "cpu"


def double(i, o):
    return nn.Sequential(*[m for a in (i, o) for m in (nn.Conv2d(a, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(True))])


class UNet(nn.Module):
    def __init__(self, c=64):
        super().__init__()
        self.a, self.b, self.mid = double(3, c), double(c, 2 * c), double(2 * c, 2 * c)
        self.up, self.z = nn.Upsample(scale_factor=2), double(3 * c, c)
        self.out, self.pool = nn.Conv2d(c, 2, 1), nn.MaxPool2d(2)

    def forward(self, x):
        a = self.a(x)
        return self.out(self.z(torch.cat([a, self.up(self.mid(self.b(self.pool(a))))], 1)))


net = UNet().to(device, memory_format=torch.channels_last)
opt = torch.optim.Adam(net.parameters(), 1e-4, fused=True)
x = torch.rand(16, 3, 256, 256, device=device).to(memory_format=torch.channels_last)
y = torch.randint(2, (16, 256, 256), device=device)
for _ in range(300):
    loss = nn.functional.cross_entropy(net(x), y)  # flaw: none-yet(conv-without-autocast)|fp32-matmul
    opt.zero_grad()
    loss.backward()
    opt.step()
