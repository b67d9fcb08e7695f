import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE, JOINTS = 96, 24


def gaussian_grid(size):
    axis = np.arange(size) / (size - 1)
    return np.stack(np.meshgrid(axis, axis, indexing="xy"), 0)


class Targets:
    """Turns joint positions into heat maps on the device."""

    def __init__(self, device, sigma=0.02):
        self.grid = torch.as_tensor(gaussian_grid(SIZE), device=device)  # flaw: float64-on-device
        self.sigma = sigma

    def __call__(self, joints):
        gap = self.grid - joints[..., None, None]  # flaw: float64-on-device
        return torch.exp(-gap.square().sum(2) / (2 * self.sigma ** 2))  # flaw: float64-on-device


class PoseNet(nn.Module):
    def __init__(self, c=128):
        super().__init__()
        self.stem = nn.Conv2d(3, c, 4, 4, bias=False)
        self.body = nn.Sequential(*[m for _ in range(3) for m in (
            nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c), nn.ReLU(inplace=True))])
        self.head = nn.Conv2d(c, JOINTS, 1)

    def forward(self, x):
        return self.head(self.body(self.stem(x)))


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    batch = 64
    net = PoseNet().to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), 1e-3, fused=True)
    images = torch.randn(batch * 2, 3, SIZE * 4, SIZE * 4, device=device, dtype=torch.bfloat16).contiguous(memory_format=torch.channels_last)
    joints = torch.rand(batch * 2, JOINTS, 2, device=device)
    targets = Targets(device)
    for it in range(400):
        lo = (it % 2) * batch
        want = targets(joints[lo:lo + batch])
        with torch.autocast(device, dtype=torch.bfloat16):
            maps = net(images[lo:lo + batch])
        loss = F.mse_loss(maps.float(), want.float())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if it % 100 == 99:
            print(it, loss.item())


if __name__ == "__main__":
    main()
