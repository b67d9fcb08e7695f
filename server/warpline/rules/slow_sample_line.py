"""One line takes most of the time of loading a batch.

## What it does

Finds the line of a dataset, transform or collate function that takes more than half of the loading time
of a batch, if the step waits for batches. If a loop runs the line, its function or several short lines again
and again, each time for a few microseconds, the finding is at the loop. If the lines of a function are
that much, and a call of it gives the same for each sample (a filter bank of constants), it is at the call.
So it is if a helper has the loop and the samples are the same in each epoch: a trial got some of them again.
It looks in the training process
and in the loader's workers, where the lines of two batches per worker are recorded: if they are too slow for
the steps, or take cores from them because there are too few. Where the dataset is a
library's (`ImageFolder`), the lines are that library's: the finding is where the dataset is made, and names
the function that takes the time (`pil_loader` decodes the image).

Where the steps use no loader, it looks at the lines of plain Python that run for each sample: as often as the
layers of the step have rows, or several times as often.

## Why is this slow

The line runs for each sample. Workers only hide its time. With a faster line, fewer workers are enough.

## Example

```python
from torch.utils.data import DataLoader, Dataset


class Scans(Dataset):
    def __getitem__(self, index):
        table = parse(self.paths[index])  #> found; cost cpu_ms=45 idle_ms=45 loader_ms=45 calls=32
        return table, self.labels[index]  #> cost cpu_ms=1 idle_ms=1 loader_ms=1


loader = DataLoader(Scans(), batch_size=32)  #> site loader num_workers=0
for tables, labels in loader:  #> cost cpu_ms=4 idle_ms=4 loader_ms=4; use loader
    train(tables, labels)  #> cost device_ms=10
```

## Use instead

Do the line's work once instead of once per sample: store parsed or decoded data (as `.npy`, memory
mapped, or in shards), move work that does not depend on the sample into `__init__`, decode smaller
images, or process the whole batch on the device.

## Example

A helper that computes the same for each sample:

```python
import numpy as np
from torch.utils.data import DataLoader, Dataset

BINS = 512


def weights(power):
    bins = np.arange(BINS) / BINS  #> cost cpu_ms=12 idle_ms=12 loader_ms=12 calls=32
    curve = np.exp(-power * bins**2)  #> cost cpu_ms=14 idle_ms=14 loader_ms=14 calls=32
    return curve / curve.sum()  #> cost cpu_ms=9 idle_ms=9 loader_ms=9 calls=32


class Spectra(Dataset):
    def __init__(self, spectra, power):
        self.spectra = spectra
        self.power = power

    def __getitem__(self, index):
        curve = weights(self.power)  #> found; cost cpu_ms=1 idle_ms=1 loader_ms=1 calls=32
        return self.spectra[index] * curve  #> cost cpu_ms=8 idle_ms=8 loader_ms=8 calls=32


loader = DataLoader(Spectra(spectra, 2.0), batch_size=32)  #> site loader num_workers=0
for batch in loader:  #> cost cpu_ms=4 idle_ms=4 loader_ms=4; use loader
    train(batch)  #> cost device_ms=10
```

## Use instead

```python
import numpy as np
from torch.utils.data import DataLoader, Dataset

BINS = 512


def weights(power):
    bins = np.arange(BINS) / BINS
    curve = np.exp(-power * bins**2)
    return curve / curve.sum()


class Spectra(Dataset):
    def __init__(self, spectra, power):
        self.spectra = spectra
        self.power = power
        self.curve = weights(self.power)

    def __getitem__(self, index):
        curve = self.curve
        return self.spectra[index] * curve


loader = DataLoader(Spectra(spectra, 2.0), batch_size=32)
for batch in loader:
    train(batch)
```

## Example

A script that makes its batches itself:

```python
import numpy as np
import torch


def cleaned(scan):
    scan = despeckled(scan)  #> found; cost cpu_ms=40 idle_ms=40 calls=16
    return scan / scan.max()  #> cost cpu_ms=2 idle_ms=2 calls=16


for at in range(0, len(order), 16):
    batch = np.stack([cleaned(scans[i]) for i in order[at : at + 16]])  #> cost cpu_ms=3 idle_ms=3 calls=1
    loss = model(torch.from_numpy(batch)).mean()
    #^ cost step_ms=20 device_ms=18 idle_ms=2 launches=90 calls=1; op aten::linear shapes=[[16,64],[64,64]]
```

## Use instead

Clean the scans once, before the loop, and take the rows of each batch from the result. What is drawn again
for each sample can be made in the workers of a `DataLoader`, or for the whole batch at once.

## Fix safety

Display: only the author knows what the line computes and where else that could be done. The edit is unsafe:
what the call gives is the same for each sample as far as the text says. There is none where that may be
written to, returned as it is, or passed on.

## References

- [Performance tuning guide: data loading](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import libcst as cst

from warpline.model.change import Scale
from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Rule, Source, count, ms, percent
from warpline.rulekit.calling import function_of
from warpline.rulekit.loaders import (
    dataset_at,
    exposed_ms,
    iterated_at,
    keeping_up_ms,
    waited_ms,
    waits,
)
from warpline.rulekit.queues import rows_of
from warpline.rulekit.same_samples import SameCall, kept_in_init, same_calls
from warpline.syntax.source import called_name
from warpline.wire.run import Site
from warpline.wire.sites import Loader, facts_of
from warpline.wire.workers import WorkerLine

#: A line that takes at least this part of the loader's time, and this share of the step, stands out.
PART_OF_LOADING = 50.0
SHARE_OF_STEP = 10.0
#: A line that takes less each time does little but run Python (a call of NumPy's takes 1 to 5 us): its many
#: repetitions are what costs.
_SHORT_MS = 0.01
_COMPREHENSIONS = (cst.GeneratorExp, cst.ListComp, cst.SetComp, cst.DictComp)
_PER_SAMPLE = "compute it once for each sample, in `__init__` of the dataset"
_LOOP = "A loop of short lines, which runs here"
_DEPTH = 4  # functions that only call such functions
_Line = TypeVar("_Line", WorkerLine, LineCost)


class SlowSampleLine(Rule):
    area = "data"

    def find(self, context: Context) -> Iterator[Draft]:
        for site in context.sites("loader"):
            if facts_of(Loader, site).num_workers:
                yield from self._in_workers(context, site)
                continue
            lines = waits(context, site)
            loading = sum(cost.loader_ms for cost in lines)
            inside = [cost for cost in lines if cost.place not in site.uses]
            hot = _hottest(context, inside, lambda cost: cost.loader_ms, loading)
            hot = _of_sample(context, site, inside, hot)
            of_library = _of_library(_below(context, site), loading) if hot is None else None
            costs = context.costs(hot.lines if hot is not None else site.uses)
            exposed = sum(exposed_ms(context, cost) for cost in costs)
            exposed *= of_library.part / 100 if of_library is not None else 1.0
            hot = hot or of_library
            if hot is None or context.share(exposed) < SHARE_OF_STEP:
                continue
            yield context.draft(
                hot.place if of_library is None else dataset_at(context, site),
                (f"{hot.said}," if hot.said else hot.itself)
                + " takes {spent} of each step, {part} of the loading time of a batch (it runs "
                + ("once" if round(hot.calls) == 1 else "{calls} times")
                + " a step).",
                {
                    "spent": ms("time at the line", exposed),
                    "part": percent("time at the line", hot.part, "batch time"),
                    "calls": count("calls", hot.calls, "per step"),
                },
                cause=iterated_at(context, site),
                cost_ms=exposed,
                saving_ms=exposed,
                change=Scale(hot.lines, device=0.0, host=0.0) if of_library is None else None,
                fixes=hot.fixes(),
            )
        if not any(context.costs(site.uses) for site in context.sites("loader")):
            yield from self._without_loader(context)

    def _without_loader(self, context: Context) -> Iterator[Draft]:
        """Where the script makes its batches itself: lines of plain Python that run for each sample."""
        lines = _for_each_row(context)
        loading = sum(cost.idle_ms for cost in lines)
        hot = _hottest(context, lines, lambda cost: cost.idle_ms, loading)
        if hot is None or context.share(hot.spent_ms) < SHARE_OF_STEP:
            return
        yield context.draft(
            hot.place,
            (f"{hot.said}," if hot.said else hot.itself)
            + " takes {spent} of each step, {part} of the time of the lines that run for each sample "
            "(it runs {calls} times a step).",
            {
                "spent": ms("time at the line", hot.spent_ms),
                "part": percent("time at the line", hot.part, "time of the samples"),
                "calls": count("calls", hot.calls, "per step"),
            },
            cost_ms=hot.spent_ms,
            saving_ms=hot.spent_ms,
            change=Scale(hot.lines, device=0.0, host=0.0),
            fixes=hot.fixes(),
        )

    def _in_workers(self, context: Context, site: Site) -> Iterator[Draft]:
        """With ``k`` workers a batch is ready every ``k``-th of its time, and what that is longer than a step
        is the wait. Without the line it is shorter by a ``k``-th of the line's time, while there is one."""
        workers = context.profile.facts.workers
        loaders = [one for one in context.sites("loader") if facts_of(Loader, one).num_workers and one.uses]
        # Whose lines they are is known of one kind of dataset; the loader that is waited for most counts.
        kinds = {(facts_of(Loader, one).rows_type, facts_of(Loader, one).dataset_file) for one in loaders}
        if workers is None or not workers.lines or len(kinds) != 1:
            return
        if site is not max(loaders, key=lambda one: waited_ms(context, one)):
            return
        own = [line for line in workers.lines if not line.text]
        recorded_ms = sum(line.batch_ms for line in workers.lines)
        whole_ms = max(recorded_ms, min(workers.batch_ms, _most_ms(context, site)))
        hot = _hottest(context, own, lambda line: line.batch_ms, whole_ms)
        hot = _of_sample(context, site, own, hot)
        library = [line for line in workers.lines if line.text]
        of_library = _of_library(library, whole_ms) if hot is None else None
        hot = hot or of_library
        waited, needed = waited_ms(context, site), keeping_up_ms(context, site)
        if needed is not None:
            waited = min(waited, needed)
        if hot is None or context.share(waited) < SHARE_OF_STEP:
            return
        evidence = {"calls": count("calls", round(hot.calls), "per batch")} if hot.said else {}
        yield context.draft(
            hot.place if of_library is None else dataset_at(context, site),
            (f"{hot.said} {{calls}} times a batch," if hot.said else hot.itself)
            + " takes {spent} per batch in the loader's workers, {part} of their time for it, and each step "
            "waits {wait} for a batch.",
            {
                **evidence,
                "spent": ms("time at the line in a worker, per batch", hot.spent_ms),
                "part": percent("time at the line", hot.part, "batch time"),
                "wait": ms("exposed wait", waited),
            },
            cause=iterated_at(context, site),
            cost_ms=waited,
            saving_ms=min(waited, hot.spent_ms / (facts_of(Loader, site).num_workers or 1)),
            fixes=hot.fixes(),
        )


