"""Lines that are quicker than their own records: few records, and a known cost of each."""

from __future__ import annotations

import sys
import types
from collections import Counter

from warpline.capture.runner.lines.locations import Locations
from warpline.capture.runner.lines.names import QualifiedNames
from warpline.capture.runner.lines.onlyline import only_line
from warpline.capture.runner.lines.userfiles import UserFiles
from warpline.capture.runner.windows.calibration import line_record_ns

if sys.version_info >= (3, 12):
    from warpline.capture.runner.lines.monitoring import Monitoring as LineEvents
else:
    from warpline.capture.runner.lines.tracing import Tracing as LineEvents

SCRIPT = """\
def rows(count):
    row = [value * value for value in range(count)]
    total = sum(map(lambda value: value + 1, row))
    return twice(total)

def twice(value):
    return (
        value
        + value
    )
"""
NAME = "/script/of/the/user.py"


def script() -> dict[str, types.FunctionType]:
    room: dict[str, types.FunctionType] = {}
    exec(compile(SCRIPT, NAME, "exec"), room)
    return room


def test_code_on_one_line_is_told() -> None:
    rows, twice = (script()[name].__code__ for name in ("rows", "twice"))
    inner = {code.co_name: code for code in rows.co_consts if isinstance(code, types.CodeType)}
    assert only_line(inner["<lambda>"]) == 3
    assert only_line(inner.get("<listcomp>", inner["<lambda>"])) in (2, 3)
    assert only_line(rows) is None
    assert only_line(twice) is None
    assert only_line(compile("def f():\n    def g(): return f\n    return g", NAME, "exec")) == 1
    assert only_line((lambda: (yield)).__code__) is None, "a generator's frame starts many times"


def test_a_comprehension_has_records_at_its_start_and_end_only() -> None:
    locations = Locations(UserFiles(("/script",), ()), QualifiedNames())
    lines = LineEvents(locations)
    rows = script()["rows"]
    lines.start()
    try:
        rows(500)
    finally:
        lines.stop()
    pairs = locations.records().pairs
    table = locations.table
    count = Counter(table[place & 0x7FFFFFFF][1] for place in pairs[1::2])
    assert count[2] <= 4
    assert 1000 <= count[3] <= 1010, "each call of the lambda: its start, and the return from it"
    assert count[4] == 2
    assert count[8] and count[9]
    assert list(pairs[::2]) == sorted(pairs[::2])


def test_what_a_record_costs_is_measured() -> None:
    cost = line_record_ns(LineEvents)
    assert cost is not None
    assert 1 < cost < 1_000_000


def test_a_script_that_traces_itself_is_left_alone() -> None:
    before = sys.gettrace()
    sys.settrace(lambda *seen: None)
    try:
        assert line_record_ns(LineEvents) is None
    finally:
        sys.settrace(before)
