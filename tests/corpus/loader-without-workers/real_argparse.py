# corpus: run, may slow-sample-line per-tensor-optimizer launch-bound small-batch
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Waves(Dataset):
    def __len__(self):
        return 20000

    def __getitem__(self, index):
        wave = torch.linspace(0, 1, 2048) * index
        for _ in range(16):
            wave = wave.sin()
        return wave[:128], index % 4


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", dest="num_workers", type=int, default=0)  #> found
    args = parser.parse_args()
    model = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    batches = DataLoader(Waves(), batch_size=32, num_workers=args.num_workers)
    for x, y in batches:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
