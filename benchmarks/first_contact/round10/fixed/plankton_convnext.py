"""ConvNeXt on plankton pictures."""
import torch
import torch.nn as nn
import torch.nn.functional as F

USE_CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if USE_CUDA else "cpu")


class LayerNorm2d(nn.Module):
    """Layer norm over the channels of (N, C, H, W)."""

    def __init__(self, channels, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.eps = eps

    def forward(self, x):
        x = F.layer_norm(x.permute(0, 2, 3, 1), self.weight.shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.mix = nn.Conv2d(dim, dim, 3, padding=1, groups=max(dim // 32, 1))
        self.norm = LayerNorm2d(dim)
        self.pw1 = nn.Conv2d(dim, 4 * dim, 1)
        self.pw2 = nn.Conv2d(4 * dim, dim, 1)
        self.gamma = nn.Parameter(1e-2 * torch.ones(dim, 1, 1))

    def forward(self, x):
        return x + self.gamma * self.pw2(F.gelu(self.pw1(self.norm(self.mix(x)))))


class ConvNeXt(nn.Module):
    def __init__(self, dims, depths, classes):
        super().__init__()
        layers = [nn.Conv2d(3, dims[0], 4, 4), LayerNorm2d(dims[0])]
        for i, (dim, depth) in enumerate(zip(dims, depths)):
            if i:
                layers += [LayerNorm2d(dims[i - 1]), nn.Conv2d(dims[i - 1], dim, 2, 2)]
            layers += [Block(dim) for _ in range(depth)]
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(dims[-1], classes)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


class Mixup:
    def __init__(self, alpha, classes):
        self.beta = torch.distributions.Beta(alpha, alpha)
        self.classes = classes

    def __call__(self, x, y):
        lam = self.beta.sample().item()
        order = torch.randperm(len(x), device=x.device)
        target = F.one_hot(y, self.classes).to(x.dtype)
        return torch.lerp(x[order], x, lam), torch.lerp(target[order], target, lam)


def train():
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    if USE_CUDA:
        dims, depths, batch, side, steps = (96, 192, 384), (2, 2, 4), 96, 192, 120
    else:
        dims, depths, batch, side, steps = (8, 16), (1, 1), 2, 32, 3
    model = ConvNeXt(dims, depths, 121).to(DEVICE, memory_format=torch.channels_last)
    ema_loss = torch.zeros((), device=DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05, fused=USE_CUDA)
    mixup = Mixup(0.4, 121)
    pictures = torch.randint(0, 256, (4 * batch, 3, side, side), dtype=torch.uint8, device=DEVICE)
    species = torch.randint(0, 121, (4 * batch,), device=DEVICE)
    for step in range(steps):
        pick = torch.randint(len(pictures), (batch,), device=DEVICE)
        x, y = mixup(pictures[pick].float() / 255 - 0.5, species[pick])
        x = x.contiguous(memory_format=torch.channels_last)
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        ema_loss.lerp_(loss.detach(), 0.05)
        if step % 60 == 0:
            print(f"{step} {ema_loss.item():.4f}")


if __name__ == "__main__":
    train()
