"""The lengths of the windows: pure functions."""

from __future__ import annotations

from types import SimpleNamespace

from warpline.capture.runner.device import nvml
from warpline.capture.runner.device.stamps import DeviceStamps, on_device
from warpline.capture.runner.windows import lengths
from warpline.wire.control import Windows

MS = 1_000_000


def test_warm_up_ends_when_times_have_settled() -> None:
    assert not lengths.settled([900 * MS, 10 * MS], compiling=False), "three are the least"
    assert not lengths.settled([900 * MS, 10 * MS, 14 * MS, 13 * MS], compiling=False)
    assert lengths.settled([900 * MS, 10 * MS, 10 * MS, 11 * MS], compiling=False)
    assert not lengths.settled([900 * MS, 10 * MS, 10 * MS, 11 * MS], compiling=True)


def test_a_host_that_launches_kernels_is_given_time_to_get_quick() -> None:
    first = [3000 * MS, 40 * MS]  # loads libraries, and is no usual step
    assert lengths.settled([*first, *[25 * MS] * 3], compiling=False)
    least = lengths.WARMUP_DEVICE_NS
    assert not lengths.settled([*first, *[25 * MS] * 17], compiling=False, least_ns=least)
    assert lengths.settled([*first, *[25 * MS] * 19], compiling=False, least_ns=least)
    quick = [MS] * lengths.WARMUP_MOST
    assert lengths.settled(quick, compiling=False, least_ns=least), "so many steps are enough"


def test_warm_up_has_a_limit() -> None:
    rising = [10 * MS + at * 5 * MS for at in range(lengths.WARMUP_MOST)]
    assert not lengths.settled(rising[:-1], compiling=False)
    assert lengths.settled(rising, compiling=False)
    assert lengths.settled([4000 * MS, 6000 * MS, 8000 * MS], compiling=False), "long enough was waited"


def test_the_timing_window_is_long_enough_and_no_longer() -> None:
    assert lengths.timed_steps(0) == 400
    assert lengths.timed_steps(MS) == 400
    assert lengths.timed_steps(20 * MS) == 25
    assert lengths.timed_steps(100 * MS) == 10
    assert lengths.timed_steps(300 * MS) == 6
    assert lengths.timed_steps(2000 * MS) == 3
    assert lengths.timed_steps(10_000 * MS) == 2


def test_on_a_device_it_is_longer_than_what_nvml_takes_the_mean_of() -> None:
    window = lengths.WINDOW_DEVICE_NS
    assert window >= 2 * nvml.SETTLED_S * 1e9
    assert lengths.timed_steps(20 * MS, window) == 100
    assert lengths.timed_steps(MS // 4, window) == 1600
    assert lengths.timed_steps(2000 * MS, window) == 3
    assert lengths.more_timed_steps(10, 400 * MS, window) == 40
    assert lengths.more_timed_steps(100, 1300 * MS, window) == 0


def test_it_grows_when_steps_turned_out_shorter() -> None:
    assert lengths.more_timed_steps(10, 20 * MS) > 0
    assert lengths.more_timed_steps(10, 400 * MS) == 0
    assert lengths.more_timed_steps(400, 20 * MS) == 0


def test_steps_of_many_lines_are_captured_less_often() -> None:
    assert lengths.captured_steps(5, 1000) == 5
    assert lengths.captured_steps(5, 5_000_000) == 2
    assert lengths.captured_steps(5, 10**9) == 1


def device_of(times_ms: list[float | None]) -> SimpleNamespace:
    """A stand-in for a device whose events come to pass at these times; None: in a graph's capture."""
    coming = iter(times_ms)

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            self.at = next(coming)

        def elapsed_time(self, later: Event) -> float:
            if self.at is None or later.at is None:
                raise ValueError("Both events must be recorded before calculating elapsed time.")
            return later.at - self.at

    return SimpleNamespace(new_event=Event)


def test_steps_are_as_long_as_the_device_took_for_them() -> None:
    """The host queues two steps ahead, then waits: 1, 1, 58 ms, where the device took 20 ms for each."""
    stamps = DeviceStamps(device_of([0.0, 20.0, 40.0, 60.0]))
    for _ in range(4):
        stamps.mark()
    assert on_device((MS, MS, 58 * MS), stamps.durations_ns()) == (20 * MS, 20 * MS, 20 * MS)


def test_the_window_stays_as_long_as_it_was() -> None:
    """Another stream works on when the last event has come to pass."""
    assert sum(on_device((10 * MS, 10 * MS, 40 * MS), (10 * MS, 20 * MS, 10 * MS))) == 60 * MS


def test_without_the_device_s_times_the_host_s_stay() -> None:
    stamps = DeviceStamps(device_of([0.0, None, 40.0]))
    for _ in range(3):
        stamps.mark()
    assert stamps.durations_ns() is None
    assert on_device((3, 4), ()) == (3, 4)
    assert on_device((3, 4), (0, 0)) == (3, 4)


def test_only_large_steps_are_weighed() -> None:
    assert lengths.is_weighed(5, 5_000)
    assert not lengths.is_weighed(5, 4_999)
    assert not lengths.is_weighed(5, 0), "unknown"
    assert not lengths.is_weighed(1, 10**6), "there is nothing to choose"
    assert not lengths.is_weighed(6, 10**6), "asked for"


def test_a_long_capture_pauses_by_the_size_of_its_trace() -> None:
    assert lengths.first_slice(0) == lengths.USUAL_STEPS
    assert lengths.first_slice(10**6) == 1
    assert lengths.next_slice(2 * lengths.SLICE_BYTES, 1) == 1
    assert lengths.next_slice(lengths.SLICE_BYTES // 10, 5) == 50
    assert lengths.first_slice(100) > lengths.first_slice(1000)


def test_a_large_trace_has_fewer_steps() -> None:
    assert lengths.fewer_steps(5, 800_000_000) == 0
    assert lengths.fewer_steps(5, 2_000_000_000) == 2
    assert lengths.fewer_steps(5, 10**11) == 1
    assert lengths.fewer_steps(1, 10**11) == 0, "less than one step is none"


def test_windows_get_shorter_where_long_steps_do_not_fit_into_the_time_limit() -> None:
    usual = Windows()
    assert lengths.in_time(usual, 200_000 * MS, 5000 * MS, device=True) is usual
    assert lengths.in_time(usual, 10_000 * MS, 20 * MS, device=True) is usual
    least = lengths.in_time(usual, 38_000 * MS, 5000 * MS, device=True)
    assert (least.timed, least.captured, least.survey, least.rehearse) == (1, 1, False, True)
    none = lengths.in_time(usual, -5_000 * MS, 5000 * MS, device=True)
    assert (none.timed, none.captured, none.survey, none.rehearse) == (1, 1, False, False), "it is tried"
    for left in range(0, 120_000, 1000):
        found = lengths.in_time(usual, left * MS, 5000 * MS, device=True)
        steps = (found.timed or 3) + found.captured + found.rehearse + 2 * found.survey
        assert steps <= max(2, left / 5000), left
