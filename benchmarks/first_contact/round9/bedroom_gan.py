"""Convolutional GAN with a hinge loss; generator and discriminator take turns."""

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
FULL = device.type == "cuda"
LATENT, WIDTH, SIZE, BATCH, STEPS = (128, 64, 128, 256, 240) if FULL else (16, 8, 32, 4, 3)


def up(cin, cout):
    return [nn.ConvTranspose2d(cin, cout, 4, 2, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True)]


def down(cin, cout):
    return [nn.Conv2d(cin, cout, 4, 2, 1, bias=False), nn.BatchNorm2d(cout), nn.LeakyReLU(0.2, inplace=True)]


class Generator(nn.Module):
    def __init__(self, latent, width, size):
        super().__init__()
        n = (size // 8).bit_length() - 1
        widths = [width * min(8, 2 ** (n - i)) for i in range(n)]
        self.first = nn.Linear(latent, widths[0] * 16)
        layers = []
        for cin, cout in zip(widths, widths[1:] + [width]):
            layers += up(cin, cout)
        self.body = nn.Sequential(*layers, nn.ConvTranspose2d(width, 3, 4, 2, 1), nn.Tanh())

    def forward(self, z):
        x = self.first(z).view(len(z), 4, 4, -1).permute(0, 3, 1, 2)
        return self.body(x)


class Discriminator(nn.Module):
    def __init__(self, width, size):
        super().__init__()
        layers, c, s = [nn.Conv2d(3, width, 4, 2, 1), nn.LeakyReLU(0.2, inplace=True)], width, size // 2
        while s > 4:
            layers += down(c, min(2 * c, 8 * width))
            c, s = min(2 * c, 8 * width), s // 2
        self.body = nn.Sequential(*layers)
        self.score = nn.Linear(c, 1)

    def forward(self, x):
        return self.score(self.body(x).float().sum((2, 3)))


class Game:
    def __init__(self):
        self.g = self.prepare(Generator(LATENT, WIDTH, SIZE))
        self.d = self.prepare(Discriminator(WIDTH, SIZE))
        self.g_opt = torch.optim.Adam(self.g.parameters(), lr=2e-4, betas=(0.0, 0.9), fused=FULL)
        self.d_opt = torch.optim.Adam(self.d.parameters(), lr=4e-4, betas=(0.0, 0.9), fused=FULL)
        self.totals = torch.zeros(2, device=device)

    @staticmethod
    def prepare(net):
        for module in net.modules():
            if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
                nn.init.normal_(module.weight, 0.0, 0.02)
        return net.to(device, memory_format=torch.channels_last)

    def discriminator_turn(self, real):
        with torch.no_grad(), torch.autocast(device.type, dtype=torch.bfloat16):
            fake = self.g(torch.randn(len(real), LATENT, device=device))
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = F.relu(1 - self.d(real)).mean() + F.relu(1 + self.d(fake)).mean()
        self.d_opt.zero_grad()
        loss.backward()
        self.d_opt.step()
        return loss.detach()

    def generator_turn(self, count):
        self.d.requires_grad_(False)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = -self.d(self.g(torch.randn(count, LATENT, device=device))).mean()
        self.g_opt.zero_grad()
        loss.backward()
        self.g_opt.step()
        self.d.requires_grad_(True)
        return loss.detach()

    def play(self, photos, steps):
        for step in range(1, steps + 1):
            rows = torch.randint(0, len(photos), (BATCH,), device=device)
            real = photos[rows].to(torch.bfloat16).div_(127.5).sub_(1)
            self.totals[0] += self.discriminator_turn(real)
            self.totals[1] += self.generator_turn(BATCH)
            if step % 40 == 0:
                d, g = (self.totals / 40).tolist()
                print(f"{step}: d {d:.4f} g {g:.4f}")
                self.totals.zero_()


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    pool = torch.randint(0, 256, (1024 if FULL else 8, 3, SIZE, SIZE), dtype=torch.uint8, device=device)
    Game().play(pool.contiguous(memory_format=torch.channels_last), STEPS)
