# nodule / no nodule from small CT cubes
import os
import torch
from torch import nn
from torch.nn import functional as F

small = bool(int(os.environ.get("SMALL", "0")))
dev = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
C, SIDE, BATCH, STEPS = (4, 12, 2, 30) if small else (32, 48, 24, 120)


class Res3d(nn.Module):
    def __init__(self, c, groups):
        super().__init__()
        self.a = nn.Conv3d(c, c, 3, padding=1, bias=False)
        self.na = nn.BatchNorm3d(c)
        self.b = nn.Conv3d(c, c, (5, 3, 3), padding=(2, 1, 1), bias=False, groups=groups)
        self.nb = nn.BatchNorm3d(c)

    def forward(self, x):
        return F.relu(x + self.nb(self.b(F.relu(self.na(self.a(x))))))


class NoduleNet(nn.Sequential):
    def __init__(self, c):
        super().__init__(
            nn.Conv3d(1, c, 5, padding=2, bias=False), nn.BatchNorm3d(c), nn.ReLU(),
            Res3d(c, 1), nn.Conv3d(c, 2 * c, 2, 2),
            Res3d(2 * c, 4), Res3d(2 * c, 4), nn.Conv3d(2 * c, 4 * c, 2, 2),
            Res3d(4 * c, 1), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(4 * c, 2),
        )


cubes = torch.randn(BATCH * 4, 1, SIDE, SIDE, SIDE, device=dev).to(memory_format=torch.channels_last_3d)
labels = torch.randint(0, 2, (BATCH * 4,), device=dev)
net = NoduleNet(C).to(dev).to(memory_format=torch.channels_last_3d)
opt = torch.optim.Adam(net.parameters(), lr=2e-4, fused=True)
hits = torch.zeros((), dtype=torch.long, device=dev)

for it in range(STEPS):  # flaw: untuned-convolution
    s = slice((it % 4) * BATCH, (it % 4 + 1) * BATCH)
    with torch.autocast(dev.type, dtype=torch.bfloat16):
        out = net(cubes[s])
        loss = F.cross_entropy(out, labels[s])
    loss.backward()
    opt.step()
    opt.zero_grad()
    hits += (out.detach().argmax(1) == labels[s]).sum()

print("accuracy %.3f" % (hits.item() / (STEPS * BATCH)))
