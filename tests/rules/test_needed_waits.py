"""Waits for the device that protect memory of the host: an edit without them would break the script."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.diagnosis import diagnose

CODE = """\
#> totals idle_ms=6
import torch

loader = torch.utils.data.DataLoader(rows)
#^ site loader num_workers=2 pin_memory={pinned}
for batch in loader:{use}
    {wait}  #> cost cpu_ms=12 sync_ms=12 step_ms=0.1
    moved = batch.to("cuda", non_blocking=True)
    #^ kernel "Memcpy HtoD ({memory} -> Device)" device_ms=0.5 kind=copy
    train(moved)  #> cost device_ms=14 idle_ms=6 step_ms=20
"""


def fixes(wait: str, memory: str = "Pageable", pinned: bool = False) -> int:
    use = "  #> use loader" if pinned else ""
    code = CODE.format(wait=wait, memory=memory, pinned=str(pinned).lower(), use=use)
    example = read_example(code)
    found = diagnose(example.profile, texts(example)).findings
    (waiting,) = (one for one in found if one.rule == "synchronize-in-step")
    return len(waiting.fixes)


@pytest.mark.parametrize(
    "wait",
    [
        "torch.cuda.synchronize()",
        "torch.accelerator.synchronize()",
        "torch.cuda.current_stream().synchronize()",
    ],
)
def test_a_wait_for_all_work_can_go(wait: str) -> None:
    assert fixes(wait) == 1


@pytest.mark.parametrize("wait", ["copied[k].synchronize()", "self.side.synchronize()", "done.synchronize()"])
def test_what_an_event_or_a_stream_is_waited_for_is_not_known(wait: str) -> None:
    assert fixes(wait) == 0


def test_pinned_memory_of_the_scripts_own_may_be_filled_after_the_wait() -> None:
    assert fixes("torch.cuda.synchronize()", "Pinned") == 0
    assert fixes("torch.cuda.synchronize()", "Pinned", pinned=True) == 1


RING = """\
#> totals idle_ms=6
import torch

slots = [torch.empty(64, 8, pin_memory=True) for _ in range(3)]
copied = [torch.cuda.Event() for _ in slots]
average = torch.zeros(8, device="cuda")
for step in range(1000):
    k = step % 3  #> cost calls=1 cpu_ms=0.001; {waited}
    {fill}  #> cost calls=1 cpu_ms=2
    kept.mul_(0.9).copy_(average)  #> cost calls=1; kernel copy_kernel device_ms=0.01
    batch = [part.to("cuda") for part in slots[k].unbind()]
    #^ kernel "Memcpy HtoD (Pinned -> Device)" device_ms=5 kind=copy
    #^ cost calls=1 cpu_ms=5 sync_ms=5 idle_ms=5 step_ms=5
    copied[k].record()
    train(batch)  #> cost calls=1 device_ms=14 idle_ms=1 step_ms=15
"""
EVENT = "k = step % 3; copied[k].synchronize()"


@pytest.mark.parametrize(
    ("fill", "event", "edits"),
    [
        ("torch.index_select(rows, 0, order(k), out=slots[k])", False, 0),
        ("slots[k].numpy()[:] = drawn(step)", False, 0),
        ("torch.index_select(rows, 0, order(k), out=slots[k])", True, 1),
        ("log(step)", False, 1),  # nothing is filled: the slots are parts of the data
    ],
)
def test_memory_that_the_steps_fill_again_is_copied_without_waiting_only_behind_an_event(
    fill: str, event: bool, edits: int
) -> None:
    waited = "site sync what=synchronize calls=1 wait_ms=0.01 direct=true" if event else "cost calls=1"
    code = RING.format(fill=fill, waited=waited)
    code = code.replace("k = step % 3", EVENT) if event else code
    example = read_example(code)
    found = diagnose(example.profile, texts(example)).findings
    (copying,) = (one for one in found if one.rule == "blocking-host-copy")
    assert len(copying.fixes) == edits