def _most_ms(context: Context, site: Site) -> float:
    """How many milliseconds a worker has for a batch if the steps wait no longer than they are seen to.
    Batches at the start of the script may take longer."""
    batches = sum(cost.calls for cost in context.costs(site.uses)) or 1.0
    return (facts_of(Loader, site).num_workers or 1) * context.step_ms / batches


def _for_each_row(context: Context) -> list[LineCost]:
    """Lines without operators that run as often as the step's layers have rows, or several times as often: by
    themselves, or in a function that does."""
    rows = max(rows_of(context), default=0)
    entered: dict[tuple[str, str], float] = {}
    for cost in context.profile.lines:
        entered[function_of(cost)] = min(cost.calls, entered.get(function_of(cost), cost.calls))
    return [
        cost
        for cost in context.profile.lines
        if not cost.launches and rows > 1
        if any(
            often >= rows and round(often) % rows == 0 for often in (cost.calls, entered[function_of(cost)])
        )
    ]


def _below(context: Context, site: Site) -> list[WorkerLine]:
    """Lines of libraries that run for each sample, in the training process; others make a batch of samples,
    take batches from the loader, or are a model's: a trainer that iterates the loader also runs that."""
    samples = facts_of(Loader, site).batch_size or 1
    return [
        WorkerLine(one.file, one.line, one.function, one.step_ms, one.calls, one.text)
        for cost in context.costs(site.uses)
        for one in cost.inside
        if one.file != cost.file and one.module is None and one.calls > 1
        if round(one.calls) >= samples * max(1, round(cost.calls))
    ]


