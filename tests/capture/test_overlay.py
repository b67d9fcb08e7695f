"""Steps timed with edited sources laid over in memory: everywhere, and nowhere on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.capture.launching import LIMIT_S, PYTHONS, request, write
from warpline.capture.timing import time_steps
from warpline.model.problem import Problem

MAIN = """\
import inspect, os, torch
import part
FACTOR = 1
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 10**6
    def __getitem__(self, at):
        assert os.path.exists(__file__) and part.__file__.startswith(os.path.dirname(__file__))
        return torch.tensor([float(part.VALUE * FACTOR)])
def main():
    assert f"seen {part.VALUE}" in inspect.getsource(part)
    net = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(net.weight)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
    for x in torch.utils.data.DataLoader(Data(), 1, num_workers=1, multiprocessing_context="CONTEXT"):
        net(x).sum().backward()
        optimizer.step()
if __name__ == "__main__":
    main()
"""
PART = "VALUE = 1  # seen 1\n"
LOOP = """\
import torch
net = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
while True:
    net(torch.randn(4, 16)).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("context", ["spawn", "fork"])
def test_edits_reach_the_main_module_other_modules_and_workers(
    tmp_path: Path, context: str, python: str
) -> None:
    main = MAIN.replace("CONTEXT", context)
    script, part = write(tmp_path, main), write(tmp_path, PART, "part.py")
    asked = request(script, python, warmup=1)
    overlay = {str(script): main.replace("FACTOR = 1", "FACTOR = 5"), str(part): PART.replace("1", "3")}
    changed = time_steps(asked, overlay, steps=3)
    assert changed.losses[:4] == (15.0,) * 4
    assert len(changed.steps_ns) == 3
    assert changed.step_source == "optimizer"
    assert changed.peak_bytes > 0
    assert script.read_text() == main
    assert part.read_text() == PART


def test_both_sides_start_from_the_same_seed(tmp_path: Path) -> None:
    asked = request(write(tmp_path, LOOP), warmup=1)
    first, second = (time_steps(asked, steps=5) for _ in range(2))
    assert first.losses[:5] == second.losses[:5]
    assert len(set(first.losses[:5])) == 5


@pytest.mark.parametrize(
    ("text", "limit_s", "message"),
    [
        (
            "import torch\n1 / 0\n",
            LIMIT_S,
            "train.py failed with ZeroDivisionError: division by zero, before",
        ),
        ("import torch\nwhile True: pass\n", 6.0, "train.py made no step within 6 s (--timeout)"),
        ("import torch\ndef (\n", LIMIT_S, "train.py failed with SyntaxError: "),
    ],
)
def test_a_candidate_that_fails_costs_only_itself(
    tmp_path: Path, text: str, limit_s: float, message: str
) -> None:
    script = write(tmp_path, LOOP)
    with pytest.raises(Problem) as caught:
        time_steps(request(script, timeout_s=limit_s), {str(script): text})
    assert str(caught.value).startswith(message)
    assert caught.value.status == 1
    assert script.read_text() == LOOP


def test_a_loss_that_is_no_number_is_told(tmp_path: Path) -> None:
    text = LOOP.replace(".sum()", ".sum().log().mul(float('nan'))")
    timing = time_steps(request(write(tmp_path, text), warmup=1), steps=2)
    assert timing.losses == ()
    assert timing.loss_not_finite_at == 0


def test_a_loss_that_the_script_writes_over_is_kept(tmp_path: Path) -> None:
    """As compiled code does that replays CUDA graphs, which there are none of here."""
    text = LOOP.replace(
        "    net(torch.randn(4, 16)).sum().backward()",
        "    loss = net(torch.randn(4, 16)).sum()\n    loss.backward()\n    loss.data.fill_(7.0)",
    )
    assert text != LOOP
    asked = request(write(tmp_path, LOOP), warmup=1)
    plain = time_steps(asked, steps=3)
    script = write(tmp_path, text, "overwriting.py")
    assert time_steps(request(script, warmup=1), steps=3).losses[:3] == plain.losses[:3]
