"""Surround cameras to a bird's-eye view: image features are sampled at the projected cells of the ground."""
import torch
import torch.nn.functional as F
from torch import nn

ON_GPU = torch.cuda.is_available()
HPARAMS = {
    "rigs": 16 if ON_GPU else 2, "cameras": 6 if ON_GPU else 2, "image": (128, 352) if ON_GPU else (32, 64),
    "channels": 64 if ON_GPU else 8, "grid": 80 if ON_GPU else 8, "heights": 2, "steps": 120 if ON_GPU else 3,
}


class Backbone(nn.Module):
    def __init__(self, channels):
        super().__init__()
        sizes = [3, channels, 2 * channels, 2 * channels, 2 * channels]
        strides = [4, 2, 1, 1]
        self.convs = nn.ModuleList(
            nn.Conv2d(a, b, 4 if s == 4 else 3, s, 0 if s == 4 else 1)
            for a, b, s in zip(sizes, sizes[1:], strides))
        self.out = nn.Conv2d(2 * channels, channels, 1)

    def forward(self, x):
        for conv in self.convs:
            x = F.relu(conv(x), inplace=True)
        return self.out(x)


class GroundSampler(nn.Module):
    def __init__(self, grid, heights, reach=40.0):
        super().__init__()
        axis = torch.linspace(-reach, reach, grid)
        z, y, x = torch.meshgrid(torch.linspace(-1, 1, heights), axis, axis, indexing="ij")
        cells = torch.stack([x, y, z, torch.ones_like(x)], -1).reshape(-1, 4)
        self.register_buffer("cells", cells)
        self.shape = (heights, grid, grid)

    def forward(self, features, projections):
        """features: rigs x cameras x C x h x w; projections: rigs x cameras x 3 x 4, to [-1, 1]."""
        rigs = []
        for images, matrices in zip(features, projections):  # flaw: python-loop-over-tensor
            ground = 0
            for image, matrix in zip(images, matrices):  # flaw: python-loop-over-tensor
                pixel = self.cells @ matrix.T  # flaw: python-loop-over-tensor
                depth = pixel[:, 2:]  # flaw: python-loop-over-tensor
                spot = pixel[:, :2] / depth.clamp(min=0.1)  # flaw: python-loop-over-tensor
                spot = spot.masked_fill(depth < 0.1, 9.0)[None, None]  # flaw: python-loop-over-tensor
                seen = F.grid_sample(image[None], spot, align_corners=False)  # flaw: python-loop-over-tensor
                ground = ground + seen[0, :, 0]  # flaw: python-loop-over-tensor
            rigs.append(ground)  # flaw: python-loop-over-tensor
        return torch.stack(rigs).unflatten(2, self.shape).flatten(1, 2)  # flaw: python-loop-over-tensor


class BevNet(nn.Module):
    def __init__(self, hp):
        super().__init__()
        c = hp["channels"]
        self.backbone = Backbone(c)
        self.sampler = GroundSampler(hp["grid"], hp["heights"])
        self.bev = nn.Sequential(nn.Conv2d(c * hp["heights"], c, 3, padding=1), nn.ReLU(inplace=True),
                                 nn.Conv2d(c, 8, 1))

    def forward(self, images, projections):
        features = self.backbone(images.flatten(0, 1)).unflatten(0, images.shape[:2])
        with torch.autocast(images.device.type, enabled=False):
            ground = self.sampler(features.float(), projections)
        return self.bev(ground.contiguous(memory_format=torch.channels_last))


def drives(hp, device):
    """Frames of several rigs; calibration is disturbed for every frame."""
    gen = torch.Generator(device).manual_seed(20)
    n, k = hp["rigs"], hp["cameras"]
    pool = torch.randn(3, n, k, 3, *hp["image"], generator=gen, device=device, dtype=torch.bfloat16)
    base = torch.randn(n, k, 3, 4, generator=gen, device=device) * 0.3
    target = torch.randint(0, 8, (n, hp["grid"], hp["grid"]), generator=gen, device=device)
    for step in range(hp["steps"]):
        yield pool[step % 3], base + 0.01 * torch.randn(base.shape, generator=gen, device=device), target


def main():
    device = torch.device("cuda" if ON_GPU else "cpu")
    torch.manual_seed(19)
    torch.backends.cudnn.benchmark = True
    model = BevNet(HPARAMS).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
    total = torch.zeros((), device=device)
    for images, projections, target in drives(HPARAMS, device):
        with torch.autocast(device.type, torch.bfloat16):
            loss = F.cross_entropy(model(images, projections), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    print(f"mean loss: {total.item() / HPARAMS['steps']:.4f}")


if __name__ == "__main__":
    main()
