"""Road extraction from aerial tiles."""

import torch
import torch.nn as nn
import torch.nn.functional as F

REGISTRY = {}


def register(name):
    def keep(thing):
        REGISTRY[name] = thing
        return thing

    return keep


def conv_norm(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


@register("unet")
class UNet(nn.Module):
    def __init__(self, width, levels=4, classes=1):
        super().__init__()
        sizes = [width * 2**i for i in range(levels)]
        self.down = nn.ModuleList()
        cin = 3
        for size in sizes:
            self.down.append(nn.Sequential(conv_norm(cin, size), conv_norm(size, size)))
            cin = size
        self.up, self.merge = nn.ModuleList(), nn.ModuleList()
        for size in reversed(sizes[:-1]):
            self.up.append(nn.ConvTranspose2d(2 * size, size, 2, stride=2))
            self.merge.append(nn.Sequential(conv_norm(2 * size, size), conv_norm(size, size)))
        self.classify = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        skips = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else F.max_pool2d(x, 2))
            skips.append(x)
        skips.pop()
        for up, merge in zip(self.up, self.merge, strict=True):
            x = merge(torch.cat([up(x), skips.pop()], dim=1))
        return self.classify(x)


@register("dice_bce")
def dice_bce(logits, target):
    bce = F.binary_cross_entropy_with_logits(logits, target)
    probability = logits.sigmoid()
    overlap = (probability * target).sum((1, 2, 3))
    dice = 1 - (2 * overlap + 1) / (probability.sum((1, 2, 3)) + target.sum((1, 2, 3)) + 1)
    return bce + dice.mean()


def tiles(count, size, device):
    """A pool of tiles on the device; batches are drawn from it."""
    images = torch.rand(count, 3, size, size, device=device)
    roads = (F.avg_pool2d(torch.rand(count, 1, size, size, device=device), 9, 1, 4) > 0.53).float()
    return images, roads


def main():
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    config = {
        "model": "unet", "loss": "dice_bce", "width": 64 if cuda else 8, "tile": 320 if cuda else 32,
        "batch": 16 if cuda else 2, "pool": 128 if cuda else 4, "steps": 120 if cuda else 3,
    }  # fmt: skip
    torch.manual_seed(7)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = True

    images, roads = tiles(config["pool"], config["tile"], device)
    images = images.contiguous(memory_format=torch.channels_last)
    model = REGISTRY[config["model"]](config["width"]).to(device, memory_format=torch.channels_last)
    criterion = REGISTRY[config["loss"]]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2, fused=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=config["steps"])

    for step in range(config["steps"]):
        pick = torch.randint(0, config["pool"], (config["batch"],), device=device)
        image, road = images[pick], roads[pick]
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = model(image)
        loss = criterion(logits.float(), road)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 40 == 0:
            print(f"{step:4d}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
