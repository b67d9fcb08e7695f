"""Lines that run as one kernel, in words."""

from __future__ import annotations

from warpline.model.profile import Group
from warpline.view.marks import groups

FILE = "/project/model.py"
NAMES = {FILE: "model.py"}


def of(kernel: str, lines: tuple[int, ...], ms: float, backward: bool = False) -> Group:
    return Group(kernel, tuple((FILE, line) for line in lines), ms, backward)


def test_the_lines_of_one_kernel() -> None:
    assert groups([of("triton_poi_fused_add_0", (13, 11, 12), 2.1)], NAMES) == (
        "lines 11 to 13 of model.py run as one kernel: 2.10 ms (forward, triton_poi_fused_add_0)",
    )


def test_kernels_of_the_same_lines_stand_together() -> None:
    found = [
        of("triton_a", (3, 4), 1.0, backward=True),
        of("triton_b", (4, 3), 2.0, backward=True),
        of("triton_c", (3, 4), 2.5),
        of("triton_d", (3,), 9.0),
        of("nvjet_sm90_tst_64x80", (3, 4), 9.0),  # one of the two lines', which one is not known
    ]
    assert groups(found, NAMES) == (
        "lines 3 to 4 of model.py share 2 fused kernels: 3.00 ms (backward, the longest triton_b)",
        "lines 3 to 4 of model.py run as one kernel: 2.50 ms (forward, triton_c)",
    )
