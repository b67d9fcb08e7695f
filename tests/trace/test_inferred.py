"""Lines of calls that were recorded at their ``def`` alone, found by the operators that they run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.kineto import KinetoRun, approx, at_line, closed
from warpline.attribution import attribute
from warpline.model.profile import Profile
from warpline.trace.columns import Trace
from warpline.trace.inferred import with_inferred
from warpline.wire.run import DeviceFacts

CPU = DeviceFacts("cpu", "a CPU", 1)
#: The caller's line, the ``def``, and lines of the function; its caller is another function.
CALLER, DEF, FIRST, SECOND = 3, 10, 11, 12


def in_full(run: KinetoRun, at: float, *operators: str) -> None:
    """A call of 200 us with all lines; the second operator stands at the second line."""
    run.library(at, DEF)
    run.library(at + 0.001, FIRST)
    run.op(operators[0], at + 20, 40)
    run.library(at + 80, SECOND)
    run.op(operators[1], at + 100, 60)
    run.library(at + 200, CALLER, again=True)


def brief(run: KinetoRun, at: float, *operators: str) -> None:
    """A call of 400 us recorded at its ``def``."""
    run.library(at, DEF)
    run.op(operators[0], at + 40, 80)
    run.op(operators[1], at + 200, 120)
    run.library(at + 400, CALLER, again=True)


def inferred(run: KinetoRun, *ran_before: tuple[int, int, int, int]) -> tuple[Trace, Profile]:
    trace = run.trace()
    places = [place if place[1] != CALLER else (0, CALLER, 1, -1) for place in trace.libraries.locations]
    places += ran_before
    at_def = tuple(at for at, place in enumerate(places) if place[1] == DEF)
    table = replace(trace.libraries, functions=("f", "g"), locations=tuple(places), at_def=at_def)
    trace = replace(trace, libraries=table, inside=with_inferred(trace.inside, trace.host, table))
    return trace, attribute(trace)


def begun(path: Path) -> KinetoRun:
    run = KinetoRun(path, 1000, device=CPU)
    run.line(0, 20)
    run.library(0, CALLER)
    return run


def by_line(profile: Profile) -> dict[int, tuple[float, float]]:
    assert closed(profile) == approx(1.0)
    cost = at_line(profile, 20)
    assert sum(entry.step_ms for entry in cost.inside) == approx(cost.step_ms)
    return {entry.line: (entry.step_ms, entry.device_ms) for entry in cost.inside}


def test_a_call_has_the_lines_of_one_that_does_the_same(tmp_path: Path) -> None:
    run = begun(tmp_path)
    in_full(run, 100, "aten::mm", "aten::add")
    brief(run, 400, "aten::mm", "aten::add")
    trace, profile = inferred(run)
    found = by_line(profile)
    assert DEF not in found
    # Between the operators the second line begins where it does in the other call: half of the way.
    assert found[FIRST] == (approx(0.08 + 0.16), approx(0.04 + 0.08))
    assert found[SECOND] == (approx(0.12 + 0.24), approx(0.06 + 0.12))
    assert trace.inside.inferred.sum() == 2
    entry = next(each for each in at_line(profile, 20).inside if each.line == SECOND)
    assert entry.calls == approx(2)


@pytest.mark.parametrize("operators", [("aten::mm", "aten::mul"), ("aten::add", "aten::mm")])
def test_a_call_that_does_something_else_stays_at_its_def(tmp_path: Path, operators: tuple[str, str]) -> None:
    run = begun(tmp_path)
    in_full(run, 100, "aten::mm", "aten::add")
    brief(run, 400, *operators)
    assert by_line(inferred(run)[1])[DEF] == (approx(0.4), approx(0.2))


def test_calls_that_do_the_same_at_other_lines_say_nothing(tmp_path: Path) -> None:
    run = begun(tmp_path)
    in_full(run, 0, "aten::mm", "aten::add")
    run.library(250, DEF)
    run.library(250.001, FIRST)
    run.op("aten::mm", 270, 20)
    run.library(300, SECOND + 1)
    run.op("aten::add", 310, 20)
    run.library(350, CALLER, again=True)
    brief(run, 400, "aten::mm", "aten::add")
    assert by_line(inferred(run)[1])[DEF] == (approx(0.4), approx(0.2))


@pytest.mark.parametrize("module", [-1, 0])
def test_a_line_that_ran_in_no_call_in_full_may_be_that_of_any(tmp_path: Path, module: int) -> None:
    run = begun(tmp_path)
    in_full(run, 100, "aten::mm", "aten::add")
    brief(run, 400, "aten::mm", "aten::add")
    found = by_line(inferred(run, (0, SECOND, 0, -1), (0, SECOND + 1, 0, module))[1])
    assert (DEF in found) == (module == -1)  # what ran for another module says nothing


def test_a_call_that_does_not_end_stays_at_its_def(tmp_path: Path) -> None:
    run = begun(tmp_path)
    in_full(run, 100, "aten::mm", "aten::add")
    run.library(600, DEF)
    run.op("aten::mm", 640, 80)
    run.op("aten::add", 800, 120)
    assert by_line(inferred(run)[1])[DEF] == (approx(0.4), approx(0.2))


def test_the_calls_that_it_makes_count_too(tmp_path: Path) -> None:
    """Where it comes back from a call, it is at the line that made it, and theirs are their own."""
    run = begun(tmp_path)
    for at, lines in ((100, (FIRST, SECOND)), (500, (DEF, None))):
        run.library(at, DEF)
        if lines[1]:
            run.library(at + 0.001, FIRST)
        run.library(at + 50, 40, "inner")
        run.op("aten::mm", at + 60, 30)
        run.library(at + 100, lines[0], again=True)
        if lines[1]:
            run.library(at + 150, lines[1])
        run.op("aten::add", at + 160, 30)
        run.library(at + 200, CALLER, again=True)
    found = by_line(inferred(run)[1])
    assert DEF not in found
    assert found[FIRST] == (approx(0.2), approx(0))
    assert found[SECOND] == (approx(0.1), approx(0.06))
    assert found[40] == (approx(0.1), approx(0.06))
