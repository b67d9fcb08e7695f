"""GAN for 64 x 64 faces: hinge loss, two critic steps for each generator step, averaged generator."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import spectral_norm

torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("high")
gpu = torch.cuda.is_available()
device = torch.device("cuda" if gpu else "cpu")

nz = 128
width = 96 if gpu else 8
batch_size = 128 if gpu else 2
n_critic = 2
iterations = 120 if gpu else 2


class UpBlock(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.bn1, self.bn2 = nn.BatchNorm2d(cin), nn.BatchNorm2d(cout)
        self.conv1 = nn.Conv2d(cin, cout, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(cout, cout, 3, padding=1)
        self.skip = nn.Conv2d(cin, cout, 1)

    def forward(self, x):
        h = F.interpolate(F.relu(self.bn1(x)), scale_factor=2)
        h = self.conv2(F.relu(self.bn2(self.conv1(h)), inplace=True))
        return h + F.interpolate(self.skip(x), scale_factor=2)


class Generator(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.w = w
        self.fc = nn.Linear(nz, 8 * w * 16)
        self.blocks = nn.Sequential(UpBlock(8 * w, 8 * w), UpBlock(8 * w, 4 * w), UpBlock(4 * w, 2 * w), UpBlock(2 * w, w))
        self.bn = nn.BatchNorm2d(w)
        self.out = nn.Conv2d(w, 3, 3, padding=1)

    def forward(self, z):
        x = self.fc(z).view(-1, 8 * self.w, 4, 4).contiguous(memory_format=torch.channels_last)
        return torch.tanh(self.out(F.relu(self.bn(self.blocks(x)))))


class Critic(nn.Module):
    def __init__(self, w):
        super().__init__()
        layers, c = [], 3
        for cout in (w, 2 * w, 4 * w, 8 * w):
            layers += [spectral_norm(nn.Conv2d(c, cout, 4, 2, 1)), nn.LeakyReLU(0.2, inplace=True)]
            c = cout
        self.features = nn.Sequential(*layers)
        self.score = spectral_norm(nn.Linear(c, 1))

    def forward(self, x):
        return self.score(self.features(x).sum(dim=(2, 3))).squeeze(1)


torch.manual_seed(0)
netG = Generator(width).to(device, memory_format=torch.channels_last)
netD = Critic(width).to(device, memory_format=torch.channels_last)
netE = copy.deepcopy(netG).requires_grad_(False)
optG = torch.optim.Adam(netG.parameters(), lr=1e-4, betas=(0.0, 0.9), fused=True)
optD = torch.optim.Adam(netD.parameters(), lr=4e-4, betas=(0.0, 0.9), fused=True)
faces = torch.randint(0, 256, (4096 if gpu else 8, 3, 64, 64), dtype=torch.uint8, device=device)


def real_batch():
    pick = torch.randint(0, len(faces), (batch_size,), device=device)
    return faces[pick].to(torch.float32, memory_format=torch.channels_last).div_(127.5).sub_(1)


for it in range(iterations):
    for _ in range(n_critic):
        real = real_batch()
        z = torch.randn(batch_size, nz, device=device)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            with torch.no_grad():
                fake = netG(z)
            lossD = F.relu(1 - netD(real)).mean() + F.relu(1 + netD(fake)).mean()
        optD.zero_grad(set_to_none=True)
        lossD.backward()
        optD.step()

    netD.requires_grad_(False)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        lossG = -netD(netG(torch.randn(batch_size, nz, device=device))).mean()
    optG.zero_grad(set_to_none=True)
    lossG.backward()
    optG.step()
    netD.requires_grad_(True)
    torch._foreach_lerp_(list(netE.parameters()), list(netG.parameters()), 0.001)

    if it % 20 == 0:
        print(f"[{it}/{iterations}] D {lossD.item():.4f} G {lossG.item():.4f}")
