"""How long the windows are. Times in ns; pure functions of what was seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....wire.control import Windows

WARMUP_LEAST = 3
WARMUP_MOST = 40
WARMUP_MOST_NS = 12_000_000_000
#: Most steps while a queue of batches gets emptier. Where the loader takes twice as long as the rest of a
#: step, the 24 batches of 12 workers last for 48 steps: chosen as twice that.
EMPTYING_MOST = 100
SETTLED = 1.15  # most that the median of the last three steps may exceed the fastest, as a ratio
#: A host that launches kernels gets faster during some tenths of a second. In recorded runs with 3 warm-up
#: steps, host-bound steps were up to 13 % slower at the start of the timing window than at its end.
WARMUP_DEVICE_NS = 500_000_000
#: Length of the timing window. With a device it is longer: NVML's utilization is a mean of up to one second,
#: and the hosts of GPU machines were seen to change speed by 10 % from one half second to the next.
WINDOW_NS, WINDOW_DEVICE_NS = 500_000_000, 2_000_000_000
STEPS_A_SECOND = 800  # at most
#: Longest burst of batches for which the timing window gets longer, so that it has whole ones. Chosen.
BURST_NS = 3_000_000_000
#: The timing window ends after this time, however few steps of the class to measure it has.
TIMING_MOST_NS = 10_000_000_000
USUAL = 2.0  # times the fastest step; a longer one did something else too, as the first steps do


def settled(durations: Sequence[int], compiling: bool, least_ns: int = 0, *, emptying: bool = False) -> bool:
    """Whether step times are stable, or the warm-up has lasted long enough.

    ``durations``: of the warm-up steps so far, in ns. ``compiling``: something was compiled during the last
    one. ``least_ns``: the least total time of usual steps. ``emptying``: the last steps took batches that
    had been made before, and these become fewer.
    """
    if len(durations) < WARMUP_LEAST:
        return False
    if emptying and len(durations) < EMPTYING_MOST and sum(durations) <= WARMUP_MOST_NS:
        return False
    if len(durations) >= WARMUP_MOST or (sum(durations) > WARMUP_MOST_NS and not compiling):
        return True
    last, quickest = sorted(durations[-3:])[1], min(durations)
    if sum(duration for duration in durations if duration <= USUAL * quickest) < least_ns:
        return False
    return not compiling and last <= SETTLED * quickest


def timed_steps(step_ns: int, window_ns: int = WINDOW_NS) -> int:
    """Number of steps for a timing window of ``window_ns``; at least 10 fast or 3 slow ones."""
    if step_ns >= 5_000_000_000:
        return 2
    if step_ns >= 1_000_000_000:
        return 3
    least = 6 if step_ns >= 200_000_000 else 10
    return max(least, min(_most(window_ns), window_ns // max(step_ns, 1)))


def more_timed_steps(done: int, elapsed_ns: int, window_ns: int = WINDOW_NS) -> int:
    """Number of steps to add to a timing window of ``done`` steps that took only ``elapsed_ns``; 0: none."""
    if elapsed_ns >= 0.6 * window_ns or done >= _most(window_ns):
        return 0
    return max(1, timed_steps(elapsed_ns // done, window_ns) - done)


def whole_bursts(steps: int, burst: int, step_ns: int) -> int:
    """``steps`` and as many more as make it a multiple of ``burst``, where that takes at most ``BURST_NS``:
    workers that began together give their batches together, and a part of a burst has another mean."""
    return -(-steps // burst) * burst if burst * step_ns <= BURST_NS else steps


def _most(window_ns: int) -> int:
    return STEPS_A_SECOND * window_ns // 1_000_000_000


#: What a window's step takes, in plain steps: on a device the step that times waits took 1.6 and the one that
#: records operators 3 of trl's DPO (5 s each, one run on an H100), captured ones 1.0 to 1.5 there. Two steps
#: record operators. To stop the profiler and to write counts as one more. Chosen above these, not fitted.
SURVEYED, SURVEYED_DEVICE, CAPTURED = 6, 8, 2


def in_time(windows: Windows, left_ns: int, step_ns: int, device: bool) -> Windows:
    """``windows``, with fewer steps where steps of ``step_ns`` do not fit into ``left_ns``.

    In order of importance: one step is timed, one captured, the survey, a rehearsal of the capture, and then
    more steps are timed and captured."""
    surveyed = SURVEYED_DEVICE if device else SURVEYED
    timed_ns = timed_steps(step_ns, WINDOW_DEVICE_NS if device else WINDOW_NS) * step_ns
    others = surveyed + CAPTURED * (windows.captured + 3)  # with a rehearsal, a weighed step, the writing
    if timed_ns + others * step_ns <= left_ns:
        return windows
    left = left_ns // max(step_ns, 1) - 1 - 2 * CAPTURED
    survey = left >= surveyed
    left -= surveyed * survey
    rehearse = left >= CAPTURED
    left -= CAPTURED * rehearse
    timed = 1 + max(0, min(2, left))
    captured = 1 + max(0, min(windows.captured - 1, (left - 2) // CAPTURED - 1))  # several: one is weighed
    return replace(
        windows, timed=timed, captured=captured, survey=survey, rehearse=rehearse, look=False, sampled=0
    )


def captured_steps(wanted: int, lines: int) -> int:
    """Number of steps to capture, at most ``wanted``, if a step runs ``lines`` lines of Python. The limit is
    10 million records: 160 MB while they are written, about a fifth of that in the packed run."""
    return max(1, min(wanted, 10_000_000 // max(lines, 1)))


#: A surveyed step with so many operator calls is weighed: recorded alone, to see how large its trace is.
#: Recorded runs have 2 to 50 events for each call, half of them more than 8; 40,000 events are 15 MB.
WEIGHED_CALLS = 5_000
#: Bytes of trace to which the usual number of steps is reduced. For each event of about 380 bytes, torch
#: needs 2 KB of memory and 8 microseconds to stop and to write (``benchmarks/profiler_stop.py``, torch 2.13):
#: 420 MB and 1.7 s.
QUICK_BYTES = 80_000_000


def is_weighed(captured: int, calls: int) -> bool:
    """Whether to see how large a step's trace is before ``captured`` steps are recorded. More than the usual
    number is what the user asked for. ``calls``: of operators in a step, 0 if that is unknown."""
    return 1 < captured <= USUAL_STEPS and calls >= WEIGHED_CALLS


#: Bytes of trace after which a longer capture pauses: what was recorded is written, and its memory is free
#: again. These are 65,000 events of 380 bytes, for which torch holds about 130 MB (``profiler_stop.py``).
SLICE_BYTES = 25_000_000
#: What a call of an operator is taken to have before the first recording: between the 8 that half of the
#: recorded runs exceed and the 50 of the largest, at 380 bytes for each event.
_BYTES_A_CALL = 20 * 380


def first_slice(calls: int) -> int:
    """Number of steps to capture before the first pause. ``calls``: of operators in a step, 0 if that is
    unknown."""
    return max(1, SLICE_BYTES // (calls * _BYTES_A_CALL)) if calls else USUAL_STEPS


def next_slice(size: int, steps: int) -> int:
    """The same for the next pause, after ``steps`` steps whose trace has ``size`` bytes."""
    return max(1, steps * SLICE_BYTES // max(size, 1))


#: Largest trace, in bytes before packing. Packing divides it by about 12, so a run stays under 100 MB.
TRACE_MOST_BYTES = 800_000_000
USUAL_STEPS = 5  # the default number of captured steps


def fewer_steps(captured: int, size: int, most: int = TRACE_MOST_BYTES) -> int:
    """Number of steps to capture instead of ``captured``, whose trace has ``size`` bytes; 0: no change."""
    return 0 if size <= most or captured == 1 else max(1, captured * most // size)