def _of_library(lines: Iterable[WorkerLine], whole_ms: float) -> _Hot | None:
    """The library's function whose own lines take at least ``PART_OF_LOADING`` of the time."""
    found: dict[tuple[str, str], list[WorkerLine]] = {}
    for line in lines:
        found.setdefault((line.file, line.function), []).append(line)
    spent = {name: sum(line.batch_ms for line in some) for name, some in found.items()}
    most = max(spent, key=lambda name: spent[name], default=("", ""))
    if not found or whole_ms <= 0 or spent[most] < PART_OF_LOADING / 100 * whole_ms:
        return None
    places = tuple(line.place for line in found[most])
    often = max(line.calls for line in found[most])
    said = f"`{most[1]}`, which the dataset made here calls"
    return _Hot(places[0], places, spent[most], 100 * spent[most] / whole_ms, often, said)


class _Hot(NamedTuple):
    """``lines`` take ``spent_ms`` of a batch, ``part`` of it in percent. ``said``: what is repeated at
    ``place`` so often that this is what costs; "" where the line itself does. ``same``: what runs the lines
    gives the same for each sample."""

    place: tuple[str, int]
    lines: tuple[tuple[str, int], ...]
    spent_ms: float
    part: float
    calls: float
    said: str
    same: SameCall | None = None
    advice: tuple[str, ...] = ()

    @property
    def itself(self) -> str:
        return "This line" if len(self.lines) == 1 else "This statement"

    def fixes(self) -> Sequence[Callable[[], Fix] | str]:
        return [partial(kept_in_init, self.same)] if self.same is not None else self.advice


