"""Multi-organ segmentation of CT slices."""
import logging
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
log = logging.getLogger("organs")

if os.environ.get("SMALL"):
    ORGANS, SIDE, BATCH, BASE, STEPS = 8, 32, 2, 8, 30
else:
    ORGANS, SIDE, BATCH, BASE, STEPS = 48, 256, 12, 48, 80


class Stage(nn.Sequential):
    def __init__(self, cin, cout):
        super().__init__(
            nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
            nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class OrganNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc1 = Stage(1, BASE)
        self.enc2 = Stage(BASE, 2 * BASE)
        self.bottom = Stage(2 * BASE, 4 * BASE)
        self.dec2 = Stage(6 * BASE, 2 * BASE)
        self.dec1 = Stage(3 * BASE, BASE)
        self.head = nn.Conv2d(BASE, ORGANS, 1)

    def forward(self, x):
        s1 = self.enc1(x)
        s2 = self.enc2(F.max_pool2d(s1, 2))
        b = self.bottom(F.max_pool2d(s2, 2))
        d2 = self.dec2(torch.cat([F.interpolate(b, scale_factor=2), s2], 1))
        return self.head(self.dec1(torch.cat([F.interpolate(d2, scale_factor=2), s1], 1)))


class VoxelLoss(nn.Module):
    def forward(self, logits, target):
        logits = logits.float()
        shifted = logits - logits.amax(1, keepdim=True).detach()  # flaw: hand-written-loss
        logp = shifted - shifted.exp().sum(1, keepdim=True).log()  # flaw: hand-written-loss
        truth = F.one_hot(target, ORGANS).permute(0, 3, 1, 2).float()  # flaw: hand-written-loss
        return -(truth * logp).sum(1).mean()  # flaw: hand-written-loss


def slices(device):
    ct = torch.randn(BATCH * 5, 1, SIDE, SIDE, device=device)
    organ = torch.randint(ORGANS, (BATCH * 5, SIDE, SIDE), device=device)
    return ct, organ


def train():
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = OrganNet().to(device, memory_format=torch.channels_last)
    criterion = VoxelLoss()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=device.type == "cuda")
    ct, organ = slices(device)
    for step in range(STEPS):
        at = (step % 5) * BATCH
        with torch.autocast(device.type, torch.bfloat16):
            logits = net(ct[at:at + BATCH])
        loss = criterion(logits, organ[at:at + BATCH])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            log.info("step %d loss %.4f", step, loss.item())


if __name__ == "__main__":
    train()
