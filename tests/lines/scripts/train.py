"""Each line with a claim uses ops that no other line uses: where an op lies is proof of its line.

A claim is a comment with ">" first.

Names without "::" mean "aten::NAME"; those that end in "Backward…" are autograd nodes; "again:NAME" is
the op when it is recomputed; "in:NAME" is an op that runs in the backward phase on this very line.
"""

import classes
import functions
import gradients
import operators
import torch
import workers
from a import layers as first
from b import layers as second

torch.manual_seed(0)
weight = torch.nn.Parameter(torch.rand(6, 6) / 2 + 0.25)
nets = first.Net(), second.Net()
optimizer = torch.optim.SGD([weight, *nets[0].parameters(), *nets[1].parameters()], lr=1e-12)
while True:
    optimizer.zero_grad()
    parts = [
        operators.run(weight),
        functions.run(weight),
        classes.run(weight),
        gradients.run(weight),
        workers.run(weight),
    ]
    parts += [net(weight) for net in nets]
    loss = torch.stack([part.mean() for part in parts]).nanmean()  #> stack nanmean StackBackward0
    loss.backward()
    optimizer.step()
