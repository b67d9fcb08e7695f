"""A vocoder that turns features into sound, with periodic units."""
import torch
from torch import nn


def ripple(x, alpha, beta):  # flaw: unfused-elementwise
    wave = torch.sin(alpha * x) ** 2  # flaw: unfused-elementwise
    lift = torch.cos(beta * x) * torch.tanh(x)  # flaw: unfused-elementwise
    return x + wave / (alpha + 1e-9) + 0.1 * lift - 0.05 * x.abs()  # flaw: unfused-elementwise


class Unit(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv = nn.Conv1d(c, c, 5, padding=2)
        self.alpha = nn.Parameter(torch.ones(c, 1))
        self.beta = nn.Parameter(torch.ones(c, 1))

    def forward(self, x):
        return x + self.conv(ripple(x, self.alpha, self.beta))


class Vocoder(nn.Module):
    def __init__(self, mels=80, c=256):
        super().__init__()
        self.pre = nn.Conv1d(mels, c, 7, padding=3)
        self.grow = nn.ConvTranspose1d(c, c, 8, 4, 2)
        self.units = nn.Sequential(*[Unit(c) for _ in range(5)])
        self.post = nn.Conv1d(c, 1, 7, padding=3)

    def forward(self, m):
        return self.post(self.units(self.grow(self.pre(m))))


if __name__ == "__main__":
    torch.backends.cudnn.benchmark = True
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = Vocoder().to(device)
    optimizer = torch.optim.AdamW(net.parameters(), 2e-4, betas=(0.8, 0.99), fused=True)
    mels, sound = torch.randn(16, 80, 1024, device=device), torch.randn(16, 1, 4096, device=device)
    for _ in range(300):
        with torch.autocast(device, torch.bfloat16):
            out = net(mels)
        loss = nn.functional.l1_loss(out.float(), sound)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
