"""Land cover regression on tiles read from an object store (the store's latency is imitated)."""
import time
import zlib

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
TRAIN_TILES = 1280


class ObjectStore:
    """get() answers after the round trip of a request in the same region."""

    def __init__(self, latency=0.007):
        self.latency = latency
        g = torch.Generator().manual_seed(1)
        self.blobs = [zlib.compress(torch.randint(0, 40, (6, 32, 32), dtype=torch.uint8, generator=g).numpy().tobytes(), 1)
                      for _ in range(64)]

    def get(self, key):
        time.sleep(self.latency)
        return self.blobs[key % len(self.blobs)]


class TileSet(Dataset):
    def __init__(self, store, n):
        self.store, self.n = store, n

    def __len__(self):
        return self.n

    def __getitem__(self, key):
        raw = bytearray(zlib.decompress(self.store.get(key)))
        bands = torch.frombuffer(raw, dtype=torch.uint8).view(6, 32, 32).float() / 40
        ndvi = (bands[3] - bands[2]) / (bands[3] + bands[2] + 1e-3)
        return bands, ndvi.mean()


class Regressor(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(6, width, 3, padding=1), nn.ReLU(),
                                  nn.Conv2d(width, width, 3, stride=2, padding=1), nn.ReLU(),
                                  nn.Conv2d(width, width, 3, stride=2, padding=1), nn.ReLU())
        self.out = nn.Linear(width, 1)

    def forward(self, bands):
        return self.out(self.body(bands).mean((2, 3))).squeeze(1)


def build_loader():
    tiles = TileSet(ObjectStore(), TRAIN_TILES)
    return DataLoader(tiles, batch_size=8, shuffle=True, num_workers=1)  # flaw: too-few-loader-workers


if __name__ == "__main__":
    torch.manual_seed(5)
    model = Regressor().to(memory_format=torch.channels_last)
    opt = torch.optim.SGD(model.parameters(), lr=0.02)
    history = []
    for bands, target in build_loader():
        bands = bands.contiguous(memory_format=torch.channels_last)
        loss = nn.functional.mse_loss(model(bands), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
        history.append(loss.item())
    tail = history[-8:]
    print(f"{len(history)} steps, loss of the last ones {sum(tail) / len(tail):.5f}")
