"""Double DQN on stacked frames with a residual network; the replay memory lives on the device."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
DTYPE = torch.bfloat16 if CUDA else torch.float32
STACK, SIDE, ACTIONS = 8, (64 if CUDA else 16), 16
CAPACITY = 60_000 if CUDA else 64
BATCH = 1024 if CUDA else 8
UPDATES = 400 if CUDA else 6
CHANNELS = (64, 128, 128) if CUDA else (8, 8, 8)
GAMMA, TAU = 0.99, 0.005


class Replay:
    """Frame stacks as bytes, channels last, with the stack of the next step right after."""

    def __init__(self):
        shape = (CAPACITY, SIDE, SIDE, STACK)
        self.frames = torch.randint(0, 256, shape, dtype=torch.uint8, device=DEVICE)
        self.action = torch.randint(0, ACTIONS, (CAPACITY,), device=DEVICE)
        self.reward = torch.randn(CAPACITY, device=DEVICE).sign_()
        self.live = (torch.rand(CAPACITY, device=DEVICE) > 0.01).float()

    def images(self, index):
        return self.frames[index].to(DTYPE).mul_(1 / 255).permute(0, 3, 1, 2)

    def sample(self, n):
        index = torch.randint(0, CAPACITY - 1, (n,), device=DEVICE)
        return (
            self.images(index),
            self.action[index],
            self.reward[index],
            self.live[index],
            self.images(index + 1),
        )


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)

    def forward(self, x):
        return x + self.conv2(F.relu(self.conv1(x), inplace=True))


class QNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        stages, before = [], STACK
        for channels in CHANNELS:
            stages += [
                nn.Conv2d(before, channels, 3, stride=2, padding=1, bias=False),
                nn.ReLU(inplace=True),
                Residual(channels),
                nn.ReLU(inplace=True),
            ]
            before = channels
        self.body = nn.Sequential(*stages)
        flat = before * (SIDE // 8) ** 2
        self.head = nn.Sequential(
            nn.Linear(flat, 512), nn.ReLU(inplace=True), nn.Linear(512, ACTIONS)
        )

    def forward(self, x):
        return self.head(self.body(x).flatten(1)).float()


class Learner:
    def __init__(self):
        self.online = QNetwork().to(DEVICE, memory_format=torch.channels_last)
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=1e-4, fused=CUDA)
        self.pairs = list(self.target.parameters()), list(self.online.parameters())

    def update(self, obs, action, reward, live, next_obs):
        with torch.no_grad(), torch.autocast(DEVICE.type, dtype=torch.bfloat16, enabled=CUDA):
            best = self.online(next_obs).argmax(1, keepdim=True)
            bootstrap = self.target(next_obs).gather(1, best).squeeze(1)
        backup = reward + GAMMA * live * bootstrap
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16, enabled=CUDA):
            q = self.online(obs).gather(1, action[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(q, backup)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            torch._foreach_lerp_(*self.pairs, TAU)
        return loss.detach()


def main():
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    replay, learner = Replay(), Learner()
    losses = torch.zeros(UPDATES, device=DEVICE)
    for update in range(UPDATES):
        losses[update] = learner.update(*replay.sample(BATCH))
    first, last = losses.view(2, -1).mean(1).tolist()
    print(f"mean TD loss: first half {first:.5f}, second half {last:.5f}")


if __name__ == "__main__":
    main()
