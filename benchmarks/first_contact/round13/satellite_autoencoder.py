"""Convolutional autoencoder for eight-band satellite tiles."""
import os
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

BANDS = 8
knobs = {"tiles": 20480, "side": 64, "batch": 512, "base": 128, "epochs": 8, "workers": 5}
if os.environ.get("TINY") == "1":
    knobs.update(tiles=128, side=16, batch=8, base=16, epochs=4, workers=0)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
gpu = device.type == "cuda"


class Tiles(Dataset):
    """uint8, stored band-last as the sensor delivers them; an index is a whole batch."""

    def __init__(self, tiles, side):
        rng = np.random.default_rng(12)
        coarse = rng.integers(0, 200, (tiles, side // 8, side // 8, BANDS), dtype=np.uint8)
        self.data = coarse.repeat(8, 1).repeat(8, 2)
        self.data += rng.integers(0, 40, (1, side, side, BANDS), dtype=np.uint8)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, rows):
        return torch.from_numpy(self.data[rows])


def down(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 4, 2, 1, bias=False), nn.BatchNorm2d(cout), nn.SiLU(inplace=True))


def up(cin, cout):
    return nn.Sequential(nn.ConvTranspose2d(cin, cout, 4, 2, 1, bias=False), nn.BatchNorm2d(cout), nn.SiLU(inplace=True))


class Autoencoder(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.encode = nn.Sequential(down(BANDS, base), down(base, 2 * base), down(2 * base, 4 * base))
        self.code = nn.Conv2d(4 * base, 64, 1)
        self.decode = nn.Sequential(up(64, 4 * base), up(4 * base, 2 * base), up(2 * base, base))
        self.paint = nn.Conv2d(base, BANDS, 1)

    def forward(self, tiles):
        x = tiles.permute(0, 3, 1, 2).to(self.paint.weight.dtype) / 127.5 - 1
        guess = self.paint(self.decode(self.code(self.encode(x))))
        return (guess.float() - x.float()).square().mean()


def loader_for(data):
    rows = BatchSampler(RandomSampler(data, generator=torch.Generator().manual_seed(4)), knobs["batch"], True)
    more = {"persistent_workers": True, "prefetch_factor": 4} if knobs["workers"] else {}
    return DataLoader(data, sampler=rows, batch_size=None, num_workers=knobs["workers"], pin_memory=gpu, **more)


def main():
    torch.manual_seed(5)
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = True
    loader = loader_for(Tiles(knobs["tiles"], knobs["side"]))
    model = Autoencoder(knobs["base"]).to(device, memory_format=torch.channels_last)
    step_model = torch.compile(model, dynamic=False) if gpu else model
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=gpu)
    tic = time.perf_counter()
    for epoch in range(knobs["epochs"]):
        total = torch.zeros((), device=device)
        for tiles in loader:
            tiles = tiles.to(device, non_blocking=True)
            with torch.autocast(device.type, torch.bfloat16, enabled=gpu):
                loss = step_model(tiles)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            total += loss.detach()
        print(f"epoch {epoch}: {total.item() / len(loader):.5f}  ({time.perf_counter() - tic:.1f} s)")


if __name__ == "__main__":
    main()
