"""Classify detector events drawn as images. Events are drawn when they are asked for."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Events(IterableDataset):
    def __init__(self, size: int = 96, hits: int = 3000):
        self.size, self.hits = size, hits

    def draw(self, rng: np.random.Generator):
        kind = int(rng.integers(0, 10))
        angle = rng.normal(kind * 0.3, 0.5, self.hits)
        radius = rng.gamma(2.0 + kind / 5, 8.0, self.hits)
        energy = rng.exponential(1.0, self.hits)
        x, y = radius * np.cos(angle) + self.size / 2, radius * np.sin(angle) + self.size / 2
        image, _, _ = np.histogram2d(x, y, self.size, [[0, self.size], [0, self.size]], weights=energy)
        spread = np.sqrt(image + np.roll(image, 1, 0) + np.roll(image, 1, 1))
        return np.stack([image, spread, np.log1p(image)]).astype(np.float32), kind

    def __iter__(self):
        info = get_worker_info()
        rng = np.random.default_rng(0 if info is None else info.id)
        while True:
            yield self.draw(rng)


class Net(nn.Module):
    def __init__(self, w: int = 128):
        super().__init__()
        chans = [3, w, w, 2 * w, 2 * w]
        self.convs = nn.ModuleList(
            nn.Conv2d(a, b, 3, padding=1, stride=1 + (i % 2), bias=False) for i, (a, b) in enumerate(zip(chans, chans[1:])))
        self.norms = nn.ModuleList(nn.BatchNorm2d(b) for b in chans[1:])
        self.fc = nn.Linear(2 * w, 10)

    def forward(self, x):
        for conv, norm in zip(self.convs, self.norms):
            x = torch.relu_(norm(conv(x)))
        return self.fc(x.mean((2, 3)))


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    batches = DataLoader(Events(), batch_size=64, num_workers=1, pin_memory=device == "cuda")  # flaw: too-few-loader-workers
    net = Net().to(device, memory_format=torch.channels_last)
    opt = torch.optim.SGD(net.parameters(), 0.02, momentum=0.9, fused=True)
    for step, (image, kind) in enumerate(batches):
        image = image.to(device, non_blocking=True, memory_format=torch.channels_last)
        kind = kind.to(device, non_blocking=True)
        with torch.autocast(device, torch.bfloat16):
            loss = nn.functional.cross_entropy(net(image), kind)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(step, loss.item())
        if step == 400:
            return


if __name__ == "__main__":
    main()
