"""PoolFormer image classifier with a small model registry."""

import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

_MODELS = {}


def register_model(fn):
    _MODELS[fn.__name__] = fn
    return fn


def create_model(name, **kwargs):
    return _MODELS[name](**kwargs)


class LayerNorm2d(nn.Module):
    """LayerNorm over the channels of an image."""

    def __init__(self, channels, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.eps = eps

    def forward(self, x):
        x = F.layer_norm(x.permute(0, 2, 3, 1), self.weight.shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class Pooling(nn.Module):
    def __init__(self, size=3):
        super().__init__()
        self.pool = nn.AvgPool2d(size, stride=1, padding=size // 2, count_include_pad=False)

    def forward(self, x):
        return self.pool(x) - x


class PoolFormerBlock(nn.Module):
    def __init__(self, dim, ratio=4):
        super().__init__()
        self.norm1, self.norm2 = LayerNorm2d(dim), LayerNorm2d(dim)
        self.mixer = Pooling()
        self.fc1 = nn.Conv2d(dim, ratio * dim, 1)
        self.fc2 = nn.Conv2d(ratio * dim, dim, 1)

    def forward(self, x):
        x = x + self.mixer(self.norm1(x))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class PoolFormer(nn.Module):
    def __init__(self, dims, depths, num_classes):
        super().__init__()
        stages, cin = [], 3
        for i, (dim, depth) in enumerate(zip(dims, depths)):
            stages.append(nn.Conv2d(cin, dim, 4 if i == 0 else 2, stride=4 if i == 0 else 2))
            stages += [PoolFormerBlock(dim) for _ in range(depth)]
            cin = dim
        self.stages = nn.Sequential(*stages)
        self.norm = nn.LayerNorm(cin)
        self.head = nn.Linear(cin, num_classes)

    def forward(self, x):
        x = self.stages(x)
        return self.head(self.norm(x.mean(dim=(2, 3))))


@register_model
def poolformer_s(num_classes=1000):
    return PoolFormer((128, 256, 384), (3, 4, 5), num_classes)


@register_model
def poolformer_nano(num_classes=10):
    return PoolFormer((8, 16), (1, 1), num_classes)


def main(name, size, batch, steps, device):
    torch.manual_seed(0)
    model = create_model(name).to(device, memory_format=torch.channels_last)
    classes = model.head.out_features
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05, fused=True)
    images = torch.randint(0, 256, (8 * batch, 3, size, size), dtype=torch.uint8, device=device)
    labels = torch.randint(0, classes, (8 * batch,), device=device)
    for step in range(steps):
        pick = torch.randint(0, len(images), (batch,), device=device)
        x = images[pick].to(torch.bfloat16, memory_format=torch.channels_last).sub_(120).div_(60)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), labels[pick], label_smoothing=0.1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(f"{name} step {step}: {loss.item():.4f}", file=sys.stderr)


if __name__ == "__main__":
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    if torch.cuda.is_available():
        main("poolformer_s", 224, 96, 120, "cuda")
    else:
        main("poolformer_nano", 32, 2, 3, "cpu")
