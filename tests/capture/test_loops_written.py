"""Loops of a source: found, found again in an edited one, and with calls of ours in them."""

from __future__ import annotations

import ast
import builtins
import threading
from collections.abc import Iterable
from typing import Any

import pytest

from warpline.capture.runner.steps import compiling, looking, turned
from warpline.capture.runner.steps.looking import Loops
from warpline.capture.runner.steps.written import ITEMS, LEAVE, LONGEST, TURN, Calls, around, loops, same
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


def test_a_header_that_holds_a_table_is_cut_and_found_all_the_same() -> None:
    table = f"for x in {list(range(9000))}: pass\n"
    first, second = loops(ast.parse(table * 2), "sim.py")
    assert len(first.header) == LONGEST
    assert (same(first, first), same(first, second)) == (True, False)


@pytest.mark.parametrize(("line", "lines"), [(4, [3, 4]), (9, [8]), (15, []), (12, [8])])
def test_loops_around_a_line(line: int, lines: list[int]) -> None:
    assert [loop.line for loop in around(ast.parse(SOURCE), "sim.py", line)] == lines


@pytest.mark.parametrize("leaving", [True, False])
def test_the_script_does_the_same_with_our_calls_in_it(
    leaving: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    called: dict[str, Any] = {}
    elsewhere: dict[str, Any] = {}
    exec(compile(SOURCE, "sim.py", "exec"), plain)
    exec(compile(tree, "sim.py", "exec"), elsewhere)
    assert not turns, "in a process that has no calls of ours"
    with monkeypatch.context() as patch:
        for name, call in {ITEMS: items, TURN: turn, LEAVE: lambda which: None}.items():
            patch.setattr(builtins, name, call, raising=False)
        exec(compile(tree, "sim.py", "exec"), called)
    for names in (called, elsewhere):
        assert (names["result"], names["sim"].x, names["pairs"]) == (
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


def test_turns_are_counted_where_they_are_nested(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10**9, 100_000))
    watched = Loops(())
    watched.counts = True
    tree = Calls("sim.py", watched._number, leaving=True).visit(ast.parse(NESTED))
    for name, call in {ITEMS: watched._items, TURN: watched._turn, LEAVE: watched._leave}.items():
        monkeypatch.setattr(builtins, name, call, raising=False)
    exec(compile(tree, "sim.py", "exec"), {"work": lambda: next(clock)})
    seen, _ = watched.so_far()
    by_line = {one.loop.line: one for one in seen}
    assert by_line[6].within.keys() == {None}
    numbers = {one.loop.line: at for at, one in enumerate(seen)}
    assert by_line[7].within.keys() == {numbers[6]} or numbers[2] in by_line[7].within
    assert (len(by_line[6].durations), len(by_line[7].durations)) == (24, 75)
    assert not watched.stack


@pytest.mark.parametrize("only", [True, False])
def test_a_loop_is_not_sure_while_it_would_not_be_chosen(only: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It turns for a second, after seven of preparing: importing what ``torch.compile`` needs, say. Where the
    loops around forwards are known the preparation does not count, else it does."""
    now = [0]
    monkeypatch.setattr(looking, "perf_counter_ns", lambda: now[0])
    loop = Loop("sim.py", 1)
    watched = Loops((loop,) if only else ())
    watched.counts = True
    number = watched._number(loop)
    assert number is not None
    now[0] = 7_000_000_000
    sure = []
    for _ in watched._items(number, range(100)):
        now[0] += 10_000_000
        sure.append(watched.sure(500_000_000, 0, 10**12))
        if sure[-1]:
            break
    found = watched.found(500_000_000, at_end=False).chosen
    assert found and found[0].loop == loop
    assert len(sure) < 40 if only else len(sure) > 70


def test_what_is_left_on_another_thread_is_not_ours() -> None:
    watched = Loops(())
    watched.counts = True
    number = watched._number(Loop("sim.py", 1))
    assert number is not None
    watched._turn(number)
    other = threading.Thread(target=watched._leave, args=(number,))
    other.start()
    other.join()
    assert len(watched.stack) == 1
    watched._leave(number)
    assert not watched.stack


def test_turns_beyond_the_ones_that_are_kept_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "MOST", 5)
    watched = Loops(())
    watched.counts = True
    number = watched._number(Loop("sim.py", 1))
    assert number is not None
    for _ in watched._items(number, range(20)):
        pass
    (seen,) = watched.so_far()[0]
    assert (len(seen.durations), len(seen.processor_ns), seen.told().turns) == (5, 5, 20)


def test_a_loop_that_turns_when_all_is_told_does_nothing() -> None:
    watched = Loops(())
    watched.counts = True
    number = watched._number(Loop("sim.py", 1))
    assert number is not None
    turns: list[int] = []
    watched.checked = 0
    watched.on_turn = lambda: (turns.append(0), watched.stop())
    for _ in watched._items(number, range(3)):
        watched.checked = 0  # it would be looked at again
    assert turns == [0]


JIT = """\
@numba.njit(cache=True)
def quick(n):
    for i in range(n):
        pass

@torch.jit.script
def scripted(n):
    while n: n -= 1

@jitter
def plain(n):
    for i in range(n):
        pass
"""


def test_functions_that_another_compiler_reads_have_no_calls_of_ours() -> None:
    assert [loop.line for loop in loops(ast.parse(JIT), "sim.py")] == [12]


def test_a_source_that_is_too_deep_for_us_is_compiled_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Loader:
        def source_to_code(self, data: Any, path: Any) -> Any:
            return compile(data, path, "exec", dont_inherit=True)

        get_code = None

    def fails(*_: Any) -> Any:
        raise RecursionError

    monkeypatch.setattr(compiling.importlib.machinery, "SourceFileLoader", Loader)
    monkeypatch.setattr(Calls, "visit", fails)
    compiling.install(lambda path: True, lambda loop: 0, True, {})
    names: dict[str, Any] = {}
    exec(Loader().source_to_code("x = [i for i in range(3)]", "sim.py"), names)
    assert names["x"] == [0, 1, 2]
    with pytest.raises(SyntaxError) as raised:
        Loader().source_to_code("for", "sim.py")
    assert raised.value.__context__ is None


def test_a_loop_asked_for_by_its_line_is_known_by_its_header_from_then_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers: list[Any] = []
    monkeypatch.setattr(turned.compiling, "install", lambda wanted, number, *_: numbers.append(number))
    found: list[Loop] = []
    turned.LoopTurns().prepare(Loop("sim.py", 8), found.append)
    Calls("sim.py", numbers[0], leaving=False).visit(ast.parse(SOURCE))
    assert found == [Loop("sim.py", 8, "run", "while n < 4")]
