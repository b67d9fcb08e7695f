"""Brain age from T1 volumes: a 3D residual network, volumes in memory, mean absolute error."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

ON_GPU = torch.cuda.is_available()
SIDE = 96 if ON_GPU else 16
BATCH = 24 if ON_GPU else 2
STEPS = 160 if ON_GPU else 3


class Volumes(Dataset):
    def __init__(self, subjects=48, repeats=1):
        rng = np.random.default_rng(3)
        self.scans = rng.integers(0, 4095, (subjects, SIDE, SIDE, SIDE), dtype=np.int16)
        self.ages = rng.uniform(20, 90, subjects).astype(np.float32)
        self.length = repeats

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        scan = torch.from_numpy(self.scans[i % len(self.scans)]).to(torch.float32)
        scan.sub_(2048.0).div_(1200.0)
        return scan.unsqueeze(0), self.ages[i % len(self.ages)]


class Res3D(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv3d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm3d(cout)
        self.conv2 = nn.Conv3d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm3d(cout)
        self.short = nn.Conv3d(cin, cout, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(self.bn2(self.conv2(y)) + self.short(x), inplace=True)


class BrainAge(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.stem = nn.Conv3d(1, width, 4, 4)
        self.body = nn.Sequential(
            Res3D(width, width, 1),
            Res3D(width, 2 * width, 2),
            Res3D(2 * width, 2 * width, 1),
            Res3D(2 * width, 4 * width, 2),
            Res3D(4 * width, 4 * width, 1),
        )
        self.head = nn.Linear(4 * width, 1)

    def forward(self, x):
        x = self.body(self.stem(x))
        return self.head(x.mean(dim=(2, 3, 4))).squeeze(1)


class Trainer:
    def __init__(self, model, lr=1e-3):
        self.device = torch.device("cuda" if ON_GPU else "cpu")
        self.model = model.to(self.device, memory_format=torch.channels_last_3d)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr, fused=True)
        self.loader = DataLoader(
            Volumes(repeats=STEPS * BATCH),
            batch_size=BATCH,
            shuffle=True,
            num_workers=8 if ON_GPU else 0,
            persistent_workers=ON_GPU,
            pin_memory=ON_GPU,
        )

    def step(self, scans, ages):
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            predicted = self.model(scans)
        loss = F.l1_loss(predicted.float(), (ages - 55) / 20)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run(self):
        for i, (scans, ages) in enumerate(self.loader):
            scans = scans.to(self.device, non_blocking=True)
            ages = ages.to(self.device, non_blocking=True)
            loss = self.step(scans, ages)
            if i % 40 == 0:
                print(f"step {i:4d}  mae {20 * loss.item():.2f} years")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    Trainer(BrainAge(64 if ON_GPU else 4)).run()
