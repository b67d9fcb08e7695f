"""Offline Q-learning from stored stacks of small grey frames."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

small = os.environ.get("SMALL") == "1"
CAPACITY = 256 if small else 12_000
BATCH = 8 if small else 768
SIDE = 84
ACTIONS = 6
STEPS = 30 if small else 80
WIDTH, C = (64, 16) if small else (2048, 128)


class Replay:
    def __init__(self, capacity, generator):
        self.frames = torch.randint(0, 256, (capacity, 4, SIDE, SIDE), dtype=torch.uint8, generator=generator)
        self.action = torch.randint(0, ACTIONS, (capacity,), generator=generator)
        self.reward = torch.randn(capacity, generator=generator)
        self.generator = generator

    def draw(self, n, device):
        at = torch.randint(0, len(self.action) - 1, (n,), generator=self.generator)
        batch = self.frames[at], self.frames[at + 1], self.action[at], self.reward[at]  # flaw: pageable-host-copy
        return [t.to(device, non_blocking=True) for t in batch]  # flaw: pageable-host-copy


class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(4, C, 8, stride=4), nn.ReLU(inplace=True),
            nn.Conv2d(C, 2 * C, 4, stride=2), nn.ReLU(inplace=True),
            nn.Conv2d(2 * C, 2 * C, 3), nn.ReLU(inplace=True), nn.Flatten())
        self.fc = nn.Sequential(nn.Linear(2 * C * 49, WIDTH), nn.ReLU(inplace=True), nn.Linear(WIDTH, 8))

    def forward(self, x):
        return self.fc(self.conv(x))


def prepare(frames):
    return (frames.to(torch.bfloat16) / 255).contiguous(memory_format=torch.channels_last)


def main():
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    online = QNet().to(device, memory_format=torch.channels_last)
    frozen = QNet().to(device, memory_format=torch.channels_last).requires_grad_(False)
    frozen.load_state_dict(online.state_dict())
    opt = torch.optim.Adam(online.parameters(), lr=1e-4, fused=True)
    replay = Replay(CAPACITY, torch.Generator().manual_seed(8))
    for step in range(STEPS):
        now, after, action, reward = replay.draw(BATCH, device)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            with torch.no_grad():
                best = frozen(prepare(after)).float()[:, :ACTIONS].amax(1)
            q = online(prepare(now)).float().gather(1, action[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(q, reward + 0.99 * best)
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 40 == 39:
            frozen.load_state_dict(online.state_dict())
            print(step + 1, loss.item())


if __name__ == "__main__":
    main()
