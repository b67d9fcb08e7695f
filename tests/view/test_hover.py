"""The card of a line: one line that sums it up, then tables that can be read where columns have no space."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.lsp.folder import cost
from warpline.model import report as r
from warpline.view.anchor_lines import Standing
from warpline.view.hover import card

LINE = replace(cost(Path("/train.py"), 4, "step", 12.0), roofline=None)
REPORT = r.Report(
    1,
    "/train.py",
    (),
    r.Environment("3.11.0", "2.13.0", r.Device("cuda", "NVIDIA H200", 1)),
    r.Steps(5, 48.0, 60.0, 1.25, 90.0),
    (LINE,),
    r.Unattributed(0.0, 0.0),
    r.Attributed(100.0, 100.0),
    (),
    (),
)


def test_the_time_stands_before_the_name() -> None:
    words = card(Standing(3, (LINE,), False), REPORT)
    assert words.split("\n\n") == [
        "**25 % of the step · 12.0 ms** of 48.0 ms `step`",
        "device 9.00 ms (forward 3.00, backward 6.00), device idle 3.00 ms, host 6.00 ms; "
        "2 calls and 3 launches a step; 3.0 MiB at the memory peak",
        "| device | kernel |  |\n|--:|:--|:--|\n| 6.00 ms | `gemm<float>` | backward, 2 launches |",
        "| device | operator |  |\n|--:|:--|:--|\n| 3.00 ms | `aten::mm 64x128 128x32` | forward, 1 call |",
        "Measured on NVIDIA H200.",
    ]


def test_on_a_cpu_there_is_no_device_beside_the_host() -> None:
    here = replace(REPORT, environment=r.Environment("3.11.0", "2.13.0", r.Device("cpu", "AMD EPYC", 1)))
    words = card(Standing(3, (replace(LINE, kernels=()),), False), here)
    assert words.split("\n\n")[1:3] == [
        "operators 9.00 ms (forward 3.00, backward 6.00), outside of operators 3.00 ms; "
        "2 calls and 3 operators a step; 3.0 MiB at the memory peak",
        "| time | operator |  |\n|--:|:--|:--|\n| 3.00 ms | `aten::mm 64x128 128x32` | forward, 1 call |",
    ]


def test_as_plain_text_the_columns_are_aligned() -> None:
    op = LINE.ops[0]
    line = replace(LINE, kernels=(), ops=(op, replace(op, name="aten::add", count=10.0, device_ms=0.5)))
    words = card(Standing(3, (line,), False), REPORT, markdown=False)
    assert words.split("\n\n")[2].split("\n") == [
        " device  operator",
        "3.00 ms  aten::mm 64x128 128x32   forward, 1 call",
        "0.50 ms  aten::add 64x128 128x32  forward, 10 calls",
    ]
