"""Python's garbage collector pauses the step.

## What it does

Finds runs of Python's garbage collector, automatic or by `gc.collect()`, that take a measurable part of
the step: of the captured steps, or of the timed ones, which are more. A `gc.collect()` that runs once in many
steps is found by these.

## Why is this slow

A full collection visits every container object of the program: modules, datasets, optimizer state. The
host queues no work meanwhile. After `gc.freeze()`, the collector ignores the objects made before the
training loop.

## Example

```python
#> gc ms=30
import gc
import time

for images, labels in loader:
    train(images, labels)  #> cost device_ms=14
    gc.collect()  #> found; cost cpu_ms=6 idle_ms=6 gc_ms=6
```

## Use instead

```python
import time

for images, labels in loader:
    train(images, labels)
```

## Example

```python
#> gc ms=30
from torch.utils.data import DataLoader

loader = DataLoader(dataset)
for epoch in range(3):  #> found
    for images in loader:  #> use loader; site loader num_workers=4
        loss = model(images)  #> cost device_ms=14 gc_ms=6 idle_ms=6 step_ms=20
```

## Use instead

```python
from torch.utils.data import DataLoader
import gc

loader = DataLoader(dataset)
gc.collect()
gc.freeze()
for epoch in range(3):
    for images in loader:
        loss = model(images)
```

## Fix safety

Safe: no value depends on it. Cycles that exist when `gc.freeze()` is called are never freed. Without
`gc.collect()`, cycles that hold device memory live until the next automatic collection.

## References

- [gc.freeze](https://docs.python.org/3/library/gc.html#gc.freeze)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from statistics import median

import libcst as cst

from warpline.model import steady
from warpline.model.change import Scale
from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, count
from warpline.syntax.source import Source

#: Below this share of the step the collector does what it is there for.
AUTOMATIC_PERCENT = 3.0
#: The timed steps spent so many times as much in collections as the captured ones at most, or lines do not
#: show what they take.
ALIKE = 1.5
#: Timed steps from which on their own share of collections is the better one.
MANY_STEPS = 20


_SEEN = "Python's garbage collector takes {spent} of each step on average ({share})."
#: Where the script collects once in several steps.
_CALLED = (
    "This call of Python's garbage collector takes {spent} of each step on average ({share}). It runs about "
    "once in {steps} steps, and in none of the captured ones."
)
#: Full collections are seldom: no line has their time.
_UNSEEN = (
    "Python's garbage collector takes {spent} of each timed step on average ({share}): full collections come "
    "less often than once a step, and the captured steps had fewer."
)


class GcPauseInStep(Rule):
    area = "waiting"

    def find(self, context: Context) -> Iterator[Draft]:
        pauses = [cost for cost in context.profile.lines if cost.gc_ms > 0]
        explicit = [cost for cost in pauses if _collect(context, cost.place) is not None]
        every = _timed_ms(context)
        told = not _is_one_event([end - begin for begin, end in context.profile.facts.gc_ns])
        calls = _calls(context)
        for cost in explicit:
            rate = calls.pop(cost.place, (every or 0.0, 0.0))[0]
            spent = cost.gc_ms if told else min(cost.gc_ms, rate)
            fix = partial(_remove, context, cost.place)
            yield _draft(context, cost.place, _SEEN, spent, fix, [cost])
        for place, (spent, steps) in calls.items():
            fix = partial(_remove, context, place)
            yield _draft(context, place, _CALLED, spent, fix, steps=steps)
        automatic = [cost for cost in pauses if cost not in explicit]
        seen = sum(cost.gc_ms for cost in automatic)
        if every is not None:
            spent = max(0.0, every - sum(cost.gc_ms for cost in explicit))
        else:
            spent = seen if told else 0.0
        if explicit or _collects_seldom(context):
            spent = min(seen, spent)  # of the timed steps the script's own calls are a part
        if context.on_gpu and spent > seen:
            spent = max(seen, min(spent, context.idle_ms()))
        if context.share(spent) < AUTOMATIC_PERCENT:
            return
        lines = automatic or context.profile.lines
        if not lines:
            return  # no line of the user is known
        hottest = max(lines, key=lambda cost: (cost.gc_ms, cost.cpu_ms))
        cause = hottest.place
        loop = _training_loop(context, cause)
        site = cause if loop is None else loop[0].place(loop[1])
        fix = partial(_freeze, loop)
        if spent <= ALIKE * seen:
            yield _draft(context, site, _SEEN, min(spent, seen), fix, automatic, cause)
        else:
            yield _draft(context, site, _UNSEEN, spent, fix, cause=cause)


def _draft(
    context: Context,
    site: tuple[str, int],
    said: str,
    spent: float,
    fix: partial[Fix],
    costs: Sequence[LineCost] = (),
    cause: tuple[str, int] | None = None,
    steps: float = 0.0,
) -> Draft:
    """``costs``: the lines that have its time; ``steps``: that one call is for."""
    told = {"steps": count("steps for each call", round(steps), "steps")} if steps else {}
    return context.draft(
        site,
        said,
        {**context.spent("garbage collection", spent), **told},
        cause=cause,
        cost_ms=spent,
        change=Scale(tuple(cost.place for cost in costs), host=1 - _part(costs, spent)) if costs else None,
        fixes=[fix],
    )


def _timed_ms(context: Context) -> float | None:
    """What collections took of each timed step, at the least; None where those are too few to tell. A single
    full one is left out: one event has no rate. Between the steps, an evaluation may have had all that fit
    into it."""
    manifest, facts = context.profile.manifest, context.profile.facts
    timed = steady.steps_ns(manifest, facts)
    if len(timed) < MANY_STEPS:
        return None
    full = facts.gc_full_timed_ns or ()
    alone = sum(full) if len(full) == 1 else 0
    others = manifest.others_share
    elsewhere = sum(timed) * others / (1 - others) if others < 1 else float("inf")
    return max(0.0, facts.gc_timed_ns - alone - elsewhere) / sum(timed) * context.step_ms


def _calls(context: Context) -> dict[tuple[str, int], tuple[float, float]]:
    """Calls of ``gc.collect()`` in several steps of the run, by place: the time of each step on average, and
    the number of steps for one call."""
    timed = context.profile.manifest.timed_ns
    calls: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for step, file, line, spent in context.profile.facts.gc_full:
        if file in context.profile.sources and _collect(context, (file, line)) is not None:
            calls.setdefault((file, line), []).append((step, spent))
    found = {}
    for place, each in calls.items():
        first, last = each[0][0], each[-1][0]  # a single call has no rate
        if timed and last > first:
            steps = (last - first) / (len(each) - 1)
            spent_ms = median(spent for _, spent in each) / 1e6 / steps
            # That time is a part of the steps, but of few timed ones perhaps.
            usual_ms = median(timed) / 1e6  # without such pauses
            found[place] = min(spent_ms, context.step_ms * spent_ms / (usual_ms + spent_ms)), steps
    return found


def _is_one_event(durations: Sequence[int]) -> bool:
    """Whether one of ``durations`` takes most of their time: that says nothing about how often it comes."""
    return 2 * max(durations, default=0) > sum(durations)


def _collects_seldom(context: Context) -> bool:
    """Whether the script calls ``gc.collect()`` in a loop or a function, where the captured steps may not
    have come."""
    return any(
        source.loops(call) or source.enclosing(call, cst.FunctionDef) is not None
        for source, call in context.calls("gc.collect")
    )


def _part(costs: Sequence[LineCost], spent: float) -> float:
    host = sum(max(cost.cpu_ms, cost.idle_ms, cost.gc_ms) for cost in costs)
    return min(1.0, spent / host) if host else 0.0


def _collect(context: Context, place: tuple[str, int]) -> cst.Call | None:
    return context.source(place[0]).call(place[1], "gc.collect")


def _remove(context: Context, place: tuple[str, int]) -> Fix:
    source = context.source(place[0])
    call = _collect(context, place)
    edits = Edits(source).remove_call(call)
    if call is not None:
        _remove_import(source, call, edits)
    return edits.fix("Remove gc.collect() from the step", "safe")


def _remove_import(source: Source, call: cst.Call, edits: Edits) -> None:
    """``import gc`` goes where nothing but the removed ``call`` used it."""
    imports = [
        node for node in source.nodes(cst.Import) if [source.code(alias) for alias in node.names] == ["gc"]
    ]
    others = [
        name
        for name in source.nodes(cst.Name)
        if name.value == "gc" and not source.inside(name, call) and source.enclosing(name, cst.Import) is None
    ]
    statement = source.statement(imports[0]) if len(imports) == 1 and not others else None
    alone = isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1
    if statement is not None and alone and '"gc"' not in source.text:
        edits.remove(statement)


def _training_loop(context: Context, cause: tuple[str, int]) -> tuple[Source, cst.For | cst.While] | None:
    """The outermost loop around the step: around a use of a loader or optimizer, else the cause."""
    uses = [use for kind in ("loader", "optimizer") for site in context.sites(kind) for use in site.uses]
    for file, line in [*uses, cause]:
        source = context.source(file)
        if loops := source.loops_at(line):
            return source, loops[-1]
    return None


def _freeze(loop: tuple[Source, cst.For | cst.While] | None) -> Fix:
    if loop is None:
        raise Refused("no training loop was found")
    source, statement = loop
    block = source.block(statement)
    before = block[: next(i for i, entry in enumerate(block) if entry is statement)]
    if any("gc.freeze" in source.code(entry) for entry in before):
        raise Refused("the script already calls `gc.freeze()` before the loop")
    edits = Edits(source)
    gc = edits.add_import("gc", "import gc")
    edits.insert_before(statement, f"{gc}.collect()\n{gc}.freeze()")
    return edits.fix("Call gc.freeze() before the loop", "safe")
