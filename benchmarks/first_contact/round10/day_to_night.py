"""Unpaired translation of street scenes, day to night and back: two generators, two critics."""
import itertools

import torch
from torch import nn
from torch.nn import functional as F


class ResBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c1, self.n1 = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c)
        self.c2, self.n2 = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c)

    def forward(self, x):
        return x + self.n2(self.c2(F.relu(self.n1(self.c1(x)), inplace=True)))


def make_generator(w, blocks):
    return nn.Sequential(
        nn.Conv2d(3, w, 7, padding=3),
        nn.ReLU(True),
        nn.Conv2d(w, 2 * w, 4, 2, 1),
        nn.ReLU(True),
        nn.Conv2d(2 * w, 4 * w, 4, 2, 1),
        nn.ReLU(True),
        *[ResBlock(4 * w) for _ in range(blocks)],
        nn.ConvTranspose2d(4 * w, 2 * w, 4, 2, 1),
        nn.ReLU(True),
        nn.ConvTranspose2d(2 * w, w, 4, 2, 1),
        nn.ReLU(True),
        nn.Conv2d(w, 3, 7, padding=3),
        nn.Tanh(),
    )


def make_critic(w):
    return nn.Sequential(
        nn.Conv2d(3, w, 4, 2, 1),
        nn.LeakyReLU(0.2, True),
        nn.Conv2d(w, 2 * w, 4, 2, 1),
        nn.LeakyReLU(0.2, True),
        nn.Conv2d(2 * w, 4 * w, 4, 2, 1),
        nn.LeakyReLU(0.2, True),
        nn.Conv2d(4 * w, 1, 3, padding=1),
    )


class CycleTrainer:
    def __init__(self, w, blocks, device):
        self.device = device
        place = dict(device=device, memory_format=torch.channels_last)
        self.to_night, self.to_day = (make_generator(w, blocks).to(**place) for _ in range(2))
        self.critic_night, self.critic_day = (make_critic(w).to(**place) for _ in range(2))
        fused = device.type == "cuda"
        generators = itertools.chain(self.to_night.parameters(), self.to_day.parameters())
        critics = itertools.chain(self.critic_night.parameters(), self.critic_day.parameters())
        self.opt_g = torch.optim.Adam(generators, 2e-4, betas=(0.5, 0.999), fused=fused)
        self.opt_c = torch.optim.Adam(critics, 2e-4, betas=(0.5, 0.999), fused=fused)

    def autocast(self):
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def step(self, day, night):
        self.critic_night.requires_grad_(False)
        self.critic_day.requires_grad_(False)
        with self.autocast():
            fake_night, fake_day = self.to_night(day), self.to_day(night)
            adversarial = -self.critic_night(fake_night).mean() - self.critic_day(fake_day).mean()
            cycle = F.l1_loss(self.to_day(fake_night), day) + F.l1_loss(self.to_night(fake_day), night)
            loss_g = adversarial + 10 * cycle
        self.opt_g.zero_grad(set_to_none=True)
        loss_g.backward()
        self.opt_g.step()

        self.critic_night.requires_grad_(True)
        self.critic_day.requires_grad_(True)
        with self.autocast():
            loss_c = self.hinge(self.critic_night, night, fake_night.detach())
            loss_c = loss_c + self.hinge(self.critic_day, day, fake_day.detach())
        self.opt_c.zero_grad(set_to_none=True)
        loss_c.backward()
        self.opt_c.step()
        return loss_g.detach(), loss_c.detach()

    @staticmethod
    def hinge(critic, real, fake):
        return F.relu(1 - critic(real)).mean() + F.relu(1 + critic(fake)).mean()


def main():
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    w, blocks, batch, side, steps = (64, 6, 12, 160, 120) if cuda else (4, 1, 1, 32, 2)
    trainer = CycleTrainer(w, blocks, device)
    scenes = torch.rand(2, 4, batch, 3, side, side, device=device) * 2 - 1
    scenes[1] = scenes[1] * 0.4 - 0.5
    for step in range(steps):
        day, night = (s[step % 4].contiguous(memory_format=torch.channels_last) for s in scenes)
        loss_g, loss_c = trainer.step(day, night)
        if step % 40 == 0:
            print(f"{step} generators {loss_g.item():.3f} critics {loss_c.item():.3f}")


if __name__ == "__main__":
    main()
