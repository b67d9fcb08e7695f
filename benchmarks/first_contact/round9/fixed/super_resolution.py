"""EDSR-style super resolution (x2) on random patches of photographs."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.backends.cudnn.benchmark = True
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
big = device.type == "cuda"

patch = 256 if big else 32
batch_size = 64 if big else 2
features = 64 if big else 8
n_blocks = 16 if big else 2
iterations = 120 if big else 3


class ResBlock(nn.Module):
    def __init__(self, n, scale=0.1):
        super().__init__()
        self.conv1 = nn.Conv2d(n, n, 3, padding=1)
        self.conv2 = nn.Conv2d(n, n, 3, padding=1)
        self.scale = scale

    def forward(self, x):
        return torch.add(x, self.conv2(F.relu(self.conv1(x), inplace=True)), alpha=self.scale)


class EDSR(nn.Module):
    def __init__(self, n, blocks):
        super().__init__()
        self.head = nn.Conv2d(3, n, 3, padding=1)
        self.body = nn.Sequential(*[ResBlock(n) for _ in range(blocks)], nn.Conv2d(n, n, 3, padding=1))
        self.tail = nn.Sequential(nn.Conv2d(n, 12, 3, padding=1), nn.PixelShuffle(2))

    def forward(self, x):
        x = self.head(x)
        return self.tail(x + self.body(x))


def crops(photos, count, size):
    rows = torch.randint(0, len(photos), (count,), device=photos.device)
    top, left = torch.randint(0, photos.shape[-1] - size, (2,)).tolist()
    return photos[rows, :, top : top + size, left : left + size].float().div_(255)


photos = torch.randint(0, 256, (256 if big else 4, 3, patch + 64, patch + 64), dtype=torch.uint8, device=device)
net = EDSR(features, n_blocks).to(device, memory_format=torch.channels_last)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-4, fused=big)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 50, 0.5)
running = torch.zeros((), device=device)

for it in range(1, iterations + 1):
    sharp = crops(photos, batch_size, patch)
    blurred = F.avg_pool2d(sharp, 2).contiguous(memory_format=torch.channels_last)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        restored = net(blurred)
    loss = F.l1_loss(restored.float(), sharp)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    scheduler.step()
    running += loss.detach()
    if it % 40 == 0:
        print(f"iteration {it}: l1 {running.item() / 40:.4f}")
        running.zero_()

with torch.inference_mode(), torch.autocast(device.type, dtype=torch.bfloat16):
    sharp = crops(photos, batch_size, patch)
    error = F.mse_loss(net(F.avg_pool2d(sharp, 2)).float(), sharp)
print(f"PSNR {(-10 * torch.log10(error)).item():.2f} dB")
