"""Distributed data parallel as one process of NCCL, the way a launcher starts it on one GPU."""

import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

FEATURES, WIDTH, BATCH = 256, 4096, 256


class Clips(Dataset):
    def __init__(self, count=4096):
        self.frames = torch.randn(count, 64, FEATURES, dtype=torch.bfloat16)

    def __len__(self):
        return 250 * len(self.frames)

    def __getitem__(self, index):
        return self.frames[index % len(self.frames)], index % 32


def build_model():
    return nn.Sequential(
        nn.Linear(FEATURES, WIDTH),
        nn.ReLU(inplace=True),
        nn.Linear(WIDTH, WIDTH),
        nn.ReLU(inplace=True),
        nn.Linear(WIDTH, WIDTH),
        nn.AdaptiveAvgPool2d((1, WIDTH)),
        nn.Flatten(),
        nn.Linear(WIDTH, 32),
    )


def build_loader(rank, world):
    data = Clips()
    sampler = DistributedSampler(data, num_replicas=world, rank=rank, drop_last=True)
    loader = DataLoader(
        data,
        batch_size=BATCH,
        sampler=sampler,
        num_workers=6,
        pin_memory=True,
        persistent_workers=True,
        prefetch_factor=4,
    )
    return loader, sampler


def train(rank, world, epochs):
    torch.cuda.set_device(rank)
    loader, sampler = build_loader(rank, world)
    model = build_model().to(rank, torch.bfloat16)
    model = DistributedDataParallel(model, device_ids=[rank], gradient_as_bucket_view=True, static_graph=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, fused=True)
    criterion = nn.CrossEntropyLoss().to(rank)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for inputs, targets in loader:
            inputs = inputs.to(rank, non_blocking=True)
            targets = targets.to(rank, non_blocking=True)
            loss = criterion(model(inputs), targets)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("nccl", init_method=f"file://{folder}/store", rank=rank, world_size=world)
        train(rank, world, epochs=200)
        dist.destroy_process_group()
