"""Gesture recognition in short clips: a bottleneck network on frames, with temporal shift between its blocks."""

import torch
from torch import nn
from torch.nn import functional as F

ON_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if ON_GPU else "cpu")

MODELS = {}


def register(name):
    def wrap(builder):
        MODELS[name] = builder
        return builder

    return wrap


class TemporalShift(nn.Module):
    """Moves an eighth of the channels one frame ahead and an eighth one frame back."""

    def __init__(self, frames, fold=8):
        super().__init__()
        self.frames, self.fold = frames, fold

    def forward(self, x):
        nt, c, h, w = x.shape
        x = x.permute(0, 2, 3, 1).view(nt // self.frames, self.frames, h, w, c)
        fold = c // self.fold
        ahead, back, still = x.split([fold, fold, c - 2 * fold], dim=-1)
        ahead = F.pad(ahead[:, 1:], (0, 0, 0, 0, 0, 0, 0, 1))
        back = F.pad(back[:, :-1], (0, 0, 0, 0, 0, 0, 1, 0))
        x = torch.cat([ahead, back, still], dim=-1).view(nt, h, w, c)
        return x.permute(0, 3, 1, 2)


class Bottleneck(nn.Module):
    def __init__(self, cin, mid, stride, frames):
        super().__init__()
        cout = 4 * mid
        self.shift = TemporalShift(frames)
        self.conv1, self.bn1 = nn.Conv2d(cin, mid, 1, bias=False), nn.BatchNorm2d(mid)
        self.conv2, self.bn2 = nn.Conv2d(mid, mid, 3, stride, 1, bias=False), nn.BatchNorm2d(mid)
        self.conv3, self.bn3 = nn.Conv2d(mid, cout, 1, bias=False), nn.BatchNorm2d(cout)
        self.short = nn.Identity()
        if stride > 1 or cin != cout:
            self.short = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(self.shift(x))), inplace=True)
        y = F.relu(self.bn2(self.conv2(y)), inplace=True)
        return F.relu(self.bn3(self.conv3(y)) + self.short(x), inplace=True)


class ShiftNet(nn.Module):
    def __init__(self, width, depths, frames, classes):
        super().__init__()
        self.frames = frames
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        )
        blocks, cin = [], width
        for i, depth in enumerate(depths):
            for j in range(depth):
                blocks.append(Bottleneck(cin, width * 2**i, 2 if i and not j else 1, frames))
                cin = 4 * width * 2**i
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(cin, classes)

    def forward(self, clips):
        b, t = clips.shape[:2]
        x = clips.flatten(0, 1).contiguous(memory_format=torch.channels_last)
        x = self.blocks(self.stem(x)).mean((2, 3))
        return self.head(x.view(b, t, -1).mean(1))


@register("shift50")
def shift50(frames, classes):
    return ShiftNet(64, (3, 4, 3), frames, classes)


@register("shift_tiny")
def shift_tiny(frames, classes):
    return ShiftNet(8, (1, 1), frames, classes)


def main(name, clips, frames, size, batch, steps, classes=27):
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    video = torch.randint(0, 256, (clips, frames, 3, size, size), dtype=torch.uint8, device=DEVICE)
    gesture = torch.randint(0, classes, (clips,), device=DEVICE)
    model = MODELS[name](frames, classes).to(DEVICE, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, nesterov=True, weight_decay=5e-4, fused=ON_GPU)
    log = []
    for step in range(steps):
        rows = torch.randint(0, clips, (batch,), device=DEVICE)
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            logits = model(video[rows].to(torch.bfloat16).sub_(114).div_(58))
            loss = F.cross_entropy(logits, gesture[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log.append(loss.detach())
        if (step + 1) % 40 == 0:
            print(step + 1, torch.stack(log[-40:]).mean().item())
    print("last loss", log[-1].item())


if __name__ == "__main__":
    if ON_GPU:
        main("shift50", clips=128, frames=8, size=224, batch=20, steps=100)
    else:
        main("shift_tiny", clips=4, frames=4, size=32, batch=2, steps=3)
