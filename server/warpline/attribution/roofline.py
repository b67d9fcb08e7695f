"""Roofline: how close a line comes to the device's peak rates (Williams et al., 2009).

Two shares of the line's device time: the time of its flops at the peak rate, and the time of its bytes at the
bandwidth. The larger of the two names the limit.
"""

from __future__ import annotations

from collections.abc import Iterable

from warpline.attribution.peaks import Peaks
from warpline.model.dtypes import tf32_allowed
from warpline.model.profile import Op
from warpline.model.report import Bound, Roofline
from warpline.wire.facts import Flags
from warpline.wire.precision import HALF
from warpline.wire.run import Site
from warpline.wire.sites import Triton, facts_of

#: If a line reaches less than this share of both peaks, and its kernels are shorter than the time below,
#: launch overhead is the limit.
LAUNCH_BOUND_PERCENT = 10.0
LAUNCH_BOUND_KERNEL_MS = 0.010


#: Tensor cores that support these run them at twice the rate of half precision (data sheets of Ada and later;
#: int8 from Ampere on).
_ONE_BYTE = {"c10::Float8_e4m3fn", "c10::Float8_e5m2", "signed char"}


def roofline(
    ops: Iterable[Op],
    device_ms: float,
    launches: float,
    peaks: Peaks,
    flags: Flags,
    given: float = 0.0,
) -> Roofline | None:
    """The roofline of all operators of a line together; None if none of them has a formula.

    ``flops`` and ``bytes`` are per step. Bytes count for the operator that moves them; an operator that only
    calls others has no device time of its own. ``given``: bytes of the tensors passed to Triton kernels. They
    count as read or written once, unless the device could not move them in the recorded time."""
    flops = moved = ideal_ms = 0.0
    for op in ops:
        if op.flops:
            flops += op.flops * op.count
            ideal_ms += op.flops * op.count / _peak(op, peaks, flags) * 1e3
        if op.device_ms > 0:
            moved += (op.bytes or 0.0) * op.count
    if moved + given <= peaks.bytes_per_s * device_ms / 1e3:
        moved += given
    if not device_ms or not (flops or moved):
        return None
    compute = 100 * ideal_ms / device_ms
    memory = 100 * moved / peaks.bytes_per_s * 1e3 / device_ms
    best = min(100.0, max(compute, memory))
    bound: Bound = "compute" if compute >= memory else "memory"
    if launches and device_ms / launches < LAUNCH_BOUND_KERNEL_MS and best < LAUNCH_BOUND_PERCENT:
        bound = "launch"
    return Roofline(flops, moved, best, bound)


def given_to_triton(sites: Iterable[Site]) -> dict[tuple[str, int], float]:
    """Bytes per step of the tensors passed to Triton kernels, by (file, line) of the launch."""
    found: dict[tuple[str, int], float] = {}
    for site in sites:
        if site.kind == Triton.KIND:
            place = site.file, site.line
            found[place] = found.get(place, 0.0) + float(facts_of(Triton, site).bytes or 0)
    return found


def _peak(op: Op, peaks: Peaks, flags: Flags) -> float:
    kinds = {dtype for dtype in op.dtypes if dtype not in ("Scalar", "ScalarList", "")}
    if kinds & _ONE_BYTE:
        return 2 * peaks.half
    if kinds & HALF:
        return peaks.half
    if "double" in kinds:
        return peaks.fp64
    return peaks.tf32 if tf32_allowed(op.name, flags) else peaks.fp32
