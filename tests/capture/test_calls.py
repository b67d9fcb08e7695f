"""How often a line ran, which is the same number on every Python.

A comprehension is code of its own before Python 3.12, a generator expression on every Python: both are
part of the statement that they stand in, whose line has begun when they do.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.capture.launching import PYTHONS, Captured, request, write
from warpline import attribution, trace

SCRIPT = """\
import torch
net = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
xs = [torch.randn(4, 8)] * 3
def twice(t): return t.mul(1.0)
negative = lambda t: t.neg()
def step():
    for i in range(64):
        a = [t.add(1) for t in xs]
        b = {k: t.sub(1) for k, t in enumerate(xs)}
        c = {id(t.abs()) for t in xs}
        d = sum(t.sum() for t in xs)
        e = [[u.sin() for u in xs] for t in xs]
        f = [t.tan() for t in xs]; g = [t.tanh() for t in xs]
        h = negative(twice(xs[0]))
    optimizer.zero_grad()
    net(xs[0]).sum().backward()
    optimizer.step()
while True:
    step()
"""


@pytest.mark.parametrize("python", PYTHONS)
def test_calls(tmp_path: Path, python: str) -> None:
    captured = Captured(request(write(tmp_path, SCRIPT), python), tmp_path)
    profile = attribution.attribute(trace.read(captured.run))
    calls = {cost.line: cost.calls for cost in profile.lines}
    assert calls[8] == 65
    assert {line: calls[line] for line in (5, 6, *range(9, 16))} == dict.fromkeys((5, 6, *range(9, 16)), 64)
    assert {line: calls[line] for line in range(16, 19)} == {16: 1, 17: 1, 18: 1}
