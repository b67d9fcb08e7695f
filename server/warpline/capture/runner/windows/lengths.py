"""How long the windows are. Times in ns; pure functions of what was seen."""

from __future__ import annotations

from collections.abc import Sequence

WARMUP_LEAST = 3
WARMUP_MOST = 40
WARMUP_MOST_NS = 12_000_000_000
SETTLED = 1.15  # the median of the last three steps against the quickest so far
#: A host that launches kernels gets quicker for some tenths of a second: steps of recorded runs that wait for
#: it were up to 13 % slower at the beginning of the timing window than at its end after 3 steps of warm-up.
WARMUP_DEVICE_NS = 500_000_000
#: The timing window. With a device it is longer: NVML's utilisation is a mean of up to the last second, and
#: hosts of GPU machines were seen to be a tenth quicker or slower from one half second to the next.
WINDOW_NS, WINDOW_DEVICE_NS = 500_000_000, 2_000_000_000
STEPS_A_SECOND = 800  # at most
#: The timing window ends after this time, with whatever steps of one class it has.
TIMING_MOST_NS = 10_000_000_000
USUAL = 2.0  # times the quickest: a longer step did something else as well, as the first ones do


def settled(durations: Sequence[int], compiling: bool, least_ns: int = 0) -> bool:
    """True once step times have come to rest, or long enough was waited for it.

    ``durations`` are those of the warm-up so far; ``compiling`` says that something was compiled
    during the last one; the usual steps among them take ``least_ns`` together.
    """
    if len(durations) < WARMUP_LEAST:
        return False
    if len(durations) >= WARMUP_MOST or (sum(durations) > WARMUP_MOST_NS and not compiling):
        return True
    last, quickest = sorted(durations[-3:])[1], min(durations)
    if sum(duration for duration in durations if duration <= USUAL * quickest) < least_ns:
        return False
    return not compiling and last <= SETTLED * quickest


def timed_steps(step_ns: int, window_ns: int = WINDOW_NS) -> int:
    """Steps of the timing window: so long, but at least 10 of quick and 3 of slow steps."""
    if step_ns >= 5_000_000_000:
        return 2
    if step_ns >= 1_000_000_000:
        return 3
    least = 6 if step_ns >= 200_000_000 else 10
    return max(least, min(_most(window_ns), window_ns // max(step_ns, 1)))


def more_timed_steps(done: int, elapsed_ns: int, window_ns: int = WINDOW_NS) -> int:
    """Steps to add to a timing window of ``done`` steps: it turned out shorter than was expected."""
    if elapsed_ns >= 0.6 * window_ns or done >= _most(window_ns):
        return 0
    return max(1, timed_steps(elapsed_ns // done, window_ns) - done)


def _most(window_ns: int) -> int:
    return STEPS_A_SECOND * window_ns // 1_000_000_000


def captured_steps(wanted: int, lines: int) -> int:
    """Steps to capture when one runs this many lines of Python: 10 million records are enough. They are
    160 MB while they are written, and about a fifth of that once the run is packed."""
    return max(1, min(wanted, 10_000_000 // max(lines, 1)))


#: Of a trace, as it is written. A packed one is about a twelfth of that, so a run stays under 100 MB.
TRACE_MOST_BYTES = 800_000_000
USUAL_STEPS = 5  # the default number of captured steps


def fewer_steps(captured: int, size: int, most: int = TRACE_MOST_BYTES) -> int:
    """Steps to capture instead of ``captured``, for a trace of ``size`` bytes; 0: they are few enough."""
    return 0 if size <= most or captured == 1 else max(1, captured * most // size)