def _hottest(
    context: Context, lines: Sequence[_Line], spent_ms: Callable[[_Line], float], whole_ms: float
) -> _Hot | None:
    """The line that takes at least ``PART_OF_LOADING``, with others of its statement, else the short function
    or loop whose lines do."""
    spent: dict[tuple[str, int], float] = {}  # a comprehension is a function of its own, at that line
    calls: dict[tuple[str, int], float] = {}
    for line in lines:
        spent[line.place] = spent.get(line.place, 0.0) + spent_ms(line)
        calls[line.place] = calls.get(line.place, 0.0) + line.calls
    if not spent or whole_ms <= 0:
        return None
    same = _same(context, spent, calls, whole_ms)
    if same is not None:
        return same
    statements: dict[object, list[tuple[str, int]]] = {}
    groups: dict[cst.CSTNode | None, list[tuple[str, int]]] = {}
    for place in spent:
        source = context.source(place[0])
        statement = source.statement_at(place[1])
        plain = isinstance(statement, cst.SimpleStatementLine)
        statements.setdefault(statement if plain else place, []).append(place)
        inside = source.enclosing(statement, cst.For, cst.While, cst.FunctionDef) if statement else None
        if inside is not None:
            groups.setdefault(inside, []).append(place)
    groups[None] = max(statements.values(), key=lambda places: sum(spent[place] for place in places))
    hottest = max(groups[None], key=lambda place: spent[place])
    whole = {around: sum(spent[place] for place in places) for around, places in groups.items()}
    least = PART_OF_LOADING / 100 * whole_ms
    around: cst.CSTNode | None = None
    if whole[None] < least:
        around = max(whole, key=lambda one: whole[one])
    places, total = tuple(groups[around]), whole[around]
    often = max(calls[place] for place in places)
    repeated = None
    if often * _SHORT_MS > total:
        repeated = _own_loop(context, hottest) if around is None else None
        repeated = repeated or _repeated_at(context, lines, places[0])
    short = sum(spent[place] for place in places if spent[place] < calls[place] * _SHORT_MS)
    if isinstance(around, (cst.For, cst.While)) and (often * _SHORT_MS > total or short >= least):
        repeated = _Repeated(context.source(places[0][0]).place(around), _LOOP)
    if total < least or (around is not None and repeated is None):
        return None
    place, said = repeated or (hottest, "")
    return _Hot(place, places, total, 100 * total / whole_ms, often, said)


