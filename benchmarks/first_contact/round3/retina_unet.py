import argparse
import os

import torch
from torch import nn


def double(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(True),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(True),
    )


class VesselUNet(nn.Module):
    """Encoder with `depth` levels, skip connections and a one-channel head."""

    def __init__(self, base: int = 64, depth: int = 3):
        super().__init__()
        sizes = [base * 2**i for i in range(depth)]
        self.down = nn.ModuleList()
        cin = 3
        for s in sizes:
            self.down.append(double(cin, s))
            cin = s
        self.pool = nn.MaxPool2d(2)
        self.bottom = double(cin, cin * 2)
        self.lift = nn.ModuleList(nn.ConvTranspose2d(s * 2, s, 2, 2) for s in reversed(sizes))
        self.up = nn.ModuleList(double(s * 2, s) for s in reversed(sizes))
        self.head = nn.Conv2d(base, 1, 1)

    def forward(self, x):
        kept = []
        for block in self.down:
            x = block(x)
            kept.append(x)
            x = self.pool(x)
        x = self.bottom(x)
        for lift, block in zip(self.lift, self.up):
            x = block(torch.cat((lift(x), kept.pop()), 1))
        return self.head(x)


class Trainer:
    def __init__(self, args):
        self.args = args
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.backends.cudnn.benchmark = True
        self.net = VesselUNet(args.base, args.depth)
        self.net.to(self.device)  # flaw: channels-first-conv
        self.optim = torch.optim.AdamW(self.net.parameters(), lr=args.lr, fused=True)
        self.criterion = nn.BCEWithLogitsLoss()

    def batches(self):
        a = self.args
        fundus = torch.rand(a.batch * 4, 3, a.size, a.size, device=self.device)
        vessels = (torch.rand(a.batch * 4, 1, a.size, a.size, device=self.device) > 0.9).float()
        for i in range(a.steps):
            at = (i % 4) * a.batch
            yield fundus[at : at + a.batch], vessels[at : at + a.batch]

    def fit(self):
        self.net.train()
        for i, (image, mask) in enumerate(self.batches()):
            with torch.autocast(self.device.type, dtype=torch.bfloat16):
                logits = self.net(image)
            loss = self.criterion(logits.float(), mask)
            self.optim.zero_grad(set_to_none=True)
            loss.backward()
            self.optim.step()
            if i % 50 == 49 or i == self.args.steps - 1:
                print(f"{i + 1:5d} {loss.item():.4f}")


if __name__ == "__main__":
    small = os.environ.get("SMALL", "0") == "1"
    p = argparse.ArgumentParser()
    p.add_argument("--base", type=int, default=4 if small else 64)
    p.add_argument("--depth", type=int, default=2 if small else 3)
    p.add_argument("--size", type=int, default=32 if small else 256)
    p.add_argument("--batch", type=int, default=2 if small else 16)
    p.add_argument("--steps", type=int, default=30 if small else 150)
    p.add_argument("--lr", type=float, default=3e-4)
    Trainer(p.parse_args()).fit()
