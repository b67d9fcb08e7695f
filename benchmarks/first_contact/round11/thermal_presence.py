"""Presence detection on thermal cameras: a bottleneck network built from a table of stages."""
import collections

import torch
import torch.nn.functional as F
from torch import nn

Stage = collections.namedtuple("Stage", "channels blocks stride")

ARCHITECTURES = {
    "presence-m": [Stage(256, 3, 1), Stage(512, 3, 2)],
    "presence-tiny": [Stage(16, 1, 1), Stage(32, 1, 2)],
}


def conv_norm(n_in, n_out, kernel, stride=1):
    return nn.Sequential(
        nn.Conv2d(n_in, n_out, kernel, stride, kernel // 2),  # flaw: conv-bias-before-norm
        nn.BatchNorm2d(n_out),
    )


class Bottleneck(nn.Module):
    def __init__(self, n_in, n_out, stride):
        super().__init__()
        inner = n_out // 4
        self.reduce = conv_norm(n_in, inner, 1)
        self.spatial = conv_norm(inner, inner, 3, stride)
        self.expand = conv_norm(inner, n_out, 1)
        self.skip = conv_norm(n_in, n_out, 1, stride) if (n_in, stride) != (n_out, 1) else nn.Identity()

    def forward(self, x):
        y = F.relu(self.reduce(x), inplace=True)
        y = F.relu(self.spatial(y), inplace=True)
        return F.relu(self.expand(y) + self.skip(x), inplace=True)


def build(name, n_outputs=8):
    stages = ARCHITECTURES[name]
    first = stages[0].channels // 4
    layers, channels = [conv_norm(8, first, 3), nn.ReLU(inplace=True)], first
    for stage in stages:
        for i in range(stage.blocks):
            layers.append(Bottleneck(channels, stage.channels, stage.stride if i == 0 else 1))
            channels = stage.channels
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, n_outputs)]
    return nn.Sequential(*layers)


def initialise(model, seed):
    gen = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            fan_in = module.weight[0].numel()
            module.weight.data = torch.randn(module.weight.shape, generator=gen) * (2 / fan_in) ** 0.5
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def clips(batch, height, width, device, seed):
    """Endless batches of 8 consecutive thermal frames and the number of people seen."""
    gen = torch.Generator(device).manual_seed(seed)
    frames = torch.randn(4, batch, 8, height, width, generator=gen, device=device, dtype=torch.bfloat16)
    people = torch.randint(0, 8, (4, batch), generator=gen, device=device)
    pool = [f.contiguous(memory_format=torch.channels_last) for f in frames]
    while True:
        yield from zip(pool, people)


def main(steps):
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    torch.backends.cudnn.benchmark = True
    model = build("presence-m" if gpu else "presence-tiny")
    initialise(model, seed=6)
    model.to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4, fused=True)
    source = clips(*((128, 64, 80) if gpu else (4, 16, 20)), device, seed=9)
    running = torch.zeros((), device=device)
    for _, (frames, people) in zip(range(steps), source):
        with torch.autocast(device.type, torch.bfloat16):
            loss = F.cross_entropy(model(frames), people)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.detach()
    print(f"mean loss over {steps} steps: {running.item() / steps:.3f}")


if __name__ == "__main__":
    main(steps=200 if torch.cuda.is_available() else 4)
