"""Loops of plain Python: recorded where they begin and end only, and no operator on a wrong line by that."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.capture.launching import PYTHONS, Captured, request, write
from warpline import attribution, runs, trace
from warpline.capture.runner.lines import loops as quicklines
from warpline.capture.runner.lines.flow import loops
from warpline.model.profile import LineCost, Profile
from warpline.wire.records import AGAIN
from warpline.wire.run import Locations

LOOPS = """\
import torch

def walk(count):
    total = 0
    for value in range(count):
        if value & 1:
            total += value
        else:
            total -= 1
    return total

def sometimes(step, x):
    for bit in range(9000):
        x = torch.floor(x) if bit == 40 and step % 7 == 3 else x
        if bit == 50 and step % 7 == 3:
            x = torch.frac(x)
    return torch.ceil(x)

net = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(3000):
    x = torch.ones(4, 8) * walk(9000)
    loss = net(sometimes(step, x)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def captured(request_: str, tmp_path_factory: pytest.TempPathFactory) -> Captured:
    """Eight steps: at least one of them calls the operator in the loop, wherever they begin."""
    folder = tmp_path_factory.mktemp("loops")
    return Captured(request(write(folder, LOOPS), request_, steps=8, warmup=1), folder)


@pytest.fixture(scope="module", params=PYTHONS)
def request_(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def profile(captured: Captured) -> Profile:
    return attribution.attribute(trace.read(captured.run))


def at(profile: Profile, line: int) -> LineCost:
    return next(cost for cost in profile.lines if cost.line == line)


def test_a_loop_has_few_records_and_its_lines_have_their_counts(captured: Captured, profile: Profile) -> None:
    lines = captured.lines()
    assert sum(lines.get(("train.py", line), 0) for line in range(5, 10)) < 8 * 20
    estimated = runs.read(captured.run, "locations.json", Locations).estimated
    assert estimated
    assert at(profile, 7).calls == 4500
    assert at(profile, 9).calls == 4500
    assert all(at(profile, line).step_ms > 0 for line in (5, 6, 7, 9))


def test_an_operator_in_a_loop_is_on_its_line(profile: Profile) -> None:
    where: dict[str, set[int]] = {}
    for cost in profile.lines:
        for op in cost.ops:
            where.setdefault(op.name, set()).add(cost.line)
    assert where["aten::floor"] == {14}, "in a line that had no operator in most steps"
    assert where["aten::frac"] == {16}, "in a line that most steps do not come to"
    assert where["aten::ceil"] == {17}
    assert at(profile, 14).calls == at(profile, 15).calls == 9000, "that loop has all its records"


def test_the_account_is_closed(profile: Profile) -> None:
    total = sum(cost.step_ms for cost in profile.lines) + profile.unattributed.step_ms
    assert total == pytest.approx(profile.steps.step_ms)


def code_of(function: Callable[..., object]) -> tuple[object, int]:
    return function.__code__, function.__code__.co_firstlineno


def searched(rows: list[int], wanted: int) -> int:
    found = 0
    for row in rows:
        if row == wanted:
            found += 1
    while found > 3:
        found -= 1
    print(found)
    return found


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code has no positions")
def test_each_loop_keeps_the_event_that_it_begins_with() -> None:
    code, first = code_of(searched)
    both = loops(code, [first + line for line in (2, 3, 4, 5, 6)])
    if sys.version_info >= (3, 12):
        members = sorted(sorted(line - first for line in lines) for _, lines in both)
        assert members == [[2, 3, 4, 5, 6]], "control goes from one to the other: one time to share"
    kept = loops(code, [first + 3, first + 4])
    assert all(first + 2 not in lines for _, lines in kept), "a line that was not named is always recorded"
    assert loops(code, [first + 7]) == [], "nothing leads to it but other lines"


def recorded(*pairs: tuple[int, int]) -> SimpleNamespace:
    flat = array("q", [value for pair in pairs for value in pair])
    return SimpleNamespace(all_records=[SimpleNamespace(pairs=flat)])


LOOP = quicklines.Loop("code", {4}, {1: 0.25, 2: 0.75}, {1: 100, 2: 100})


def test_a_loop_s_time_is_shared_out_among_its_lines() -> None:
    locations = recorded((0, 7), (1000, 1), (101_000, 8), (102_000, 2))
    quicklines.share_out([LOOP], locations)
    assert locations.all_records[0].pairs.tolist() == [
        0, 7, 1000, 1, 26_000, AGAIN | 2, 101_000, 8, 102_000, 2,
    ]  # fmt: skip


@pytest.mark.parametrize(("moment", "wrong"), [(500, False), (2000, True), (101_500, False), (103_000, True)])
def test_an_operator_that_begins_in_a_loop_is_noticed(moment: int, wrong: bool) -> None:
    locations = recorded((0, 7), (1000, AGAIN | 1), (101_000, 8), (102_000, 2))
    assert quicklines.surprised_by([LOOP], locations, [moment]) == ({"code"} if wrong else set())


def test_so_it_is_on_a_line_of_a_function_that_was_left_out_unseen() -> None:
    code = test_so_it_is_on_a_line_of_a_function_that_was_left_out_unseen.__code__
    locations = recorded((0, 7), (1000, AGAIN | 3), (101_000, 8))
    locations.of_code = {id(code): {50: 1, 51: 3}}
    function = quicklines.Loop(code, None, {1: 1.0}, {1: 100})
    assert quicklines.surprised_by([function], locations, [2000]) == {code}
    assert quicklines.surprised_by([function], locations, [500]) == set()


def test_a_script_with_few_steps_has_enough_of_them(tmp_path: Path) -> None:
    """The search for loops takes no more steps than its windows have for it."""
    script = write(tmp_path, LOOPS.replace("range(3000)", "range(20)"))
    captured = Captured(request(script, steps=5), tmp_path)
    assert len(captured.manifest.captured) == 5
