import os

import torch
import torch.nn as nn
import torch.nn.functional as F

CONFIG = {
    "latent": 128,
    "width": 64,
    "batch": 128,
    "steps": 70,
    "levels": 4,
    "layout": torch.channels_last,
    "adam": {"lr": 2e-4, "betas": (0.5, 0.99), "fused": True},
}
if os.environ.get("SMALL"):
    CONFIG |= {"latent": 8, "width": 4, "batch": 2, "steps": 30, "levels": 2}

gpu = torch.cuda.is_available()
dev = torch.device("cuda" if gpu else "cpu")


def up(i, o):
    return nn.Sequential(nn.ConvTranspose2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(True))


def down(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 4, 2, 1), nn.LeakyReLU(0.2, True), nn.Conv2d(o, o, 3, 1, 1), nn.LeakyReLU(0.2, True))


def make_generator(c):
    w = [c["width"] << k for k in range(c["levels"])][::-1]
    first = [nn.ConvTranspose2d(c["latent"], w[0], 8, bias=False), nn.BatchNorm2d(w[0]), nn.ReLU(True)]
    return nn.Sequential(*first, *[up(i, o) for i, o in zip(w, w[1:])], nn.Conv2d(w[-1], 8, 3, 1, 1), nn.Tanh())


def make_critic(c):
    w = [c["width"] << k for k in range(c["levels"])]
    return nn.Sequential(nn.Conv2d(8, w[0], 3, 1, 1), nn.LeakyReLU(0.2, True), *[down(i, o) for i, o in zip(w, w[1:])], nn.Conv2d(w[-1], 1, 8))


class Duel:
    def __init__(self, c):
        self.c = c
        self.nets = [self.place(make_generator(c)), self.place(make_critic(c))]
        self.opts = [torch.optim.Adam(n.parameters(), **c["adam"]) for n in self.nets]

    def place(self, thing):
        return thing.to(dev, memory_format=self.c["layout"])

    def noise(self):
        return self.place(torch.randn(self.c["batch"], self.c["latent"], 1, 1, device=dev))

    def critic_turn(self, real, fake):
        _, critic = self.nets
        with torch.autocast(dev.type, torch.bfloat16):
            loss = F.softplus(-critic(real)).mean() + F.softplus(critic(fake)).mean()
        return self.turn(1, loss)

    def generator_turn(self, fake):
        critic = self.nets[1].requires_grad_(False)
        with torch.autocast(dev.type, torch.bfloat16):
            loss = F.softplus(-critic(fake)).mean()
        loss = self.turn(0, loss)
        critic.requires_grad_(True)
        return loss

    def turn(self, who, loss):
        self.opts[who].zero_grad()
        loss.backward()
        self.opts[who].step()
        return loss.detach()

    def round(self, real):
        with torch.autocast(dev.type, torch.bfloat16):
            fake = self.nets[0](self.noise())
        return torch.stack([self.critic_turn(self.place(real), fake.detach()), self.generator_turn(fake)])


torch.manual_seed(0)
torch.backends.cudnn.benchmark = True
duel = Duel(CONFIG)
side = 8 << (CONFIG["levels"] - 1)
album = [torch.randn(CONFIG["batch"], 8, side, side, device=dev).clamp_(-1, 1) for _ in range(4)]
sums = torch.zeros(2, device=dev)
for n in range(CONFIG["steps"]):
    sums += duel.round(album[n % 4])
print("critic %.3f generator %.3f" % tuple((sums / CONFIG["steps"]).tolist()))
