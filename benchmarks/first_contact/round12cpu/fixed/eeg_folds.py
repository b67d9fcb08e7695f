"""Leave-one-subject-out training of a small EEG net (motor imagery)."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FOLDS = 3
EPOCHS = 12
torch.set_num_threads(1)


class Trials(Dataset):
    def __init__(self, subjects, trials=32, channels=22, length=250):
        g = np.random.default_rng(0)
        self.raw = g.standard_normal((len(subjects) * trials, channels, length)).astype(np.float32)
        self.y = g.integers(0, 4, len(self.raw))
        for k, y in enumerate(self.y):
            self.raw[k, y * 4:(y + 1) * 4] *= 1.4

    def __len__(self):
        return len(self.y)

    def __getitem__(self, k):
        x = self.raw[k]
        # common average reference, band limit in the frequency domain, then z-score
        x = x - x.mean(0, keepdims=True)
        spec = np.fft.rfft(x, axis=-1)
        spec[:, 60:] = 0
        x = np.fft.irfft(spec, n=x.shape[-1], axis=-1)
        x = (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-6)
        return x.astype(np.float32), self.y[k]


class ShallowNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.temporal = nn.Conv2d(1, 12, (1, 13), bias=False)
        self.spatial = nn.Conv2d(12, 16, (22, 1), bias=False)
        self.norm = nn.BatchNorm2d(16)
        self.head = nn.Linear(16 * 11, 4)

    def forward(self, x):
        x = self.norm(self.spatial(self.temporal(x.unsqueeze(1))))
        x = nn.functional.avg_pool2d(x.square(), (1, 75), (1, 15))
        return self.head(torch.log(x.clamp(min=1e-6)).flatten(1))


for fold in range(FOLDS):
    torch.manual_seed(fold)
    train = Trials([s for s in range(6) if s != fold])
    loader = DataLoader(train, batch_size=32, shuffle=True, num_workers=2, persistent_workers=True)
    model = ShallowNet()
    opt = torch.optim.Adam(model.parameters(), lr=6e-4, fused=True)
    for epoch in range(EPOCHS):
        total = 0.0
        for x, y in loader:
            opt.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
            total += loss.item()
    print(f"fold {fold}: last epoch loss {total / len(loader):.3f}")
