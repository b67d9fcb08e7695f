"""SimSiam with colour augmentation on the device."""

import torch
import torch.nn as nn
import torch.nn.functional as F

HAS_GPU = torch.cuda.is_available()


def uniform(x, low, high):
    return torch.empty(len(x), 1, 1, device=x.device).uniform_(low, high)


@torch.compile(disable=not HAS_GPU, dynamic=False)
def color_jitter(rgb, brightness, contrast, saturation, hue, grey):
    """Jitter (N, 3, H, W) images in [0, 1], one strength an image."""
    r, g, b = rgb.unbind(1)
    r, g, b = r * brightness, g * brightness, b * brightness
    r, g, b = (r - 0.5) * contrast + 0.5, (g - 0.5) * contrast + 0.5, (b - 0.5) * contrast + 0.5
    luma = 0.299 * r + 0.587 * g + 0.114 * b
    r, g, b = luma + (r - luma) * saturation, luma + (g - luma) * saturation, luma + (b - luma) * saturation
    # hue: turn the chroma plane (YIQ)
    i = 0.596 * r - 0.274 * g - 0.322 * b
    q = 0.211 * r - 0.523 * g + 0.312 * b
    cos, sin = hue.cos(), hue.sin()
    i, q = i * cos - q * sin, i * sin + q * cos
    i, q = i * grey, q * grey
    r = luma + 0.956 * i + 0.621 * q
    g = luma - 0.272 * i - 0.647 * q
    b = luma - 1.106 * i + 1.703 * q
    return (torch.stack([r, g, b], dim=1).clamp(0, 1) - 0.45) / 0.225


def augment(images):
    jitter = color_jitter(
        images,
        uniform(images, 0.6, 1.4),
        uniform(images, 0.6, 1.4),
        uniform(images, 0.6, 1.4),
        uniform(images, -0.4, 0.4),
        (uniform(images, 0, 1) > 0.2).float(),
    )
    return jitter.contiguous(memory_format=torch.channels_last)


class Basic(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout)
        self.conv2, self.bn2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout)
        self.skip = nn.Conv2d(cin, cout, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(self.bn2(self.conv2(y)) + self.skip(x), inplace=True)


class SimSiam(nn.Module):
    def __init__(self, w, dim):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, w, 7, 4, 3, bias=False), nn.BatchNorm2d(w), nn.ReLU(inplace=True),
            Basic(w, w, 1), Basic(w, 2 * w, 2), Basic(2 * w, 2 * w, 1), Basic(2 * w, 4 * w, 2), Basic(4 * w, 8 * w, 2),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * w, dim, bias=False), nn.BatchNorm1d(dim),
        )  # fmt: skip
        self.predictor = nn.Sequential(
            nn.Linear(dim, dim // 4, bias=False), nn.BatchNorm1d(dim // 4), nn.ReLU(inplace=True), nn.Linear(dim // 4, dim)
        )

    def forward(self, a, b):
        z = self.encoder(torch.cat([a, b]))
        p1, p2 = self.predictor(z).chunk(2)
        z1, z2 = z.detach().chunk(2)
        return -0.5 * (F.cosine_similarity(p1, z2).mean() + F.cosine_similarity(p2, z1).mean())


def main():
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    device = "cuda" if HAS_GPU else "cpu"
    batch, side, steps, width, dim = (192, 224, 200, 64, 1024) if HAS_GPU else (4, 32, 3, 8, 32)
    stored = torch.randint(0, 256, (1024 if HAS_GPU else 8, 3, side, side), dtype=torch.uint8, device=device)
    model = SimSiam(width, dim).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4, fused=True)
    for step in range(steps):
        images = stored[torch.randint(0, len(stored), (batch,), device=device)].float().div_(255)
        first, second = augment(images), augment(images.flip(-1))
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = model(first, second)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
