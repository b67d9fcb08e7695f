"""Two networks in turn: three steps of the critic for one of the generator."""

import time

import torch
from torch import nn

generator, critic = nn.Linear(8, 16), nn.Linear(16, 1)
of_generator = torch.optim.Adam(generator.parameters(), lr=1e-4)
of_critic = torch.optim.Adam(critic.parameters(), lr=1e-4)


def critic_step(real):
    fake = generator(torch.randn(8, 8)).detach()
    loss = critic(fake).mean() - critic(real).mean()
    time.sleep(0.003)  # = 9
    of_critic.zero_grad()
    loss.backward()
    of_critic.step()


def generator_step():
    loss = -critic(generator(torch.randn(8, 8))).mean()
    time.sleep(0.006)  # = 6
    of_generator.zero_grad()
    loss.backward()
    of_generator.step()


for at in range(1, 1000000):
    time.sleep(0.001)  # = 3
    critic_step(torch.randn(8, 16))
    if at % 3 == 0:
        generator_step()
