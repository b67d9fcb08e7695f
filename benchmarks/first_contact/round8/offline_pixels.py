"""Offline Q-learning (CQL) on logged Atari frames with an IMPALA encoder."""

import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("high")
cuda = torch.cuda.is_available()
device = torch.device("cuda" if cuda else "cpu")

FRAMES = 40_000 if cuda else 400
BATCH = 1024 if cuda else 4
UPDATES = 240 if cuda else 6
ACTIONS, STACK, GAMMA, TAU = 18, 4, 0.99, 0.005


class LoggedFrames(Dataset):
    """Single frames; a transition is a window of STACK + 1 of them."""

    def __init__(self, frames, seed=0):
        rng = np.random.default_rng(seed)
        self.frames = rng.integers(0, 256, (frames, 84, 84), dtype=np.uint8)
        self.actions = rng.integers(0, ACTIONS, frames)
        self.rewards = rng.choice([-1.0, 0.0, 1.0], frames, p=[0.1, 0.8, 0.1]).astype(np.float32)
        self.window = np.arange(STACK + 1)

    def __len__(self):
        return len(self.frames) - STACK

    def __getitem__(self, rows):
        rows = np.asarray(rows)
        frames = self.frames[rows[:, None] + self.window]
        now = rows + STACK - 1
        return (
            torch.from_numpy(frames),
            torch.from_numpy(self.actions[now]),
            torch.from_numpy(self.rewards[now]),
        )


class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv1 = nn.Conv2d(c, c, 3, padding=1)
        self.conv2 = nn.Conv2d(c, c, 3, padding=1)

    def forward(self, x):
        return x + self.conv2(F.relu(self.conv1(F.relu(x))))


class ImpalaQ(nn.Module):
    def __init__(self, widths=(16, 32, 32)):
        super().__init__()
        layers, c = [], STACK
        for w in widths:
            layers += [nn.Conv2d(c, w, 3, padding=1), nn.MaxPool2d(3, 2, 1), Residual(w), Residual(w)]
            c = w
        self.encoder = nn.Sequential(*layers, nn.ReLU(inplace=True))
        self.head = nn.Sequential(nn.Linear(c * 121, 512), nn.ReLU(inplace=True), nn.Linear(512, ACTIONS))

    def forward(self, x):
        return self.head(self.encoder(x).flatten(1))


data = LoggedFrames(FRAMES)
sampler = BatchSampler(RandomSampler(data, replacement=True, num_samples=BATCH * UPDATES), BATCH, drop_last=True)
loader = DataLoader(data, sampler=sampler, batch_size=None, num_workers=14 if cuda else 0)  # flaw: pageable-host-copy

torch.manual_seed(0)
online = ImpalaQ().to(device, memory_format=torch.channels_last)
target = copy.deepcopy(online).requires_grad_(False)
opt = torch.optim.Adam(online.parameters(), lr=1e-4, fused=cuda)
online_params, target_params = list(online.parameters()), list(target.parameters())

for update, (frames, action, reward) in enumerate(loader):
    frames = frames.to(device)  # flaw: pageable-host-copy
    action = action.to(device)  # flaw: pageable-host-copy
    reward = reward.to(device)  # flaw: pageable-host-copy
    with torch.autocast(device.type, torch.bfloat16, enabled=cuda):
        scaled = frames.to(torch.bfloat16 if cuda else torch.float32) / 255
        obs = scaled[:, :STACK].contiguous(memory_format=torch.channels_last)
        next_obs = scaled[:, 1:].contiguous(memory_format=torch.channels_last)
        with torch.no_grad():
            best = target(next_obs).amax(1).float()
            goal = reward + GAMMA * best
        q = online(obs).float()
        taken = q.gather(1, action[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(taken, goal) + 0.1 * (q.logsumexp(1) - taken).mean()
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    with torch.no_grad():
        torch._foreach_lerp_(target_params, online_params, TAU)
    if update % 80 == 0:
        print(f"update {update}: loss {loss.item():.4f}")
print(f"final loss {loss.item():.5f}")
