import torch
import torch.nn as nn
import torch.nn.functional as F


class ResBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)

    def forward(self, x):
        return x + self.b(F.relu(self.a(x), inplace=True))


class EDSR(nn.Module):
    def __init__(self, c=128, n=8, scale=2):
        super().__init__()
        self.head = nn.Conv2d(3, c, 3, padding=1)
        self.body = nn.Sequential(*[ResBlock(c) for _ in range(n)])
        self.tail = nn.Sequential(nn.Conv2d(c, 3 * scale * scale, 3, padding=1), nn.PixelShuffle(scale))

    def forward(self, x):
        x = self.head(x)
        return self.tail(x + self.body(x))


def main():
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = EDSR().to(device, memory_format=torch.channels_last)
    opt = torch.optim.Adam(net.parameters(), lr=1e-4, betas=(0.9, 0.99), fused=True)
    batch = 48
    high = torch.rand(batch * 2, 3, 128, 128, device=device).to(memory_format=torch.channels_last)
    low = F.interpolate(high, scale_factor=0.5, mode="area").contiguous(memory_format=torch.channels_last)
    for step in range(400):
        s = slice((step % 2) * batch, (step % 2 + 1) * batch)
        out = net(low[s])  # flaw: none-yet(conv-without-autocast)
        loss = F.l1_loss(out, high[s])  # flaw: none-yet(conv-without-autocast)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(f"step {step:4d}  l1 {loss.item():.4f}")


if __name__ == "__main__":
    main()
