"""Torch in the processes that tests start (tests/lean) is the whole torch once a script uses more of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.conftest import LIMIT_S, environment

SCRIPT = """\
import sys, threading
import torch

def step():
    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.ones(4, 4))
    for batch in torch.utils.data.DataLoader(data, shuffle=True, num_workers=1):
        torch.Generator().manual_seed(1)
    net = torch.nn.Linear(4, 4)
    optimizer = torch.optim.AdamW(net.parameters(), foreach=True)
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    net(torch.ones(2, 4)).sum().backward()
    optimizer.step()

step()
other = threading.Thread(target=step)
other.start()
other.join()
assert not {"torch._meta_registrations", "torch.export"} & {
    name for name, module in sys.modules.items() if type(module).__name__ != "Later"
}, "what a training step does not use was executed"

from torch.utils.checkpoint import checkpoint
checkpoint(step, use_reentrant=False)
assert torch.vmap(torch.sin)(torch.ones(3)).shape == (3,)
assert torch.distributions.Normal(0.0, 1.0).sample().shape == ()
from torch._subclasses.fake_tensor import FakeTensorMode
with FakeTensorMode():
    heads = [torch.randn(1, 1, 8, 8)] * 3
    assert torch.nn.functional.scaled_dot_product_attention(*heads).shape == (1, 1, 8, 8)
compiled = torch.compile(lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)), backend="eager")
assert compiled(torch.ones(3)).shape == (3,)
assert not [name for name, module in sys.modules.items() if type(module).__name__ in ("Later", "Lean")]
print("whole")
"""


def test_torch_is_whole_once_it_is_asked_for_more(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "train.py"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.stdout == "whole\n", done.stderr


def test_a_constant_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "ours.py").write_text("WAIT_S = 10.0\n")
    script = "import ours; print(ours.WAIT_S)"

    def run(constants: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", script],
            cwd=tmp_path,
            env=environment(LEAN=constants),
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )

    assert run("ours.WAIT_S=2").stdout == "2.0\n"
    assert "has no attribute 'WAITS'" in run("ours.WAITS=2").stderr
