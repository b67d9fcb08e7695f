"""Prototype network for textures, trained on short rounds of a small set."""
import os
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Encoder(nn.Module):
    def __init__(self, c):
        super().__init__()
        sizes = [3, c, c, 2 * c]
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True), nn.MaxPool2d(2))
            for a, b in zip(sizes, sizes[1:]))

    def forward(self, x):
        for b in self.blocks:
            x = b(x)
        return x.mean((2, 3))


class Rounds:
    def __init__(self, small):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.batch, side, self.per_round, self.rounds, c = (4, 16, 10, 3, 4) if small else (64, 84, 12, 8, 128)
        images = torch.rand(self.batch * self.per_round, 3, side, side)
        kinds = torch.arange(len(images)) % 16
        self.loader = DataLoader(TensorDataset(images, kinds), self.batch, shuffle=True, num_workers=2 if small else 4, pin_memory=True)  # flaw: loader-workers-restart
        self.net = Encoder(c).to(self.device, memory_format=torch.channels_last)
        self.centres = nn.Parameter(torch.randn(16, 2 * c, device=self.device))
        self.opt = torch.optim.Adam([*self.net.parameters(), self.centres], lr=1e-3, fused=True)

    def one_round(self):
        total = torch.zeros((), device=self.device)
        for x, y in self.loader:
            x = x.to(self.device, non_blocking=True).contiguous(memory_format=torch.channels_last)
            y = y.to(self.device, non_blocking=True)
            with torch.autocast(self.device.type, dtype=torch.bfloat16):
                z = self.net(x)
            loss = F.cross_entropy(-torch.cdist(z.float(), self.centres), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.detach()
        return total / len(self.loader)

    def run(self):
        return [self.one_round() for _ in range(self.rounds)]


if __name__ == "__main__":
    torch.backends.cudnn.benchmark = True
    for i, value in enumerate(Rounds(os.environ.get("SMALL") == "1").run()):
        print(f"round {i}: {value.item():.4f}")
