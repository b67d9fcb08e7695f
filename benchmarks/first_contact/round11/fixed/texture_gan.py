"""GAN for tileable textures: convolutional generator and critic, hinge loss, bf16."""
import functools

import torch
from torch import nn
import torch.nn.functional as F

SETTINGS = {
    "cuda": {"batch": 64, "noise": 128, "base": 128, "side": 64, "iterations": 130},
    "cpu": {"batch": 4, "noise": 8, "base": 8, "side": 16, "iterations": 4},
}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cudnn.benchmark = True
Conv = functools.partial(nn.Conv2d, kernel_size=3, padding=1, padding_mode="zeros")


class Generator(nn.Module):
    def __init__(self, noise, base, side):
        super().__init__()
        self.start = side // 4
        self.project = nn.Linear(noise, 2 * base * self.start ** 2)
        self.coarse = nn.ModuleList([Conv(2 * base, 2 * base), Conv(2 * base, 2 * base)])
        self.up1 = nn.ConvTranspose2d(2 * base, 2 * base, 4, stride=2, padding=1)
        self.middle = nn.ModuleList([Conv(2 * base, 2 * base), Conv(2 * base, base)])
        self.up2 = nn.ConvTranspose2d(base, base, 4, stride=2, padding=1)
        self.fine = nn.ModuleList([Conv(base, base), Conv(base, base)])
        self.colour = Conv(base, 3)

    def forward(self, z):
        x = self.project(z).view(len(z), self.start, self.start, -1).permute(0, 3, 1, 2)
        for layers in ([*self.coarse, self.up1], [*self.middle, self.up2], self.fine):
            for layer in layers:
                x = F.leaky_relu(layer(x), 0.2, inplace=True)
        return torch.tanh(self.colour(x))


class Critic(nn.Module):
    def __init__(self, base, side):
        super().__init__()
        self.layers = nn.ModuleList([
            Conv(3, base // 2), Conv(base // 2, base, stride=2), Conv(base, base),
            Conv(base, 2 * base, stride=2), Conv(2 * base, 2 * base),
        ])
        self.score = nn.Linear(2 * base, 8)

    def forward(self, image):
        for layer in self.layers:
            image = F.leaky_relu(layer(image), 0.2, inplace=True)
        return self.score(image.mean((2, 3)))


class Game:
    def __init__(self, s):
        self.s = s
        self.generator = Generator(s["noise"], s["base"], s["side"]).to(DEVICE)
        self.critic = Critic(s["base"], s["side"]).to(DEVICE)
        for net in (self.generator, self.critic):
            net.to(memory_format=torch.channels_last)
        adam = functools.partial(torch.optim.Adam, lr=2e-4, betas=(0.0, 0.9), fused=True)
        self.g_opt, self.c_opt = adam(self.generator.parameters()), adam(self.critic.parameters())
        photos = torch.rand(8, s["batch"], s["side"], s["side"], 3, device=DEVICE, dtype=torch.bfloat16)
        self.photos = photos.mul_(2).sub_(1).permute(0, 1, 4, 2, 3)

    def sample(self):
        z = torch.randn(self.s["batch"], self.s["noise"], device=DEVICE)
        return self.generator(z)

    def critic_turn(self, real):
        self.c_opt.zero_grad()
        with torch.autocast(DEVICE, torch.bfloat16):
            with torch.no_grad():
                fake = self.sample()
            loss = F.relu(1 - self.critic(real)).mean() + F.relu(1 + self.critic(fake)).mean()
        loss.backward()
        self.c_opt.step()
        return loss.detach()

    def generator_turn(self):
        self.g_opt.zero_grad()
        self.critic.requires_grad_(False)
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = -self.critic(self.sample()).mean()
        loss.backward()
        self.g_opt.step()
        self.critic.requires_grad_(True)
        return loss.detach()

    def play(self):
        scores = torch.zeros(self.s["iterations"], 2, device=DEVICE)
        for i in range(self.s["iterations"]):
            scores[i, 0] = self.critic_turn(self.photos[i % len(self.photos)])
            scores[i, 1] = self.generator_turn()
        return scores.cpu()


if __name__ == "__main__":
    torch.manual_seed(90)
    scores = Game(SETTINGS[DEVICE]).play()
    print("critic %.5f generator %.5f" % tuple(scores[-3:].mean(0).tolist()))
