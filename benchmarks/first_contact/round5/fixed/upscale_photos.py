"""x2 upscaling of photographs with a residual network."""
import os
import torch
import torch.nn as nn
import torch.nn.functional as F


class Act(nn.Module):
    def forward(self, x):
        return F.mish(x)


class ResBlock(nn.Module):
    def __init__(self, n_feats, act, res_scale=0.2):
        super().__init__()
        self.res_scale = res_scale
        self.body = nn.Sequential(
            nn.Conv2d(n_feats, n_feats, 3, padding=1),
            act,
            nn.Conv2d(n_feats, n_feats, 3, padding=1),
        )

    def forward(self, x):
        return torch.add(x, self.body(x), alpha=self.res_scale)


class Upscaler(nn.Module):
    def __init__(self, n_resblocks, n_feats, scale=2):
        super().__init__()
        act = Act()
        self.head = nn.Conv2d(3, n_feats, 3, padding=1)
        self.body = nn.Sequential(*[ResBlock(n_feats, act) for _ in range(n_resblocks)])
        self.tail = nn.Sequential(
            nn.Conv2d(n_feats, n_feats * scale ** 2, 3, padding=1),
            nn.PixelShuffle(scale),
            nn.Conv2d(n_feats, 3, 3, padding=1),
        )

    def forward(self, x):
        x = self.head(x)
        return self.tail(x + self.body(x))


class Trainer:
    def __init__(self, small):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.n, self.crop, feats, blocks, self.steps = (2, 24, 8, 2, 30) if small else (16, 96, 128, 12, 80)
        torch.backends.cudnn.benchmark = True
        self.model = Upscaler(blocks, feats).to(self.device, memory_format=torch.channels_last)
        self.optim = torch.optim.Adam(self.model.parameters(), lr=1e-4, fused=True)
        big = torch.rand(4 * self.n, 3, 2 * self.crop, 2 * self.crop, device=self.device)
        self.target = big.contiguous(memory_format=torch.channels_last)

    def batch(self, i):
        k = i % 4
        hr = self.target[k * self.n:(k + 1) * self.n]
        return F.avg_pool2d(hr, 2), hr

    def step(self, i):
        lr, hr = self.batch(i)
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            sr = self.model(lr)
        loss = F.l1_loss(sr.float(), hr)
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()
        return loss.detach()

    def fit(self):
        for i in range(self.steps):
            loss = self.step(i)
            if i % 20 == 0:
                print(f"iter {i}: L1 {loss.item():.4f}")


if __name__ == "__main__":
    Trainer(os.environ.get("SMALL") == "1").fit()
