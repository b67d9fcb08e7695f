"""A training loop in a coroutine: a task makes batches, another one trains."""

import asyncio
import time

import torch
from torch import nn


async def produce(queue):
    while True:
        time.sleep(0.005)  # = 5
        await queue.put(torch.randn(8, 16))


async def validate(net, queue):
    batch = await queue.get()
    time.sleep(0.004)  # = 4
    return net(batch).square().mean()


async def train():
    net = nn.Linear(16, 16)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    queue = asyncio.Queue(maxsize=1)
    producer = asyncio.create_task(produce(queue))
    for _ in range(100000):
        loss = await validate(net, queue)
        loss.backward()
        time.sleep(0.008)  # = 8
        optimizer.step()
        optimizer.zero_grad()
    producer.cancel()


asyncio.run(train())
