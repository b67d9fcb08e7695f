"""Tag an archive of video clips: batch inference with a small 3D network."""
import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class ClipArchive(Dataset):
    """Decoded clips in memory; each item is one normalised clip, (3, frames, height, width)."""

    def __init__(self, count, frames, side):
        rng = np.random.default_rng(3)
        self.pixels = rng.integers(0, 255, (64, 3, frames, side, side), dtype=np.uint8)
        self.count = count
        self.mean = np.float32(110.0)
        self.scale = np.float32(1 / 58.0)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        clip = self.pixels[index % len(self.pixels)].astype(np.float32)
        clip -= self.mean
        clip *= self.scale
        return torch.from_numpy(clip), index


def stage(cin, cout, stride):
    return nn.Sequential(
        nn.Conv3d(cin, cout, 3, stride, 1, bias=False),
        nn.BatchNorm3d(cout),
        nn.ReLU(inplace=True),
        nn.Conv3d(cout, cout, 3, 1, 1, bias=False),
        nn.BatchNorm3d(cout),
        nn.ReLU(inplace=True),
    )


class Tagger(nn.Module):
    def __init__(self, width, tags):
        super().__init__()
        self.stem = nn.Conv3d(3, width, (3, 7, 7), (1, 2, 2), (1, 3, 3))
        self.body = nn.Sequential(
            stage(width, width, 1),
            stage(width, 2 * width, 2),
            stage(2 * width, 4 * width, 2),
        )
        self.head = nn.Linear(4 * width, tags)

    def forward(self, clips):
        h = self.body(self.stem(clips).relu_())
        return self.head(h.mean((2, 3, 4)))


@torch.inference_mode()
def tag(model, loader, device):
    scores, order = [], []
    for clips, index in loader:
        clips = clips.to(device)  # flaw: pageable-host-copy
        clips = clips.to(torch.bfloat16, memory_format=torch.channels_last_3d)
        scores.append(model(clips).float().sigmoid().topk(5).values)
        order.append(index)
    return torch.cat(order), torch.cat(scores).cpu()


def main():
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser()
    parser.add_argument("--clips", type=int, default=3200 if cuda else 8)
    parser.add_argument("--frames", type=int, default=16 if cuda else 4)
    parser.add_argument("--side", type=int, default=112 if cuda else 32)
    parser.add_argument("--batch", type=int, default=16 if cuda else 2)
    parser.add_argument("--workers", type=int, default=12 if cuda else 0)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if cuda else "cpu")
    model = Tagger(64 if cuda else 8, 400).eval()
    model = model.to(device, torch.bfloat16, memory_format=torch.channels_last_3d)
    loader = DataLoader(  # flaw: pageable-host-copy
        ClipArchive(args.clips, args.frames, args.side),
        batch_size=args.batch,
        num_workers=args.workers,
    )
    order, scores = tag(model, loader, device)
    print(f"tagged {len(order)} clips, mean best score {scores[:, 0].mean():.4f}")


if __name__ == "__main__":
    main()
