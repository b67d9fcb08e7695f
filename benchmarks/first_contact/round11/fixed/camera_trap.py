"""Species in camera-trap images: convolution + channel mixing blocks, trained with callbacks."""
import torch
from torch import nn
from torch.nn import functional as F

torch.backends.cudnn.benchmark = True
GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"


class MixBlock(nn.Module):
    """3x3 convolution over space, then a perceptron over the channels of each pixel."""

    def __init__(self, channels):
        super().__init__()
        self.spatial = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.LayerNorm(channels)
        self.widen = nn.Linear(channels, 2 * channels)
        self.narrow = nn.Linear(2 * channels, channels)

    def forward(self, x):
        y = self.spatial(x)
        y = y.permute(0, 2, 3, 1)
        y = self.narrow(F.gelu(self.widen(self.norm(y))))
        y = y.permute(0, 3, 1, 2)
        return y.add_(x)


class TrapNet(nn.Module):
    def __init__(self, channels, depth, species):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 4, stride=4)
        self.blocks = nn.Sequential(*(MixBlock(channels) for _ in range(depth)))
        self.head = nn.Linear(channels, species)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


class Callback:
    def on_step(self, step, loss):
        pass

    def on_end(self):
        pass


class LossCurve(Callback):
    def __init__(self, steps):
        self.values = torch.zeros(steps, device=DEVICE)

    def on_step(self, step, loss):
        self.values[step] = loss

    def on_end(self):
        curve = self.values.cpu()
        print(f"loss: first {curve[0].item():.4f} last {curve[-1].item():.4f}")


class WarmUp(Callback):
    def __init__(self, optimizer, steps):
        self.optimizer, self.steps, self.top = optimizer, steps, optimizer.param_groups[0]["lr"]

    def on_step(self, step, loss):
        for group in self.optimizer.param_groups:
            group["lr"] = self.top * min(1.0, (step + 1) / self.steps)


def image_pool(count, batch, side):
    gen = torch.Generator(DEVICE).manual_seed(99)
    images = torch.randn(count, batch, side, side, 3, generator=gen, device=DEVICE, dtype=torch.bfloat16)
    species = torch.randint(0, 32, (count, batch), generator=gen, device=DEVICE)
    return [(images[i].permute(0, 3, 1, 2), species[i]) for i in range(count)]


def fit(model, optimizer, pool, steps, callbacks):
    for step in range(steps):
        images, species = pool[step % len(pool)]
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = F.cross_entropy(model(images), species)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for callback in callbacks:
            callback.on_step(step, loss.detach())
    for callback in callbacks:
        callback.on_end()


def main():
    channels, depth, batch, side, steps = (96, 6, 96, 256, 150) if GPU else (16, 2, 4, 32, 5)
    torch.manual_seed(98)
    model = TrapNet(channels, depth, 32).to(DEVICE).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, fused=True)
    callbacks = [LossCurve(steps), WarmUp(optimizer, 20)]
    fit(model, optimizer, image_pool(4, batch, side), steps, callbacks)


if __name__ == "__main__":
    main()
