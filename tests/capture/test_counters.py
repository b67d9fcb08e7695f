"""What tells how long a turn of a running loop takes: variables that grow by the same number each turn."""

from __future__ import annotations

from itertools import accumulate, cycle, islice
from pathlib import Path

from warpline.capture.counters import GAPS, LOOKS, Counter, Values, counted, counters, values

TURN_S = 0.02
#: When a process is looked at in 5 seconds.
TIMES = list(accumulate(gap * 5 / LOOKS for gap in islice(cycle(GAPS), LOOKS)))


def looks(**variables: object) -> list[tuple[float, Values]]:
    """Of functions of the number of turns so far."""
    return [
        (at, {("/train.py", "main", name): of(int(at / TURN_S)) for name, of in variables.items()})  # type: ignore[operator]
        for at in TIMES
    ]


def test_a_step_and_what_grows_with_it() -> None:
    found = counters(
        looks(step=lambda n: n, seen=lambda n: 32 * n, epoch=lambda n: n // 1000, size=lambda n: 32)
    )
    assert [(one.name, one.growth) for one in found] == [("step", 1), ("seen", 32)]
    for one in found:
        assert (one.file, one.function) == ("/train.py", "main")
        assert abs(one.turn_ms - 20) < 20 / one.turns + 1e-9


def test_a_steady_step_is_not_taken_for_several() -> None:
    """Looked at every 10 turns exactly it would grow by 10 each time."""
    for turn_s in (0.0041, 0.01, 0.0125, 0.02, 0.05):
        points = [(at, {("f", "g", "step"): int(at / turn_s)}) for at in TIMES]
        (one,) = counters(points)
        assert one.growth == 1


def test_a_step_that_begins_again_with_each_epoch() -> None:
    (one,) = counters(looks(step=lambda n: n % 160))
    assert one.growth == 1
    assert abs(one.turn_ms - 20) < 1


def test_what_does_not_count_is_none() -> None:
    assert (
        counters(looks(loss=lambda n: n * 7919 % 1000, left=lambda n: 10_000 - n, slow=lambda n: n // 20))
        == []
    )
    assert counters(looks(step=lambda n: n)[:4]) == []
    assert counters([]) == []


def variable(name: str, said: object) -> dict[str, object]:
    return {"name": name, "addr": 1, "arg": False, "repr": said}


def test_values_are_those_of_the_main_threads_user_functions() -> None:
    inner = {
        "name": "main",
        "filename": "/train.py",
        "locals": [variable("step", "12"), variable("lr", "0.1")],
    }
    outer = {"name": "main", "filename": "/train.py", "locals": [variable("step", "3"), variable("x", None)]}
    library = {"name": "fit", "filename": "/lib/trainer.py", "locals": [variable("step", "5")]}
    module = {"name": "<module>", "filename": "/train.py", "locals": None}
    threads = [
        {"thread_name": "MainThread", "os_thread_id": 7, "frames": [inner, library, outer, module]},
        {"thread_name": "Thread-1", "os_thread_id": 8, "frames": [{**inner, "name": "other"}]},
    ]
    assert values(threads, 5, lambda file: not file.startswith("/lib")) == {("/train.py", "main", "step"): 12}


def test_a_sum_is_no_counter(tmp_path: Path) -> None:
    """It grows as steadily, by 1 as far as a few looks can tell: its time would be that of no loop."""
    script = tmp_path / "train.py"
    script.write_text(
        "for epoch in range(9):\n"
        "    for step, (x, y) in enumerate(batches):\n"
        "        seen += 32\n        late = late + 1\n        lines = []\n"
        "        correct += int(hits(x, y).sum())\n        tokens = tokens + x.numel()\n"
    )
    assert counted(str(script)) == {"epoch", "step", "x", "y", "seen", "late"}
    sums = looks(step=lambda n: n, correct=lambda n: 27 * n + n * 7919 % 13)
    assert [one.name for one in counters(sums)] == ["correct", "step"]
    script.write_text("for (")
    assert counted(str(script)) == counted(str(tmp_path)) == counted("<string>") == frozenset()


def test_the_time_is_that_between_the_looks() -> None:
    points = [(10.0 + at, {("f", "g", "n"): 4 + 3 * round(100 * at)}) for at in (0, 0.31, 0.7, 1, 1.5, 2)]
    assert counters(points) == [Counter("f", "g", "n", 3, 200, 10.0)]
