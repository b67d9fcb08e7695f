# Cough detection on log-mel patches: depthwise-separable convolutions, mixup, a moving average of the weights.
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

MELS, FRAMES, BATCH, STEPS = 32, 48, 32, 420
gen = torch.Generator().manual_seed(55)
torch.manual_seed(55)


def unit(inputs, outputs, stride):
    return nn.Sequential(
        nn.Conv2d(inputs, inputs, 3, stride, 1, groups=inputs, bias=False),
        nn.BatchNorm2d(inputs),
        nn.Conv2d(inputs, outputs, 1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


class CoughNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 32, 3, 1, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(inplace=True))
        self.units = nn.Sequential(unit(32, 48, 2), unit(48, 64, 1), unit(64, 96, 2), unit(96, 96, 1))
        self.head = nn.Linear(96, 2)

    def forward(self, mel):
        return self.head(self.units(self.stem(mel)).mean((2, 3)))


def clips(count):
    """Background hum, and in half of the clips one or two short broadband bursts that decay."""
    label = torch.randint(2, (count,), generator=gen)
    frame = torch.arange(FRAMES)[None]
    bursts = torch.zeros(count, FRAMES)
    for _ in range(2):
        start = torch.randint(0, FRAMES - 8, (count, 1), generator=gen)
        bursts += torch.where(frame >= start, torch.exp(-0.3 * (frame - start).clamp(min=0)), 0.0)
    tilt = torch.linspace(1.0, 0.4, MELS)[None, :, None]
    mel = torch.randn(count, MELS, FRAMES, generator=gen)
    return (mel + 1.2 * label[:, None, None] * bursts[:, None] * tilt)[:, None], label


def mixed(mel, label):
    share = float(torch.distributions.Beta(0.4, 0.4).sample())
    other = torch.randperm(len(mel))
    target = F.one_hot(label, 2).float()
    return torch.lerp(mel[other], mel, share), torch.lerp(target[other], target, share)


sounds, labels = clips(3000)
net = CoughNet().to(memory_format=torch.channels_last)
average = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.99), use_buffers=True)
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.01, fused=True)

for step in range(1, STEPS + 1):
    rows = torch.randint(len(sounds), (BATCH,), generator=gen)
    mel, target = mixed(sounds[rows], labels[rows])
    loss = F.cross_entropy(net(mel.contiguous(memory_format=torch.channels_last)), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update_parameters(net)
    if step % 60 == 0:
        print(f"step {step:4d}  loss {loss.item():.4f}", flush=True)

average.eval()
with torch.inference_mode():
    fresh, truth = clips(400)
    right = (average(fresh).argmax(1) == truth).float().mean()
print(f"new clips right: {right:.3f}")