def _of_sample(context: Context, site: Site, lines: Sequence[_Line], hot: _Hot | None) -> _Hot | None:
    """``hot``; but short lines that a helper repeats, where the dataset's ``__getitem__`` calls it, if the
    samples are the same in each epoch and fit into memory: there they can be kept."""
    loader = facts_of(Loader, site)
    if hot is None or not hot.said or hot.same is not None or loader.sample_form is None:
        return hot
    place = hot.place
    for _ in range(_DEPTH):
        source = context.source(place[0])
        statement = source.statement_at(place[1])
        function = source.enclosing(statement, cst.FunctionDef) if statement is not None else None
        if function is None:
            return hot
        if source.place(function) == (loader.rows_file, loader.rows_line):
            break
        name = function.name.value
        callers = _callers(context, lines, name)
        if len(callers) != 1:
            return hot
        (place,) = callers
    else:
        return hot
    if place == hot.place:
        return hot
    often = sum(line.calls for line in lines if line.place == place)
    said = f"`{name}`, which gives a sample the same in each epoch and runs here"
    return hot._replace(place=place, calls=often, said=said, advice=(_PER_SAMPLE,))


def _same(
    context: Context,
    spent: dict[tuple[str, int], float],
    calls: dict[tuple[str, int], float],
    whole_ms: float,
) -> _Hot | None:
    """A call that takes at least ``PART_OF_LOADING`` and gives the same for each sample."""
    found = []
    for same in same_calls(context, spent):
        lines = tuple(filter(same.runs, spent))
        total, place = sum(spent[line] for line in lines), same.source.place(same.call)
        if total >= PART_OF_LOADING / 100 * whole_ms and place not in lines:
            said = f"`{called_name(same.call)}`, which gives the same for each sample and runs here"
            found.append(_Hot(place, lines, total, 100 * total / whole_ms, calls[place], said, same))
    return max(found, key=lambda hot: hot.spent_ms, default=None)


class _Repeated(NamedTuple):
    place: tuple[str, int]  # of a loop or comprehension
    said: str  # what is repeated there


def _own_loop(context: Context, place: tuple[str, int]) -> _Repeated | None:
    """The loop of its function that repeats a line; the outer one where a loop does nothing but run it."""
    source = context.source(place[0])
    statement = source.statement_at(place[1])
    loops = source.loops(statement) if statement is not None else []
    if not loops:
        return None
    loop = loops[0]
    for outer in loops[1:]:
        if len(outer.body.body) > 1:
            break
        loop = outer
    return _Repeated(source.place(loop), _LOOP)


def _repeated_at(
    context: Context, lines: Sequence[WorkerLine | LineCost], place: tuple[str, int]
) -> _Repeated | None:
    """Where the function of ``place`` is called again and again; None where a loop of that function repeats
    the line, and where several lines call it."""
    for _ in range(_DEPTH):
        source = context.source(place[0])
        statement = source.statement_at(place[1])
        if statement is None or _repeats(source, statement):
            return None
        if source.nodes(*_COMPREHENSIONS, within=statement):
            return None
        function = source.enclosing(statement, cst.FunctionDef)
        if function is None:
            return None
        callers = _callers(context, lines, function.name.value)
        if len(callers) != 1:
            return None
        ((place, (source, call)),) = callers.items()
        if _repeats(source, call) or not source.is_named(call.func, function.name.value):
            return _Repeated(place, f"`{function.name.value}`, which runs here")
    return None


def _callers(
    context: Context, lines: Sequence[WorkerLine | LineCost], name: str
) -> dict[tuple[str, int], tuple[Source, cst.Call]]:
    """The calls of the function ``name`` on these lines, by place."""
    return {
        line.place: (other, call)
        for line in lines
        for other in [context.source(line.file)]
        for call in other.calls(line.line)
        if other.line(call) == line.line and _calls(other, call, name)
    }


def _calls(source: Source, call: cst.Call, name: str) -> bool:
    """Whether ``call`` calls the function, or is given it: ``map(f, rows)``, ``np.vectorize(f)(rows)``."""
    return any(source.is_named(node, name) for node in (call.func, *(given.value for given in call.args)))


def _repeats(source: Source, node: cst.CSTNode) -> bool:
    """Whether a loop or a comprehension of its function runs ``node`` more than once."""
    return bool(source.loops(node)) or source.enclosing(node, *_COMPREHENSIONS) is not None
