"""A one-stage detector's backbone and head on random pictures."""
import torch
import torch.nn as nn

torch.backends.cudnn.benchmark = True
device = "cuda" if torch.cuda.is_available() else "cpu"


class ConvUnit(nn.Module):
    def __init__(self, i, o, k=3, s=1):
        super().__init__()
        self.conv = nn.Conv2d(i, o, k, s, k // 2, bias=False)
        self.bn = nn.BatchNorm2d(o)

    def act(self, x):
        sp = torch.log1p(torch.exp(x))  # flaw: hand-written-activation
        return x * torch.tanh(sp)  # flaw: hand-written-activation

    def forward(self, x):
        return self.act(self.bn(self.conv(x)))


class CSP(nn.Module):
    def __init__(self, c, n):
        super().__init__()
        self.left = ConvUnit(c, c // 2, 1)
        self.right = ConvUnit(c, c // 2, 1)
        self.inner = nn.Sequential(*[ConvUnit(c // 2, c // 2) for _ in range(n)])

    def forward(self, x):
        return torch.cat((self.inner(self.left(x)), self.right(x)), dim=1)


backbone = nn.Sequential(
    ConvUnit(3, 64, s=2),
    ConvUnit(64, 128, s=2),
    CSP(128, 2),
    ConvUnit(128, 256, s=2),
    CSP(256, 2),
    ConvUnit(256, 512, s=2),
    CSP(512, 2),
)
head = nn.Conv2d(512, 3 * 88, 1)
model = nn.Sequential(backbone, head).to(device).to(memory_format=torch.channels_last)
opt = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, nesterov=True, fused=True)
imgs = torch.randn(32, 3, 416, 416, device=device).contiguous(memory_format=torch.channels_last)
want = torch.rand(32, 3 * 88, 26, 26, device=device)

for it in range(300):
    with torch.autocast(device, dtype=torch.bfloat16):
        pred = model(imgs)
    loss = nn.functional.binary_cross_entropy_with_logits(pred.float(), want)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 100 == 0:
        print(it, float(loss))
