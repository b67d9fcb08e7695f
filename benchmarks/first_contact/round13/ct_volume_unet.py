"""3-D U-Net on synthetic CT volumes with planted nodules."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

TINY = os.environ.get("TINY") == "1"


class BaseConfig:
    seed = 19
    deterministic = False
    cudnn_autotune = False  # flaw: untuned-convolution
    lr = 1e-3
    side = 96
    batch = 8
    widths = (32, 64, 128)
    steps = 90


class SmokeConfig(BaseConfig):
    side, batch, widths, steps = 16, 1, (8, 16), 4


def conv_unit(cin, cout, k=3, stride=1):
    return nn.Sequential(nn.Conv3d(cin, cout, k, stride=stride, padding=k // 2, bias=False),
                         nn.BatchNorm3d(cout), nn.ReLU(inplace=True))


class UNet3d(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.stem = conv_unit(8, widths[0], k=5)
        self.down = nn.ModuleList(nn.Sequential(conv_unit(a, b, stride=2), conv_unit(b, b)) for a, b in zip(widths, widths[1:]))
        self.up = nn.ModuleList(nn.ConvTranspose3d(b, a, 2, stride=2) for a, b in zip(widths, widths[1:]))
        self.merge = nn.ModuleList(conv_unit(2 * a, a) for a in widths[:-1])
        self.head = nn.Conv3d(widths[0], 8, 1)

    def forward(self, x):
        skips = [self.stem(x)]
        for stage in self.down:
            skips.append(stage(skips[-1]))
        y = skips.pop()
        for up, merge in zip(reversed(self.up), reversed(self.merge)):
            y = merge(torch.cat((up(y), skips.pop()), 1))
        return self.head(y)


class Volumes:
    """Eight filter responses per voxel; labels are nodules found by a threshold of two of them."""

    def __init__(self, c, device):
        g = torch.Generator(device).manual_seed(c.seed)
        shape = (2 * c.batch, 8, c.side, c.side, c.side)
        raw = torch.randn(shape, generator=g, device=device)
        self.x = raw.to(memory_format=torch.channels_last_3d)
        self.y = (raw[:, 0] > 0.5).long() + (raw[:, 1] > 1.0).long()
        self.batch = c.batch

    def batch_at(self, step):
        half = slice(0, self.batch) if step % 2 == 0 else slice(self.batch, None)
        return self.x[half], self.y[half]


class Trainer:
    def __init__(self, config):
        self.c = config
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.amp = self.device.type == "cuda"
        torch.manual_seed(config.seed)
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.benchmark = config.cudnn_autotune  # flaw: untuned-convolution
        torch.backends.cudnn.deterministic = config.deterministic
        self.net = UNet3d(config.widths).to(self.device, memory_format=torch.channels_last_3d)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=config.lr, momentum=0.9, nesterov=True, fused=self.amp)
        self.data = Volumes(config, self.device)

    def update(self, x, y):
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.amp):
            loss = F.cross_entropy(self.net(x), y)
        loss.backward()
        self.opt.step()
        self.opt.zero_grad(set_to_none=True)
        return loss.detach()

    def fit(self):
        losses = [self.update(*self.data.batch_at(s)) for s in range(self.c.steps)]
        return torch.stack(losses)


if __name__ == "__main__":
    curve = Trainer(SmokeConfig if TINY else BaseConfig).fit().tolist()
    print(f"{curve[0]:.4f} -> {curve[-1]:.4f}")
