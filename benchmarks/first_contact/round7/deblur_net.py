import torch
from torch import nn
from torch.nn import functional as F

# Motion deblurring with simple gated blocks (no activation functions).


class LayerNorm2d(nn.Module):
    def __init__(self, channels, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.eps = eps

    def forward(self, x):
        mu = x.mean(1, keepdim=True)  # flaw: hand-written-norm
        var = (x - mu).pow(2).mean(1, keepdim=True)  # flaw: hand-written-norm
        y = (x - mu) / torch.sqrt(var + self.eps)  # flaw: hand-written-norm
        return self.weight.view(1, -1, 1, 1) * y + self.bias.view(1, -1, 1, 1)  # flaw: hand-written-norm


class GatedBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm1, self.norm2 = LayerNorm2d(c), LayerNorm2d(c)
        self.expand, self.shrink = nn.Conv2d(c, 2 * c, 3, padding=1), nn.Conv2d(c, c, 1)
        self.wide, self.narrow = nn.Conv2d(c, 2 * c, 1), nn.Conv2d(c, c, 1)

    def forward(self, x):
        a, b = self.expand(self.norm1(x)).chunk(2, dim=1)
        x = x + self.shrink(a * b)
        a, b = self.wide(self.norm2(x)).chunk(2, dim=1)
        return x + self.narrow(a * b)


class Deblur(nn.Module):
    def __init__(self, width, blocks):
        super().__init__()
        self.head = nn.Conv2d(3, width, 3, padding=1)
        self.level1 = nn.Sequential(*[GatedBlock(width) for _ in range(blocks)])
        self.down = nn.Conv2d(width, 2 * width, 2, 2)
        self.level2 = nn.Sequential(*[GatedBlock(2 * width) for _ in range(blocks)])
        self.up = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.tail = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x):
        a = self.level1(self.head(x))
        a = a + self.up(self.level2(self.down(a)))
        return x + self.tail(a)


def blur(sharp, taps=9):
    kernel = torch.full((3, 1, 1, taps), 1 / taps, device=sharp.device)
    return F.conv2d(F.pad(sharp, (taps // 2, taps // 2, 0, 0), mode="reflect"), kernel, groups=3)


def main():
    cuda = torch.cuda.is_available()
    device = "cuda" if cuda else "cpu"
    width, blocks, batch, size, steps = (64, 3, 16, 256, 100) if cuda else (8, 1, 2, 32, 3)
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    sharp = torch.rand(batch * 6, 3, size, size, device=device)
    blurred = blur(sharp)
    net = Deblur(width, blocks).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, betas=(0.9, 0.9), fused=True)
    for step in range(steps):
        i = torch.randint(0, len(sharp), (batch,), device=device)
        x = blurred[i].to(torch.bfloat16, memory_format=torch.channels_last)
        with torch.autocast(device, dtype=torch.bfloat16):
            restored = net(x)
        loss = F.l1_loss(restored.float(), sharp[i])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"{step} l1={loss.item():.4f}")


if __name__ == "__main__":
    main()
