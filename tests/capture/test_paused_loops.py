"""Before Python 3.12 the trace function is off while a quick loop runs, and nothing else changes."""

from __future__ import annotations

import builtins
import gc
import sys
import weakref
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, cast

import pytest

from tests.capture.launching import Captured, request, write
from warpline import attribution, runs, trace
from warpline.capture.runner.lines import locations as line_locations
from warpline.capture.runner.lines.paused import PAUSE, RESUME, Swapped, rewritten, written
from warpline.wire.run import Locations

SCRIPT = """\
import builtins, sys, torch

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        total = 0
        for bit in range(3000):
            if bit & 1:
                continue
            total += (index >> (bit & 7)) & 1
        return torch.full((16,), float(total))

before = Data.__getitem__.__code__
net = torch.nn.Linear(16, 16)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
for at, batch in enumerate(torch.utils.data.DataLoader(Data(), batch_size=4)):
    loss = net(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if at == 4000:
        break
left = [name for name in vars(builtins) if "warpline" in name]
print("as before:", Data.__getitem__.__code__ is before, left, sys.gettrace())
"""


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="sys.monitoring leaves out single lines")
def test_a_loop_before_an_operator_is_not_traced(tmp_path: Path) -> None:
    captured = Captured(request(write(tmp_path, SCRIPT), whole_run=True), tmp_path)
    lines = captured.lines()
    items = 3 * 4
    assert lines["train.py", 8] == lines["train.py", 13] == items, "the rest of the function is recorded"
    assert lines["train.py", 9] == items, "once a run, where it begins"
    estimated = dict(runs.read(captured.run, "locations.json", Locations).estimated)
    assert len(estimated) == 4
    profile = attribution.attribute(trace.read(captured.run))
    at = {cost.line: cost for cost in profile.lines}
    assert at[10].calls == 4 * 3000
    assert at[12].calls == 4 * 1500
    assert "aten::full" in {op.name for op in at[13].ops}
    assert all(at[line].step_ms > at[8].step_ms for line in (9, 10, 11, 12))
    assert "as before: True [] None" in captured.output


SEVERAL = """\
def first(rows, wanted):
    found = []
    for row in rows:
        for value in row:
            if value == wanted:
                return found, value
            if value < 0:
                break
            found.append(value)
        else:
            found.append(None)
            continue
        found.append(-1)
    while len(found) > 5:
        found.pop()
    def inner():
        for value in rows:
            yield value, wanted
    return found, list(inner())
"""


def made() -> Any:
    space: dict[str, Any] = {}
    exec(compile(SEVERAL, "several.py", "exec", dont_inherit=True), space)
    return space["first"]


def test_loops_of_a_function_without_those_of_functions_inside_it() -> None:
    code = made().__code__
    assert sorted(written(code, SEVERAL)) == [(3, 13), (4, 12), (14, 15)]
    assert written(code, SEVERAL.replace("> 5", "> 6")) == [], "this text is not what runs"
    assert written(code, None) == []


@pytest.mark.parametrize("lines", [(3,), (4, 14), (14,)])
def test_the_function_does_what_it_did_and_each_pause_ends(
    lines: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    function, seen = made(), []
    other = rewritten(function.__code__, SEVERAL, lines)
    assert isinstance(other, CodeType)
    assert {at for _, _, at in other.co_lines()} == {at for _, _, at in function.__code__.co_lines()}
    calls = FunctionType(other, {})
    given = ([[1, 2], [3, 4]], 4), ([[1, -2], [3, 4]], 9), ([[]], 1), ([], 1), ([[5] * 9], 1)
    for rows, wanted in given:
        assert calls(rows, wanted) == function(rows, wanted), "without the names, in another process"
    for name in (PAUSE, RESUME):
        monkeypatch.setattr(builtins, name, lambda number, name=name: seen.append(name), raising=False)
    for rows, wanted in given:
        assert calls(rows, wanted) == function(rows, wanted)
    assert seen
    assert seen == [PAUSE, RESUME] * (len(seen) // 2)


def test_functions_have_their_code_back() -> None:
    function = made()
    code = function.__code__
    swapped = Swapped(lambda number: True, lambda number: True)
    other = rewritten(code, SEVERAL, [3])
    assert other is not None
    swapped.choose({code: other})
    swapped.begin()
    assert function.__code__ is other
    assert PAUSE in vars(builtins)
    swapped.end()
    assert function.__code__ is code
    assert PAUSE not in vars(builtins)


def test_the_other_code_is_kept_alive() -> None:
    """Locations are found by its id, which other code would get."""
    locations: Any = line_locations.Locations(user_files=cast(Any, None), names=cast(Any, None))
    code, other = made().__code__, made().__code__
    locations.of_code[id(code)] = locations.begun[id(code)] = "lines"
    alive = weakref.ref(other)
    locations.stands_for(other, code)
    del other
    gc.collect()
    assert alive() is not None
