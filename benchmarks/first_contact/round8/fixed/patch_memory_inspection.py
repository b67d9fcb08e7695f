"""Surface inspection: memorise the patches of good parts, score new parts by their distance (PatchCore)."""

import torch
import torch.nn.functional as F
from torch import nn

torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("high")


class Backbone(nn.Module):
    """Two feature levels of a frozen network."""

    def __init__(self, width):
        super().__init__()
        self.stem = self.make(3, width, 2, 1)
        self.level1 = self.make(width, 2 * width, 2, 4)
        self.level2 = self.make(2 * width, 4 * width, 2, 4)
        self.level3 = self.make(4 * width, 4 * width, 2, 4)

    @staticmethod
    def make(cin, cout, stride, depth):
        layers = []
        for i in range(depth):
            layers.append(nn.Conv2d(cin if i == 0 else cout, cout, 3, stride if i == 0 else 1, 1))
            layers.append(nn.ReLU(inplace=True))
        return nn.Sequential(*layers)

    def forward(self, x):
        x = self.level1(self.stem(x))
        second = self.level2(x)
        return second, self.level3(second)


class PatchMemory:
    def __init__(self, backbone, dim, device):
        self.backbone = backbone
        self.device = device
        self.dim = dim
        self.bank = None

    @torch.inference_mode()
    def embed(self, images):
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            fine, coarse = self.backbone(images)
        coarse = F.interpolate(coarse, size=fine.shape[-2:], mode="bilinear", align_corners=False)
        both = torch.cat([fine, coarse], dim=1).float()
        both = F.avg_pool2d(both, 3, stride=1, padding=1)
        both = both.permute(0, 2, 3, 1).reshape(-1, both.shape[1])
        return F.adaptive_avg_pool1d(both[:, None], self.dim)[:, 0]

    @torch.inference_mode()
    def fit(self, batches, keep=4096):
        parts = []
        for i, images in enumerate(batches):
            patches = F.normalize(self.embed(images), dim=1)
            parts.append(patches)
            if i % 40 == 0:
                print(f"batch {i}: {len(parts) * len(patches)} patches")
        bank = torch.cat(parts)
        self.bank = bank[torch.randperm(len(bank), device=self.device)[:keep]]

    @torch.inference_mode()
    def score(self, images):
        patches = F.normalize(self.embed(images), dim=1)
        return torch.cdist(patches, self.bank).amin(dim=1).view(len(images), -1).amax(dim=1)


def batches(count, size, side, device):
    generator = torch.Generator(device=device).manual_seed(0)
    pool = torch.randint(0, 256, (4 * size, 3, side, side), dtype=torch.uint8, device=device, generator=generator)
    for i in range(count):
        part = pool[(i % 4) * size : (i % 4 + 1) * size]
        yield part.to(torch.float32, memory_format=torch.channels_last).sub_(120).div_(60)


def main():
    torch.manual_seed(0)
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    width, dim, count, size, side = (64, 384, 200, 24, 256) if gpu else (8, 16, 3, 2, 32)
    backbone = Backbone(width).to(device, memory_format=torch.channels_last).eval().requires_grad_(False)
    memory = PatchMemory(backbone, dim, device)
    memory.fit(batches(count, size, side, device))
    for images in batches(4, size, side, device):
        print("worst part:", round(memory.score(images).max().item(), 4))


if __name__ == "__main__":
    main()
