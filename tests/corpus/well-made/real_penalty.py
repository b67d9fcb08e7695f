# corpus: run, may launch-bound small-batch gc-pause-in-step unfused-elementwise hand-written-loss per-tensor-optimizer
"""A critic with a penalty on its gradients, and a generator that makes a step in every second round."""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(32, 384), nn.ReLU(), nn.Linear(384, 384), nn.ReLU(), nn.Linear(384, 128))
critic = nn.Sequential(nn.Linear(128, 384), nn.ReLU(), nn.Linear(384, 384), nn.ReLU(), nn.Linear(384, 1))
generator_optimizer = torch.optim.SGD(generator.parameters(), lr=1e-3)
critic_optimizer = torch.optim.SGD(critic.parameters(), lr=1e-3)
photos = torch.rand(64, 128)


def penalty(fake):
    part = torch.rand(len(photos), 1)
    between = (part * photos + (1 - part) * fake).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return (slope.norm(dim=1) - 1).square().mean()


for step in range(1500):
    with torch.no_grad():
        fake = generator(torch.randn(64, 32))
    loss = critic(fake).mean() - critic(photos).mean() + 10 * penalty(fake)
    critic_optimizer.zero_grad()
    loss.backward()
    critic_optimizer.step()
    if step % 2:
        critic.requires_grad_(False)
        score = critic(generator(torch.randn(64, 32))).mean()
        generator_optimizer.zero_grad()
        (-score).backward()
        generator_optimizer.step()
        critic.requires_grad_(True)
print(f"{loss.item():.6f}")
