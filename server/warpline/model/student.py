"""Student's t: how far the mean of a few readings may be from the truth."""

from __future__ import annotations

# Two-sided 95 % points of Student's t by degrees of freedom; beyond the table the last one is used,
# which is a little too wide.
_T95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)


def student(degrees: int) -> float:
    """The two-sided 95 % point of Student's t."""
    return _T95[min(degrees, len(_T95)) - 1]
