"""Species of moths from light-trap photos: a small network of depthwise convolutions labels a season of photos."""
import torch
from torch import nn

SPECIES = 120
SEASON = dict(nights=40, batches=8, photos=8, pixels=96)


def depthwise(channels, stride):
    return nn.Conv2d(channels, channels, 5, stride=stride, padding=2, groups=channels, bias=False)


class Inverted(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        inner = 3 * before
        self.expand = nn.Sequential(nn.Conv2d(before, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.Hardswish())
        self.spread = nn.Sequential(depthwise(inner, stride), nn.BatchNorm2d(inner), nn.Hardswish())
        self.shrink = nn.Sequential(nn.Conv2d(inner, after, 1, bias=False), nn.BatchNorm2d(after))
        self.same = before == after and stride == 1

    def forward(self, x):
        y = self.shrink(self.spread(self.expand(x)))
        return x + y if self.same else y


class MothNet(nn.Module):
    PLAN = [(24, 1), (32, 2), (32, 1), (48, 2), (48, 1)]

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 24, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(24), nn.ReLU())
        stages, channels = [], 24
        for after, stride in self.PLAN:
            stages.append(Inverted(channels, after, stride))
            channels = after
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(channels, SPECIES)

    def forward(self, photos):
        return self.head(self.stages(self.stem(photos)).mean((2, 3)))


def load_classifier(seed):
    torch.manual_seed(seed)
    net = MothNet()
    return net.eval()  # flaw: channels-first-conv


def trap(nights, batches, photos, pixels):
    """Photos of each night, from a store of backgrounds with another brightness each time."""
    generator = torch.Generator().manual_seed(3)
    store = torch.rand(batches, photos, 3, pixels, pixels, generator=generator)
    light = 0.5 + torch.rand(nights, batches, generator=generator)
    for night in range(nights):
        yield night, (part * level for part, level in zip(store, light[night]))


@torch.inference_mode()
def label(net, photos):
    chance = net(photos).softmax(1)
    return chance.max(1)


net = load_classifier(5)
totals = torch.zeros(SPECIES)
sure = []
for night, parts in trap(**SEASON):
    for photos in parts:
        chance, species = label(net, photos)
        totals += species.bincount(minlength=SPECIES)
        sure.append(float(chance.mean()))
    if night % 10 == 9:
        print(f"night {night + 1}: {int(totals.sum())} moths, {int((totals > 0).sum())} species, sure {sure[-1]:.5f}")
top = totals.topk(3)
print("most seen:", list(zip(top.indices.tolist(), top.values.int().tolist())), f"mean {sum(sure) / len(sure):.6f}")
