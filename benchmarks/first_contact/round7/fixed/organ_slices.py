"""Multi-organ segmentation of abdominal slices; wide-context encoder with a light decoder."""

import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
device = torch.device("cuda" if CUDA else "cpu")
BATCH, SIDE, WIDTH, STEPS = (16, 512, 48, 120) if CUDA else (2, 32, 8, 3)
ORGANS = 24


class Down(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 4, 2, 1, bias=False)
        self.norm = nn.BatchNorm2d(cout)
        self.mix = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(cout)

    def forward(self, x):
        x = F.relu(self.norm(self.conv(x)), inplace=True)
        return F.relu(self.norm2(self.mix(x)), inplace=True)


class SliceNet(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.d1, self.d2, self.d3 = Down(1, w), Down(w, 2 * w), Down(2 * w, 4 * w)
        self.u3 = nn.ConvTranspose2d(4 * w, 2 * w, 2, 2)
        self.u2 = nn.ConvTranspose2d(2 * w, w, 2, 2)
        self.u1 = nn.ConvTranspose2d(w, ORGANS, 2, 2)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(a)
        b = F.relu(b + self.u3(self.d3(b)), inplace=True)
        a = F.relu(a + self.u2(b), inplace=True)
        return self.u1(a)


class SegmentationLoss(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.register_buffer("weights", weights)

    def forward(self, logits, target):
        return F.cross_entropy(logits.float(), target, weight=self.weights)


class Experiment:
    def __init__(self):
        self.slices = torch.randn(BATCH * 4, 1, SIDE, SIDE, device=device)
        self.masks = torch.randint(0, ORGANS, (BATCH * 4, SIDE // 16, SIDE // 16), device=device)
        self.masks = self.masks.repeat_interleave(16, 1).repeat_interleave(16, 2)
        self.net = SliceNet(WIDTH).to(device, memory_format=torch.channels_last)
        self.criterion = SegmentationLoss(torch.linspace(0.5, 2, ORGANS)).to(device)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-3, fused=True)

    def batch(self):
        i = torch.randint(0, len(self.slices), (BATCH,), device=device)
        return self.slices[i].contiguous(memory_format=torch.channels_last), self.masks[i]

    def run(self):
        for step in range(STEPS):
            image, mask = self.batch()
            with torch.autocast(device.type, dtype=torch.bfloat16):
                logits = self.net(image)
            loss = self.criterion(logits, mask)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            if step % 30 == 0:
                print(f"step {step}: {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    Experiment().run()
