"""A small framework of callbacks: the loop only fires events."""

import collections
import functools
import time

import torch
from torch import nn


class Engine:
    def __init__(self):
        self.handlers = collections.defaultdict(list)
        self.state = {}

    def on(self, event, *given):
        def register(handler):
            self.handlers[event].append(functools.partial(handler, *given))
            return handler

        return register

    def fire(self, event):
        for handler in self.handlers[event]:
            handler(self)

    def run(self, batches):
        for self.state["batch"] in batches:
            for event in ("begin", "forward", "backward", "end"):
                self.fire(event)


engine = Engine()
net = nn.Linear(16, 16)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)


@engine.on("begin", 0.004)
def clear(pause, engine):
    optimizer.zero_grad()
    time.sleep(pause)  # = 4


@engine.on("forward")
def forward(engine):
    time.sleep(0.008)  # = 8
    engine.state["loss"] = net(engine.state["batch"]).square().mean()


@engine.on("backward")
def backward(engine):
    engine.state["loss"].backward()
    optimizer.step()


engine.on("end")(lambda engine: time.sleep(0.006))  # = 6
engine.on("end")(lambda engine: engine.state.update(seen=engine.state.get("seen", 0) + 1))
engine.run(torch.randn(8, 16) for _ in range(100000))
