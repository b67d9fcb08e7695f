"""Segmentation service: scanners queue studies (already cut into windows), a worker segments them.

A reply is the fraction of each tissue class in the study.
"""
import queue
import threading
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

GPU = torch.cuda.is_available()
torch.backends.cudnn.benchmark = True


@dataclass
class Settings:
    side: int = 96 if GPU else 16
    windows: int = 32 if GPU else 4
    per_call: int = 16 if GPU else 2
    studies: int = 60 if GPU else 3
    channels: int = 64 if GPU else 8
    classes: int = 8
    device: torch.device = field(default_factory=lambda: torch.device("cuda" if GPU else "cpu"))


@dataclass
class Study:
    name: str
    windows: np.ndarray


class TissueNet(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.stem = nn.Conv3d(1, channels, 4, stride=2, padding=1)
        self.body = nn.ModuleList(nn.Conv3d(channels, channels, 3, padding=1) for _ in range(4))
        self.head = nn.Conv3d(channels, classes, 1)
        for conv in (self.stem, *self.body, self.head):
            nn.init.kaiming_normal_(conv.weight)
            nn.init.zeros_(conv.bias)

    def forward(self, x):
        x = torch.relu_(self.stem(x))
        for conv in self.body:
            x = torch.relu_(conv(x))
        return self.head(x)


class Scanner(threading.Thread):
    """Stands for the PACS listener: hands over studies as float32 arrays in Hounsfield units / 1000."""

    def __init__(self, settings, inbox):
        super().__init__(daemon=True)
        self.settings, self.inbox = settings, inbox
        rng = np.random.default_rng(3)
        shape = (settings.windows, 1, settings.side, settings.side, settings.side)
        self.archive = [rng.standard_normal(shape, dtype=np.float32) for _ in range(3)]

    def run(self):
        for i in range(self.settings.studies):
            self.inbox.put(Study(f"study-{i:03d}", self.archive[i % len(self.archive)]))
        self.inbox.put(None)


class Segmenter:
    def __init__(self, settings):
        self.s = settings
        torch.manual_seed(1)
        model = TissueNet(settings.channels, settings.classes).to(settings.device, torch.bfloat16).eval()
        self.model = model.to(memory_format=torch.channels_last_3d)
        self.labels = torch.arange(settings.classes, device=settings.device).view(-1, 1)

    def chunks(self, study):
        for lo in range(0, len(study.windows), self.s.per_call):
            yield torch.from_numpy(study.windows[lo:lo + self.s.per_call])

    def segment(self, chunk):
        if GPU:
            chunk = chunk.pin_memory()
        scan = chunk.to(self.s.device, non_blocking=True)
        scan = scan.to(torch.bfloat16, memory_format=torch.channels_last_3d)
        tissue = self.model(scan).argmax(1)
        return (tissue.view(1, -1) == self.labels).float().mean(1)

    @torch.inference_mode()
    def serve(self, inbox):
        replies = {}
        while (study := inbox.get()) is not None:
            fractions = [self.segment(chunk) for chunk in self.chunks(study)]
            replies[study.name] = torch.stack(fractions).mean(0)
        return replies


def main():
    settings = Settings()
    inbox = queue.Queue(maxsize=4)
    segmenter = Segmenter(settings)
    Scanner(settings, inbox).start()
    replies = segmenter.serve(inbox)
    table = torch.stack(list(replies.values())).cpu()
    print(f"{len(replies)} studies, mean fractions:", " ".join(f"{v:.3f}" for v in table.mean(0).tolist()))


if __name__ == "__main__":
    main()
