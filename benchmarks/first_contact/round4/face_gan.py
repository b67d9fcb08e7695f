import os
import torch
from torch import nn
import torch.nn.functional as F

lite = os.environ.get("SMALL") is not None
Z, WIDTH, BATCH, ROUNDS = (16, 1, 2, 30) if lite else (128, 32, 128, 70)
SIDE = 64
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.backends.cudnn.benchmark = True


class Up(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.a = nn.Conv2d(i, o, 3, padding=1, bias=False)
        self.na = nn.BatchNorm2d(o)
        self.b = nn.Conv2d(o, o, 3, padding=1, bias=False)
        self.nb = nn.BatchNorm2d(o)
        self.s = nn.Conv2d(i, o, 1, bias=False)

    def forward(self, x):
        x = F.interpolate(x, scale_factor=2)
        h = F.relu(self.na(self.a(x)), inplace=True)
        return F.relu(self.nb(self.b(h)) + self.s(x), inplace=True)


class Down(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.a = nn.Conv2d(i, o, 3, padding=1)
        self.b = nn.Conv2d(o, o, 3, padding=1)
        self.s = nn.Conv2d(i, o, 1)

    def forward(self, x):
        h = self.b(F.leaky_relu(self.a(F.leaky_relu(x, 0.2)), 0.2))
        return F.avg_pool2d(h + self.s(x), 2)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(Z, 16 * WIDTH * 16)
        self.net = nn.Sequential(Up(16 * WIDTH, 16 * WIDTH), Up(16 * WIDTH, 8 * WIDTH), Up(8 * WIDTH, 4 * WIDTH),
                                 Up(4 * WIDTH, 2 * WIDTH), nn.Conv2d(2 * WIDTH, 3, 3, padding=1), nn.Tanh())

    def forward(self, z):
        h = self.fc(z).view(-1, 16 * WIDTH, 4, 4)
        return self.net(h.contiguous(memory_format=torch.channels_last))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 2 * WIDTH, 3, padding=1), Down(2 * WIDTH, 4 * WIDTH), Down(4 * WIDTH, 8 * WIDTH),
                                 Down(8 * WIDTH, 16 * WIDTH), Down(16 * WIDTH, 16 * WIDTH), nn.Flatten(), nn.Linear(256 * WIDTH, 1))

    def forward(self, x):
        return self.net(x).float()


gen = Generator().to(device, memory_format=torch.channels_last)
critic = Critic().to(device, memory_format=torch.channels_last)
opt_g = torch.optim.Adam(gen.parameters(), lr=1e-4, betas=(0.0, 0.9), foreach=False)  # flaw: per-tensor-optimizer
opt_c = torch.optim.Adam(critic.parameters(), lr=4e-4, betas=(0.0, 0.9), foreach=False)  # flaw: per-tensor-optimizer
faces = torch.rand(BATCH * 8, 3, SIDE, SIDE, device=device).mul_(2).sub_(1).to(memory_format=torch.channels_last)
amp = lambda: torch.autocast(device.type, torch.bfloat16)

for r in range(ROUNDS):
    real = faces[torch.randint(len(faces), (BATCH,), device=device)]
    with amp(), torch.no_grad():
        fake = gen(torch.randn(BATCH, Z, device=device))
    with amp():
        loss_c = F.relu(1 - critic(real)).mean() + F.relu(1 + critic(fake)).mean()
    opt_c.zero_grad()
    loss_c.backward()
    opt_c.step()

    critic.requires_grad_(False)
    with amp():
        loss_g = -critic(gen(torch.randn(BATCH, Z, device=device))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    critic.requires_grad_(True)
    if r % 25 == 0:
        print(f"{r:4d}  critic {loss_c.item():.3f}  gen {loss_g.item():.3f}")
