"""Fine-tunes an image model with gradients accumulated over several batches."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

MICRO = 2  # flaw: small-batch|launch-bound
ACCUMULATE = 16


def block(i, o, s=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.GroupNorm(8, o), nn.SiLU(inplace=True))


def main():
    torch.backends.cudnn.benchmark = True
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = nn.Sequential(
        block(3, 32, 2), block(32, 64), block(64, 64), block(64, 128, 2), block(128, 128), block(128, 128), block(128, 128),
        block(128, 256, 2), block(256, 256), block(256, 256), block(256, 256), block(256, 256), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10),
    ).to(device, memory_format=torch.channels_last)
    data = TensorDataset(torch.randn(2000, 3, 96, 96), torch.randint(10, (2000,)))
    loader = DataLoader(data, batch_size=MICRO, shuffle=True, num_workers=4, pin_memory=True, persistent_workers=True, prefetch_factor=8)  # flaw: small-batch|launch-bound
    opt = torch.optim.AdamW(net.parameters(), 1e-4, fused=True)
    for epoch in range(6):
        for n, (x, y) in enumerate(loader, 1):
            x = x.to(device, non_blocking=True, memory_format=torch.channels_last)
            y = y.to(device, non_blocking=True)
            with torch.autocast(device, torch.bfloat16):
                loss = nn.functional.cross_entropy(net(x), y) / ACCUMULATE
            loss.backward()
            if n % ACCUMULATE == 0:
                opt.step()
                opt.zero_grad()


if __name__ == "__main__":
    main()
