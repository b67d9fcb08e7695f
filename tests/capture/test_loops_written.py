"""Loops of a source: found, found again in an edited one, and with calls of ours in them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

import pytest

from warpline.capture.runner.steps.looking import Loops
from warpline.capture.runner.steps.written import ITEMS, LEAVE, TURN, Calls, around, loops, same
from warpline.wire.loops import Loop

SOURCE = """\
class Sim:
    def step(self):
        for i in range(3):
            self.x = [v + i for v in self.x]

def run(sim):
    n = 0
    while n < 4:
        sim.step()
        n += 1
        if n == 3:
            break
    else:
        n = -1
    return n

sim = Sim()
sim.x = [0, 1]
result = run(sim)
pairs = {a: b for a in range(2) for b in range(2) if a}
"""


def test_every_loop_has_its_function_and_header() -> None:
    found = [(loop.line, loop.function, loop.header) for loop in loops(ast.parse(SOURCE), "sim.py")]
    assert found == [
        (3, "Sim.step", "for i in range(3)"),
        (4, "Sim.step", "for v in self.x"),
        (8, "run", "while n < 4"),
        (20, "", "for a in range(2)"),
    ]


def test_a_loop_is_found_where_it_has_moved() -> None:
    loop = loops(ast.parse(SOURCE), "sim.py")[2]
    moved = loops(ast.parse("import torch\n\n" + SOURCE), "sim.py")
    assert [one.line for one in moved if same(loop, one)] == [10]
    assert [one.line for one in moved if same(Loop("sim.py", 5), one)] == [5], "asked for by its line alone"


@pytest.mark.parametrize(("line", "lines"), [(4, [3, 4]), (9, [8]), (15, []), (12, [8])])
def test_loops_around_a_line(line: int, lines: list[int]) -> None:
    assert [loop.line for loop in around(ast.parse(SOURCE), "sim.py", line)] == lines


@pytest.mark.parametrize("leaving", [True, False])
def test_the_script_does_the_same_with_our_calls_in_it(leaving: bool) -> None:
    turns: list[int] = []
    numbers: list[Loop] = []

    def number(loop: Loop) -> int:
        numbers.append(loop)
        return len(numbers) - 1

    def items(which: int, iterable: Iterable[Any]) -> Iterable[Any]:
        for item in iterable:
            turns.append(which)
            yield item

    def turn(which: int) -> bool:
        turns.append(which)
        return True

    tree = Calls("sim.py", number, leaving).visit(ast.parse(SOURCE))
    plain: dict[str, Any] = {}
    called: dict[str, Any] = {ITEMS: items, TURN: turn, LEAVE: lambda which: None}
    exec(compile(SOURCE, "sim.py", "exec"), plain)
    exec(compile(tree, "sim.py", "exec"), called)
    assert (called["result"], called["sim"].x, called["pairs"]) == (
        plain["result"],
        plain["sim"].x,
        plain["pairs"],
    )
    counts = {numbers[at].line: turns.count(at) for at in range(len(numbers))}
    assert counts == {3: 9, 4: 18, 8: 3, 20: 2}


NESTED = """\
def simulate(n):
    for k in range(n):
        yield k

total = 0
for state in simulate(30):
    for sub in range(4):
        work()
    if state == 24:
        break
"""


def test_turns_are_counted_where_they_are_nested() -> None:
    clock = iter(range(0, 10**9, 100_000))
    watched = Loops(())
    watched.counts = True
    tree = Calls("sim.py", watched._number, leaving=True).visit(ast.parse(NESTED))
    names = {ITEMS: watched._items, TURN: watched._turn, LEAVE: watched._leave}
    exec(compile(tree, "sim.py", "exec"), {**names, "work": lambda: next(clock)})
    seen, _ = watched.so_far()
    by_line = {one.loop.line: one for one in seen}
    assert by_line[6].within.keys() == {None}
    numbers = {one.loop.line: at for at, one in enumerate(seen)}
    assert by_line[7].within.keys() == {numbers[6]} or numbers[2] in by_line[7].within
    assert (len(by_line[6].durations), len(by_line[7].durations)) == (24, 75)
    assert not watched.stack
