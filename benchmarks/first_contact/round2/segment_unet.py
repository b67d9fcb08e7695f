"""Binary segmentation."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.backends.cudnn.benchmark = True
device = "cuda" if torch.cuda.is_available() else "cpu"


def double(i, o):
    return nn.Sequential(
        nn.Conv2d(i, o, 3, padding=1),  # flaw: conv-bias-before-norm
        nn.BatchNorm2d(o), nn.ReLU(True),
        nn.Conv2d(o, o, 3, padding=1),  # flaw: conv-bias-before-norm
        nn.BatchNorm2d(o), nn.ReLU(True))


class UNet(nn.Module):
    def __init__(self, w=32):
        super().__init__()
        self.d1, self.d2, self.d3 = double(4, w), double(w, 2 * w), double(2 * w, 4 * w)
        self.u2 = nn.ConvTranspose2d(4 * w, 2 * w, 2, 2)
        self.c2 = double(4 * w, 2 * w)
        self.u1 = nn.ConvTranspose2d(2 * w, w, 2, 2)
        self.c1 = double(2 * w, w)
        self.out = nn.Conv2d(w, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        c = self.d3(F.max_pool2d(b, 2))
        y = self.c2(torch.cat([self.u2(c), b], 1))
        return self.out(self.c1(torch.cat([self.u1(y), a], 1)))


batch = 24
net = UNet().to(device, memory_format=torch.channels_last)
opt = torch.optim.AdamW(net.parameters(), 1e-3, fused=True)
scans = torch.randn(2 * batch, 4, 256, 256, device=device).to(memory_format=torch.channels_last)
masks = torch.rand(2 * batch, 1, 256, 256, device=device).round()

for it in range(400):
    half = slice(0, batch) if it % 2 else slice(batch, None)
    with torch.autocast(device, torch.bfloat16):
        pred = net(scans[half])
    loss = F.binary_cross_entropy_with_logits(pred.float(), masks[half])
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if it % 100 == 0:
        print(it, loss.item())
