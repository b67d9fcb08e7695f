"""Two versions of a kernel side by side: figures, and lines paired by their text."""

from __future__ import annotations

from warpline.model.kernel import KernelInside, KernelLine
from warpline.view.kernel_compare import compare_kernels

SLOW = KernelInside(
    name="by_rows",
    device="NVIDIA H200",
    duration_ms=0.8,
    compute_percent=6.0,
    memory_percent=90.0,
    occupancy_percent=None,
    lines=(
        KernelLine("/a/slow.py", 24, stalls={"wait": 10.0}, text="inside = column < columns"),
        KernelLine("/a/slow.py", 25, 800, 800, {"long_scoreboard": 10.0}, "values = tl.load(x + column)"),
        KernelLine("/a/slow.py", 26, 6400, 800, {"lg_throttle": 80.0}, "tl.store(y + column * rows, values)"),
    ),
)
TILED = KernelInside(
    name="by_tiles",
    device="NVIDIA H200",
    duration_ms=0.1,
    compute_percent=12.5,
    memory_percent=80.0,
    occupancy_percent=50.0,
    lines=(
        KernelLine("/a/tiled.py", 30, 800, 800, {"long_scoreboard": 30.0}, "values = tl.load(x + column)"),
        KernelLine("/a/tiled.py", 31, stalls={"barrier": 20.0}, text="turned = tl.trans(values)"),
        KernelLine("/a/tiled.py", 32, 800, 800, {"wait": 50.0}, "tl.store(y + column * rows, turned)"),
    ),
)


def test_figures() -> None:
    shown = compare_kernels(SLOW, TILED)
    assert shown.summary == "by_rows 0.80 ms before, by_tiles 0.10 ms after: 8.00x"
    figures = {figure.name: (figure.before, figure.after, figure.change) for figure in shown.figures}
    assert figures["compute, of peak"] == ("6.0 %", "12 %", "+6.5 points")
    assert figures["occupancy, of peak"] == ("", "50 %", "")
    assert figures["sectors of memory touched"] == ("7200", "1600", "4.5 times fewer")
    assert shown.notes == ()


def test_lines_are_paired_and_those_of_one_kernel_stand_where_they_are() -> None:
    rows = compare_kernels(SLOW, TILED).lines
    assert [row.place for row in rows] == [
        "slow.py:24",
        "slow.py:25 > tiled.py:30",
        "tiled.py:31",
        "slow.py:26 > tiled.py:32",
    ]
    assert rows[0].source == "inside = column < columns"
    assert rows[3].source == "tl.store(y + column * rows, turned)"
    assert rows[3].memory == ("12 %", "100 %")
    assert rows[3].stalls == ("lg throttle 80 %", "wait 50 %")
    assert rows[2].memory == ("", "")


def test_another_device_is_said() -> None:
    other = KernelInside("by_rows", "NVIDIA A100", 0.0, None, None, None, ())
    shown = compare_kernels(SLOW, other)
    assert shown.notes == ("different devices: NVIDIA H200 before, NVIDIA A100 after",)
    assert shown.summary == "by_rows 0.80 ms before, by_rows 0 ms after"
