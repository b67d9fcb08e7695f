"""Contrastive pre-training on small photographs; colours are distorted on the device."""
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

TINY = os.environ.get("SMALL") == "1"
BATCH, SIDE, WIDTH, STEPS = (4, 16, 8, 30) if TINY else (256, 96, 48, 80)


def rand(n, low, high, device):
    return torch.empty(n, 1, 1, 1, device=device).uniform_(low, high)


def distort(x):  # flaw: unfused-elementwise
    n, dev = len(x), x.device
    x = x * rand(n, 0.6, 1.4, dev)
    grey = 0.299 * x[:, :1] + 0.587 * x[:, 1:2] + 0.114 * x[:, 2:]
    x = grey + (x - grey) * rand(n, 0.4, 1.6, dev)
    x = 0.5 + (x - 0.5) * rand(n, 0.6, 1.4, dev)
    x = x.clamp(1e-4, 1).pow(rand(n, 0.7, 1.4, dev))
    tint = torch.sin(x * 6.2832 + rand(n, 0, 6.2832, dev)) * 0.05
    x = x + tint
    x = torch.where(rand(n, 0, 1, dev) < 0.2, 1 - x, x)
    x = torch.where(rand(n, 0, 1, dev) < 0.2, grey.clamp(0, 1).expand_as(x), x)
    x = x + 0.02 * torch.randn_like(x)
    return (x.clamp(0, 1) - 0.45) / 0.26


class Res(nn.Module):
    def __init__(self, i, o, s):
        super().__init__()
        self.f = nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
                               nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o))
        self.g = nn.Conv2d(i, o, 1, s, bias=False)

    def forward(self, x):
        return F.relu(self.f(x) + self.g(x), inplace=True)


def encoder(w):
    return nn.Sequential(nn.Conv2d(3, w, 3, 2, 1, bias=False), nn.BatchNorm2d(w), nn.ReLU(inplace=True),
                         Res(w, w, 1), Res(w, 2 * w, 2), Res(2 * w, 4 * w, 2), Res(4 * w, 8 * w, 2),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(8 * w, 8 * w), nn.ReLU(inplace=True), nn.Linear(8 * w, 128))


def nt_xent(a, b, tau=0.2):
    z = F.normalize(torch.cat((a, b)), dim=1)
    n = len(a)
    sim = (z @ z.t()).float() / tau
    sim.fill_diagonal_(-1e9)
    return F.cross_entropy(sim, torch.arange(2 * n, device=z.device).roll(n))


def main():
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    photos = torch.randint(0, 256, (BATCH * 4, 3, SIDE, SIDE), dtype=torch.uint8, device=device)
    photos = photos.to(memory_format=torch.channels_last)
    net = encoder(WIDTH).to(device, memory_format=torch.channels_last)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, fused=device.type == "cuda")
    for step in range(STEPS):
        base = photos[step % 4 * BATCH:][:BATCH].float().div_(255)
        with torch.no_grad():
            views = torch.cat((distort(base), distort(base.flip(-1))))
        with torch.autocast(device.type, torch.bfloat16):
            a, b = net(views).chunk(2)
            loss = nt_xent(a, b)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
