"""Adversarial training of 128-pixel portraits from a bank of images."""
import os
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"


class Portraits(Dataset):
    def __init__(self, count, side):
        self.bank = torch.rand(64, 3, side, side) * 2 - 1
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return self.bank[i % 64]


def generator(z, c):
    layers, cin = [nn.ConvTranspose2d(z, 4 * c, 4, bias=False), nn.BatchNorm2d(4 * c), nn.ReLU(True)], 4 * c
    for cout in (2 * c, c) if SMALL else (4 * c, 2 * c, 2 * c, c):
        layers += [nn.ConvTranspose2d(cin, cout, 4, 2, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(True)]
        cin = cout
    return nn.Sequential(*layers, nn.ConvTranspose2d(cin, 3, 4, 2, 1), nn.Tanh())


def critic(c):
    layers, cin = [], 3
    for cout in (c, 2 * c) if SMALL else (c, c, 2 * c, 4 * c):
        layers += [nn.Conv2d(cin, cout, 4, 2, 1), nn.LeakyReLU(0.2, True)]
        cin = cout
    return nn.Sequential(*layers, nn.Conv2d(cin, 1, 4), nn.Flatten(1))


def main():
    z, c, side, batch, steps = (8, 4, 32, 4, 30) if SMALL else (128, 32, 128, 256, 80)
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    G = generator(z, c).to(dev, memory_format=torch.channels_last)
    D = critic(c).to(dev, memory_format=torch.channels_last)
    og = torch.optim.Adam(G.parameters(), 2e-4, (0.5, 0.999), fused=True)
    od = torch.optim.Adam(D.parameters(), 2e-4, (0.5, 0.999), fused=True)
    workers = 2 if SMALL else 6
    loader = DataLoader(Portraits(batch * steps, side), batch, num_workers=workers, pin_memory=True, persistent_workers=True)
    log = []
    for real in loader:
        real = real.to(dev)  # flaw: blocking-host-copy
        real = real.contiguous(memory_format=torch.channels_last)
        noise = torch.randn(batch, z, 1, 1, device=dev)
        with torch.autocast(dev.type, dtype=torch.bfloat16):
            fake = G(noise)
            dloss = F.softplus(-D(real)).mean() + F.softplus(D(fake.detach())).mean()
        od.zero_grad()
        dloss.backward()
        od.step()
        D.requires_grad_(False)
        with torch.autocast(dev.type, dtype=torch.bfloat16):
            gloss = F.softplus(-D(fake)).mean()
        og.zero_grad()
        gloss.backward()
        og.step()
        D.requires_grad_(True)
        log.append(torch.stack((dloss.detach(), gloss.detach())))
    print(torch.stack(log[-20:]).mean(0).tolist())


if __name__ == "__main__":
    main()
