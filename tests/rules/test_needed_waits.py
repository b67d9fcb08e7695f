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
