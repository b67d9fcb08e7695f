"""Two ranks whose gradients are larger than their work: the exchange cannot hide behind it.

warpline profile --launcher 'torchrun --nproc-per-node 2' tests/gpu/ranks/nccl.py
"""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
model = nn.Sequential(*(nn.Linear(8192, 8192) for _ in range(6))).cuda()  # 1.6 GB of gradients
parallel = DistributedDataParallel(model, device_ids=[rank])
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
x = torch.randn(16, 8192, device="cuda")
for _ in range(150):
    loss = torch.special.i0(parallel(x)).mean()  # only: aten::special_i0
    optimizer.zero_grad()
    loss.backward()  # gradients are exchanged in here
    optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean)  # only: an exchange that the line asks for itself
dist.destroy_process_group()
