"""Sliding-window segmentation of liver scans; the next window group is copied while one is computed."""
import dataclasses
from typing import Iterator

import torch
import torch.nn.functional as F
from torch import nn

GPU = torch.cuda.is_available()


@dataclasses.dataclass
class Options:
    slices: int = 8
    side: int = 256 if GPU else 32
    group: int = 32 if GPU else 2
    groups: int = 6 if GPU else 2
    scans: int = 30 if GPU else 2
    width: int = 64 if GPU else 8
    depth: int = 8 if GPU else 2
    tissues: int = 8


class WindowNet(nn.Module):
    def __init__(self, o: Options):
        super().__init__()
        sizes = [o.slices] + [o.width] * o.depth
        self.convs = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in zip(sizes, sizes[1:]))
        self.head = nn.Conv2d(o.width, o.tissues, 1)
        for conv in self.convs:
            nn.init.kaiming_normal_(conv.weight)

    def forward(self, windows: torch.Tensor) -> torch.Tensor:
        """int16 Hounsfield units to the number of voxels of each tissue."""
        x = (windows.to(torch.bfloat16) / 512).to(memory_format=torch.channels_last)
        for conv in self.convs:
            x = F.relu(conv(x))
        tissue = self.head(x).argmax(1)
        return torch.stack([(tissue == k).sum() for k in range(self.head.out_channels)])


class Archive:
    """Scans as the reader leaves them: groups of windows in pinned memory."""

    def __init__(self, o: Options, kept: int = 3):
        gen = torch.Generator().manual_seed(170)
        shape = (o.groups, o.group, o.slices, o.side, o.side)
        self.o = o
        self.scans = []
        for _ in range(kept):
            scan = torch.randint(-1000, 1500, shape, generator=gen, dtype=torch.int16)
            self.scans.append(scan.pin_memory() if GPU else scan)

    def groups(self) -> Iterator[tuple[int, torch.Tensor]]:
        for i in range(self.o.scans):
            for group in self.scans[i % len(self.scans)]:
                yield i, group


def ahead(groups, device: torch.device):
    """Yields groups on the device; the copy of the next one runs on a stream of its own."""
    if device.type != "cuda":
        yield from groups
        return
    side = torch.cuda.Stream()

    def fetch():
        item = next(groups, None)
        if item is None:
            return None
        with torch.cuda.stream(side):
            return item[0], item[1].to(device, non_blocking=True)

    coming = fetch()
    while coming is not None:
        torch.cuda.current_stream().wait_stream(side)
        scan, windows = coming
        windows.record_stream(torch.cuda.current_stream())
        coming = fetch()
        yield scan, windows


@torch.inference_mode()
def main() -> None:
    o = Options()
    device = torch.device("cuda" if GPU else "cpu")
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(171)
    net = WindowNet(o).to(device, torch.bfloat16).eval().to(memory_format=torch.channels_last)
    count = torch.compile(net) if GPU else net
    voxels = torch.zeros(o.scans, o.tissues, dtype=torch.int64, device=device)
    for scan, windows in ahead(Archive(o).groups(), device):
        voxels[scan] += count(windows)
    share = (voxels / voxels.sum(1, keepdim=True)).mean(0).tolist()
    print(f"{o.scans} scans, tissue shares " + " ".join(f"{s:.3f}" for s in share))


if __name__ == "__main__":
    main()
