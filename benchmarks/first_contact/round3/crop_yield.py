import os
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SMALL = os.environ.get("SMALL") == "1"


class YieldNet(nn.Module):
    def __init__(self, bands, c, depth):
        super().__init__()
        self.stem = nn.Conv2d(bands, c, 3, padding=1)
        self.blocks = nn.ModuleList(nn.ModuleDict({
            "norm": nn.GroupNorm(4, c), "conv": nn.Conv2d(c, c, 3, padding=1), "act": nn.SiLU()}) for _ in range(depth))
        self.out = nn.Linear(c, 1)

    def forward(self, x):
        x = self.stem(x)
        for b in self.blocks:
            x = x + b["act"](b["conv"](b["norm"](x)))
        return self.out(x.mean((2, 3))).squeeze(1)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    side, channels, depth, steps = (8, 8, 2, 30) if SMALL else (64, 64, 16, 150)
    batch_size = 2  # flaw: small-batch|launch-bound
    fields = TensorDataset(torch.rand(batch_size * steps, 8, side, side), torch.rand(batch_size * steps))
    loader = DataLoader(fields, batch_size, shuffle=True, num_workers=2 if SMALL else 4, pin_memory=True, persistent_workers=True)
    net = YieldNet(8, channels, depth).to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), 1e-3, fused=True)
    loss_fn = nn.HuberLoss()
    total = torch.zeros((), device=device)
    for x, y in loader:
        x = x.to(device, non_blocking=True).contiguous(memory_format=torch.channels_last)
        y = y.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            pred = net(x)
        loss = loss_fn(pred.float(), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.detach()
    print(f"average {total.item() / len(loader):.4f}")


if __name__ == "__main__":
    main()
