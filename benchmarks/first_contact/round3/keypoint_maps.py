import os
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

small = os.environ.get("SMALL") == "1"


class People(Dataset):
    joints = 17

    def __init__(self, n, side):
        g = np.random.default_rng(11)
        self.n, self.side = n, side
        self.photos = g.integers(0, 256, (48, 3, side, side), dtype=np.uint8)
        self.where = g.uniform(0, side // 2, (n, self.joints, 2)).astype(np.float32)

    def heatmap(self, centre, sigma=2.0):
        h = self.side // 2
        return np.array([[np.exp(-((x - centre[0]) ** 2 + (y - centre[1]) ** 2) / (2 * sigma**2)) for x in range(h)] for y in range(h)])  # flaw: slow-sample-line

    def __getitem__(self, i):
        maps = np.stack([self.heatmap(c) for c in self.where[i]])
        return torch.from_numpy(self.photos[i % 48]), torch.from_numpy(maps).float()

    def __len__(self):
        return self.n


def hourglass(w, joints):
    def cb(i, o, s=1):
        return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))
    return nn.Sequential(cb(3, w, 2), cb(w, 2 * w, 2), cb(2 * w, 2 * w), nn.Upsample(scale_factor=2), cb(2 * w, w), nn.Conv2d(w, joints, 1))


if __name__ == "__main__":
    batch, side, steps, w = (2, 16, 30, 4) if small else (8, 64, 60, 128)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    workers = 2 if small else min(12, os.cpu_count() or 1)
    loader = DataLoader(People(batch * steps, side), batch, shuffle=True, num_workers=workers, pin_memory=True, persistent_workers=True)
    model = hourglass(w, People.joints).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    history = []
    for photo, maps in loader:
        photo = photo.to(device, non_blocking=True).float().div_(255).contiguous(memory_format=torch.channels_last)
        maps = maps.to(device, non_blocking=True)
        with torch.autocast(device, torch.bfloat16):
            predicted = model(photo)
        loss = F.mse_loss(predicted.float(), maps)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.detach())
    print("last ten", torch.stack(history[-10:]).mean().item())
