"""Defect classes of machine parts: a timm ResNet in a class-based trainer."""

import logging
import os
import time

import timm
import torch
from timm.loss import LabelSmoothingCrossEntropy
from timm.utils import random_seed, setup_default_logging
from torch.utils.data import DataLoader, Dataset

_logger = logging.getLogger("parts")
SMALL = os.environ.get("SMALL") == "1"


class PartPhotos(Dataset):
    def __init__(self, count, side):
        gen = torch.Generator().manual_seed(2)
        self.store = torch.randint(0, 256, (400, side + 24, side + 24, 3), dtype=torch.uint8, generator=gen).numpy()
        self.target = torch.randint(60, (count,), generator=gen).tolist()
        self.side = side

    def __len__(self):
        return len(self.target)

    def __getitem__(self, index):
        top, left, mirror = (int(torch.randint(n, ())) for n in (25, 25, 2))
        photo = self.store[index % 400][top : top + self.side, left : left + self.side]
        if mirror:
            photo = photo[:, ::-1]
        return torch.from_numpy(photo.transpose(2, 0, 1).copy()).float().div_(127.5).sub_(1.0), self.target[index]


class PartTrainer:
    def __init__(self, *, arch, classes, side, batch_size, batches, epochs, workers, lr):
        self.device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
        torch.backends.cudnn.benchmark = True
        torch.backends.cuda.matmul.allow_tf32 = True
        self.epochs = epochs
        self.loader = DataLoader(  # expert: pin_memory=True
            PartPhotos(batch_size * batches, side),
            batch_size=batch_size,
            shuffle=True,
            drop_last=True,
            num_workers=workers,
            persistent_workers=workers > 0,
        )
        self.model = timm.create_model(arch, pretrained=False, num_classes=classes)
        self.model.to(self.device)  # expert: memory_format=torch.channels_last
        self.loss_fn = LabelSmoothingCrossEntropy(0.1)
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), lr=lr, momentum=0.9, nesterov=True, weight_decay=5e-5, fused=True
        )
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, epochs * batches)

    def forward_backward(self, images, targets):
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.device.type == "cuda"):
            output = self.model(images)
        loss = self.loss_fn(output.float(), targets)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        return loss.detach()

    def train_epoch(self, epoch):
        self.model.train()
        losses, started = [], time.time()
        for images, targets in self.loader:
            images = images.to(self.device)  # expert: non_blocking=True; memory_format=torch.channels_last
            targets = targets.to(self.device)  # expert: non_blocking=True
            losses.append(self.forward_backward(images, targets))
        mean = torch.stack(losses).mean().item()
        rate = len(losses) * self.loader.batch_size / (time.time() - started)
        _logger.info("epoch %d  loss %.4f  %.0f img/s", epoch, mean, rate)

    def fit(self):
        for epoch in range(self.epochs):
            self.train_epoch(epoch)
        return self.model


if __name__ == "__main__":
    setup_default_logging()
    random_seed(17)
    settings = dict(arch="resnet50d", classes=60, side=160, batch_size=128, batches=60, epochs=2, workers=10, lr=0.2)
    if SMALL:
        settings.update(arch="resnet10t", side=48, batch_size=4, batches=15, workers=0)
    PartTrainer(**settings).fit()
