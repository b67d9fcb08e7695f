"""What each line of a training script costs, by clock reads alone: no profiler, no trace function.

    python stopwatch.py --json OUT [--coarse EARLIER_OUT] [--warmup 10] [--seconds 2] SCRIPT [ARGS...]

The sources below the script's folder are compiled with a clock read before and after each statement, simple
or compound. Every moment is charged to the innermost statement that is open, so they add up to the step.

A clock read costs about 0.1 us, so a statement of 1 us cannot be measured like this. A first run counts how
often each statement runs and who runs it. In the second run (``--coarse``) statements shorter than
``SHORT_US`` are left alone: their time is part of the statement that runs them, a loop or a call, and the
lines of both form one *figure*. What the clock reads cost is measured in each run and taken off.

Steps that take ``LONG`` times the median, and ``LARGE`` of the whole time more, are left out where they are
fewer than ``FEW``: whether a collection of all of Python's garbage, once in three seconds, falls into the
window is chance.

``backward()`` or ``autograd.grad()``, and every statement that runs inside, are one figure, marked
``backward``. With ``create_graph=True`` a gradient is part of the forward, and a line like any other.

``--sync`` waits for the device at each clock read: a statement's time is then that of the host and of the
device, one after the other.

It needs only torch, and shares no code with the recorder that it checks.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import importlib.machinery
import itertools
import json
import statistics
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns, process_time_ns, thread_time_ns
from typing import Any

SHORT_US, MEAN_US = 6.0, 40.0
OFTEN = 50  # times a step
NEVER = 1 << 62
LONG, LARGE, FEW = 2, 0.02, 4
BACKWARD = (".backward(", "autograd.grad(")  # a report has their time at the lines of the forward
FORWARD = "create_graph=True"
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
UNTIMED = (
    *DEFINITIONS,
    ast.Import,
    ast.ImportFrom,
    ast.Global,
    ast.Nonlocal,
    ast.Pass,
    ast.Break,
    ast.Continue,
)
Key = tuple[str, int]


class Watch:
    """Time by statement. ``begin`` and ``end`` are called by the compiled statements."""

    def __init__(self, coarse: frozenset[Key], clock: Callable[[], int] = perf_counter_ns) -> None:
        self.coarse, self.clock = coarse, clock
        self.statements: list[dict[str, Any]] = []  # by number
        self.spent: list[int] = []  # ns as the innermost statement, outside backward
        self.in_backward: list[int] = []
        self.whole: list[int] = []  # ns of all executions, what they call included
        self.times: list[int] = []
        self.least: list[int] = []  # ns of the quickest execution
        self.children: list[int] = []  # how many statements were run by it
        self.parents: list[set[int]] = []
        self.open: list[int] = []
        self.marks: list[tuple[int, list[list[int]]]] = []  # at each step's end: the clock, and the columns
        self.begin, self.end, self.restart, self.mark = self._clock()

    def add(self, file: str, node: ast.stmt, last: int, backward: bool) -> int:
        self.statements.append({"file": file, "line": node.lineno, "last": last, "backward": backward})
        for column in (self.spent, self.in_backward, self.whole, self.times, self.children):
            column.append(0)
        self.least.append(NEVER)
        self.parents.append(set())
        return len(self.statements) - 1

    def _clock(self) -> tuple[Callable[..., None], ...]:
        spent, inside, whole, times = self.spent, self.in_backward, self.whole, self.times
        stack, began, children, parents = self.open, [], self.children, self.parents
        clock, ident, driving = self.clock, threading.get_ident, threading.get_ident()
        into, backwards, last = spent, 0, 0
        statements, least = self.statements, self.least

        def begin(number: int) -> None:
            nonlocal last, into, backwards
            if ident() != driving:
                return
            now = clock()
            if stack:
                parent = stack[-1]
                into[parent] += now - last
                children[parent] += 1
                parents[number].add(parent)
            stack.append(number)
            began.append(now)
            if statements[number]["backward"]:
                backwards += 1
                into = inside
            last = clock()

        def end(number: int) -> None:
            nonlocal last, into, backwards
            if ident() != driving:
                return
            now = clock()
            into[number] += now - last
            took = now - began.pop()
            whole[number] += took
            least[number] = min(least[number], took)
            times[number] += 1
            stack.pop()
            if statements[number]["backward"]:
                backwards -= 1
                into = inside if backwards else spent
            last = clock()

        def restart() -> None:
            nonlocal last
            for column in (spent, inside, whole, times, children):
                column[:] = [0] * len(column)
            least[:] = [NEVER] * len(least)
            began[:] = [clock()] * len(began)
            last = clock()

        def mark() -> None:
            nonlocal last
            now = clock()
            if stack:
                into[stack[-1]] += now - last
            self.marks.append((now, [column[:] for column in self._columns()]))
            last = clock()

        return begin, end, restart, mark

    def _columns(self) -> list[list[int]]:
        return [self.spent, self.in_backward, self.times, self.children]

    def leave_out(self) -> int:
        """Take the rare long steps out of the columns. How many steps are left."""
        steps = list(itertools.pairwise(self.marks))
        lengths = [end - begin for (begin, _), (end, _) in steps]
        usual = statistics.median(lengths)
        least = max(LONG * usual, usual + LARGE * sum(lengths))
        long = [step for step, took in zip(steps, lengths, strict=True) if took > least]
        if len(long) >= FEW or len(steps) < 10 * FEW:
            return len(steps)
        for (_, before), (_, after) in long:
            for column, old, new in zip(self._columns(), before, after, strict=True):
                column[:] = [
                    whole - (end - begin) for whole, begin, end in zip(column, old, new, strict=True)
                ]
        return len(steps) - len(long)

    def read_cost_ns(self) -> tuple[float, float]:
        """What a pair of ``begin`` and ``end`` adds to its own statement, and to the one around it."""
        trial = Watch(frozenset(), self.clock)
        node = ast.Pass(lineno=0, col_offset=0)
        outer, inner = trial.add("", node, 0, False), trial.add("", node, 0, False)
        own, around = [], []
        for _ in range(9):
            trial.restart()
            trial.begin(outer)
            for _ in range(2000):
                trial.begin(inner)
                trial.end(inner)
            trial.end(outer)
            begun = self.clock()
            for _ in range(2000):
                pass
            empty = self.clock() - begun
            own.append(trial.spent[inner] / 2000)
            around.append((trial.spent[outer] - empty) / 2000)
        return sorted(own)[4], max(0.0, sorted(around)[4])

    def _is_short(self, number: int, own: float, around: float, steps: int) -> bool:
        """On a busy machine the mean holds other processes' turns, so the quickest execution counts too.

        ``own``, ``around``: the nanoseconds that reading the clock adds to a statement and to the one around
        it. A statement that recursion runs over and over is long, by what it calls, and yet most of what
        is seen of it itself is the clock.
        """
        times = self.times[number]
        if not times:
            return False
        mean_us = (self.whole[number] / times - own) / 1e3
        if (self.least[number] - own) / 1e3 < SHORT_US and mean_us < MEAN_US:
            return True
        spent = self.spent[number] + self.in_backward[number]
        itself_us = (spent - own * times - around * self.children[number]) / times / 1e3
        return itself_us < SHORT_US and times >= OFTEN * steps

    def results(self, steps: int) -> list[dict[str, Any]]:
        own, around = self.read_cost_ns()
        found = []
        for number, statement in enumerate(self.statements):
            seen = self.spent[number] + self.in_backward[number]
            cost = own * self.times[number] + around * self.children[number]
            left = max(0.0, 1 - cost / seen) if seen else 0.0
            times = self.times[number]
            found.append(
                {
                    **statement,
                    "ms": self.spent[number] * left / steps / 1e6,
                    "in_backward_ms": self.in_backward[number] * left / steps / 1e6,
                    "times": times / steps,
                    "short": self._is_short(number, own, around, steps),
                    "parents": sorted(self.parents[number]),
                }
            )
        return found


class Insert(ast.NodeTransformer):
    """Puts ``begin`` and ``end`` around the statements of a file."""

    def __init__(self, file: str, watch: Watch) -> None:
        self.file, self.watch, self.within = file, watch, False

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(node, ast.Lambda | ast.ClassDef | ast.Match):
            return node
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                setattr(node, name, [out for one in block for out in self._around(one)])
        return node

    def _around(self, node: ast.stmt) -> list[ast.stmt]:
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        left_alone = (self.file, node.lineno) in self.watch.coarse
        if isinstance(node, UNTIMED) or text or yields(node) or left_alone:
            return [node]
        body = getattr(node, "body", None)
        last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
        calls = "" if body else ast.unparse(node)
        backward = any(call in calls for call in BACKWARD) and FORWARD not in calls
        number = self.watch.add(self.file, node, max(last, node.lineno), backward)
        begin = ast.parse(f"_truth_.begin({number})").body[0]
        block = ast.Try([node], [], [], ast.parse(f"_truth_.end({number})").body)
        return [ast.copy_location(begin, node), ast.copy_location(block, node)]


def yields(node: ast.AST) -> bool:
    """Whether running ``node`` may leave the function and come back: then it cannot be timed as one."""
    if isinstance(node, ast.Yield | ast.YieldFrom | ast.Await):
        return True
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.GeneratorExp)
    return any(yields(child) for child in ast.iter_child_nodes(node) if not isinstance(child, inner))


class Loader(importlib.machinery.SourceFileLoader):
    watch: Watch

    def get_code(self, fullname: str) -> Any:
        path = self.get_filename(fullname)
        return compiled(self.get_data(path), path, self.watch)


class Finder:
    def __init__(self, root: Path, watch: Watch) -> None:
        self.root, self.watch = root, watch

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            return None
        origin = Path(spec.loader.path).resolve()
        if self.root not in origin.parents or "site-packages" in origin.parts:
            return None
        spec.loader = Loader(spec.loader.name, spec.loader.path)
        spec.loader.watch = self.watch
        return spec


def compiled(data: bytes, path: str, watch: Watch) -> Any:
    tree = Insert(str(Path(path).resolve()), watch).visit(ast.parse(data, path))
    return compile(ast.fix_missing_locations(tree), path, "exec")


def short(earlier: dict[str, Any]) -> frozenset[Key]:
    """The statements that an earlier run found too short to be timed."""
    found: dict[Key, bool] = {}
    for one in earlier["statements"]:
        key = (one["file"], one["line"])
        found[key] = one["short"] and found.get(key, True)
    return frozenset(key for key, is_short in found.items() if is_short)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--coarse", type=Path, help="what an earlier run of the same script wrote")
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of the window")
    parser.add_argument("--processor", action="store_true", help="processor time of the thread, not the time")
    parser.add_argument("--sync", action="store_true", help="wait for the device before each clock read")
    parser.add_argument("script", type=Path)
    parser.add_argument("args", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    earlier = json.loads(options.coarse.read_text(encoding="utf-8")) if options.coarse else None
    clock = thread_time_ns if options.processor else perf_counter_ns
    if options.sync:
        clock = synchronized(clock)
    measure(options, Watch(short(earlier) if earlier else frozenset(), clock))
    return 0


def synchronized(clock: Callable[[], int]) -> Callable[[], int]:
    """``clock``, read when the device has done all that it was given."""
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("--sync needs a CUDA device")
    torch.cuda.init()
    wait = torch.cuda.synchronize

    def now() -> int:
        wait()
        return clock()

    return now


def measure(options: argparse.Namespace, watch: Watch) -> None:
    from torch.optim.optimizer import register_optimizer_step_post_hook

    script = options.script.resolve()
    builtins._truth_ = watch  # type: ignore[attr-defined]
    steps, began, used = 0, 0, 0

    def step(*_: object) -> None:
        nonlocal steps, began, used
        steps += 1
        if steps == options.warmup:
            watch.restart()
            began, used = perf_counter_ns(), process_time_ns()
        if steps >= options.warmup:
            watch.mark()
        counted = steps - options.warmup
        if counted >= 5 and perf_counter_ns() - began > options.seconds * 1e9:
            used = process_time_ns() - used
            took = watch.marks[-1][0] - watch.marks[0][0]
            result = {"script": str(script), "steps": counted, "step_ms": took / counted / 1e6}
            result |= {"processor_ms": used / counted / 1e6}
            result |= {"statements": watch.results(watch.leave_out())}
            options.json.write_text(json.dumps(result, indent=1), encoding="utf-8")
            raise SystemExit(0)

    register_optimizer_step_post_hook(step)
    sys.meta_path.insert(0, Finder(script.parent, watch))  # type: ignore[arg-type]
    sys.argv, sys.path[0] = [str(script), *options.args], str(script.parent)
    code = compiled(script.read_bytes(), str(script), watch)
    exec(code, {"__name__": "__main__", "__file__": str(script), "__builtins__": builtins})
    raise SystemExit(f"only {steps} steps: too few")


if __name__ == "__main__":
    sys.exit(main())
