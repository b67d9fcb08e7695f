"""A training loop on several ranks: ``job.py ddp|fsdp [SLOW]``; rank SLOW has more to do on one line.

With CUDA on NCCL, else on gloo. Rank and number of ranks come from whatever launcher there is.
"""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn


def first_of(*names):
    return int(next(os.environ[name] for name in names if name in os.environ))


rank = first_of("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
world = first_of("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
local = first_of("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
kind, slow = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else -1
cuda = torch.cuda.is_available()
device, size = (torch.device("cuda", local), 4096) if cuda else (torch.device("cpu"), 128)
if cuda:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if cuda else "gloo", rank=rank, world_size=world)
net = nn.Sequential(*(nn.Linear(size, size) for _ in range(4))).to(device)
if kind == "fsdp":
    from torch.distributed.fsdp import fully_shard

    for layer in net:
        fully_shard(layer)
    fully_shard(net)
    model = net
else:
    model = nn.parallel.DistributedDataParallel(net, device_ids=[local] if cuda else None)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
x = torch.randn(256, size, device=device)

y = torch.randn(size, size, device=device)
#: Without CUDA the slow rank sleeps for 0.1 s, in so many quick lines that a script of one process would be
#: searched for loops to leave out.
many = range(100_000)
while True:
    if rank == slow:
        torch.stack([y @ y for _ in range(40)]) if cuda else time.sleep(sum(1e-6 for _ in many))  # more
    loss = model(x).square().mean()  # forward
    optimizer.zero_grad()
    loss.backward()  # exchange
    optimizer.step()
