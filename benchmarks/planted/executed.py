"""Code that is compiled while the script runs: from text without a file, and from a file by its path."""

import time
from pathlib import Path

import torch
from torch import nn

PART = Path(__file__).with_name("part_of_executed.txt")
space = {"torch": torch, "time": time}
exec(compile(PART.read_text(), str(PART), "exec"), space)
body = compile("time.sleep(0.006)\nloss = net(batch).square().mean()", "<config>", "exec")
net = nn.Linear(16, 16)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
while True:
    scope = {"net": net, "batch": space["batch"](), "time": time}
    exec(body, scope)  # = 6
    optimizer.zero_grad()
    scope["loss"].backward()
    optimizer.step()
    eval("time.sleep(0.005)")  # = 5
