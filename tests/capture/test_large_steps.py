"""A step with very many operators is recorded once to see its size, and then again."""

from __future__ import annotations

from pathlib import Path

from tests.capture.launching import Captured, request, write
from warpline import trace
from warpline.trace.columns import OP

TURNS = 2_600
SCRIPT = f"""\
import torch
from torch import nn
torch.set_num_threads(1)
net = nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
while True:
    x = torch.ones(8)
    with torch.no_grad():
        for _ in range({TURNS}):
            x = x * 0.5 + 1.0
    net(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_every_operator_of_every_step_is_in_the_second_recording(tmp_path: Path) -> None:
    captured = Captured(request(write(tmp_path, SCRIPT)), tmp_path)
    assert captured.facts.dataflow.calls > 2 * TURNS
    starts = [one for one in captured.progress if one.message == "starting the profiler"]
    assert len(starts) > 1
    manifest = captured.manifest
    assert len(manifest.captured) == 3
    assert not [note for note in manifest.notes if "captured" in note]
    found = trace.read(captured.run)
    for begin, end in manifest.captured:
        within = (found.host.kind == OP) & (found.host.start_ns >= begin) & (found.host.start_ns < end)
        names = [found.names[name] for name in found.host.name[within].tolist()]
        assert names.count("aten::mul") == TURNS
    assert captured.lines()["train.py", 10] >= 3 * TURNS
