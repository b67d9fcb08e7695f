import math
import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, dim, mult=4):
        super().__init__()
        self.fc1 = nn.Linear(dim, dim * mult)
        self.fc2 = nn.Linear(dim * mult, dim)

    @staticmethod
    def act(x):
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3))  # flaw: hand-written-activation
        return 0.5 * x * (1 + torch.tanh(inner))  # flaw: hand-written-activation

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


class MixerBlock(nn.Module):
    def __init__(self, dim, patches):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.tokens = FeedForward(patches, 2)
        self.channels = FeedForward(dim)

    def forward(self, x):
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self, dim=768, patches=256, depth=4, classes=256):
        super().__init__()
        self.embed = nn.Linear(16 * 16 * 3, dim)
        self.blocks = nn.Sequential(*[MixerBlock(dim, patches) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, patches):
        return self.head(self.norm(self.blocks(self.embed(patches))).mean(1))


def synthetic(device, batch):
    x = torch.randn(3, batch, 256, 768, device=device, dtype=torch.bfloat16)
    y = torch.randint(0, 256, (3, batch), device=device)
    i = 0
    while True:
        yield x[i % 3], y[i % 3]
        i += 1


def main(steps=400):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Mixer().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for i, (x, y) in enumerate(synthetic(device, batch=40)):
        if i == steps:
            break
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        if i % 100 == 0:
            print(i, float(loss))


if __name__ == "__main__":
    main()
