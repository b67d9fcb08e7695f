"""One line takes most of the time of loading a batch.

## What it does

Finds the line of a dataset, transform or collate function that takes more than half of the loading time
of a batch, if the step waits for batches. If a loop calls the line's function again and again, each time
for a few microseconds, the finding is at the loop. It looks in the training process and in the loader's
workers, where the lines of two batches per worker are recorded.

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

## Near misses

No line stands out:

```python
from torch.utils.data import DataLoader, Dataset


class Scans(Dataset):
    def __getitem__(self, index):
        image = read(self.paths[index])  #> cost cpu_ms=10 idle_ms=10 loader_ms=10
        image = crop(image)  #> cost cpu_ms=10 idle_ms=10 loader_ms=10
        return normalise(image)  #> cost cpu_ms=10 idle_ms=10 loader_ms=10


for batch in DataLoader(Scans()):
#^ cost cpu_ms=4 idle_ms=4 loader_ms=4; use loader; site loader num_workers=0
    train(batch)  #> cost device_ms=10
```

A slow line, but the step does not wait for batches:

```python
from torch.utils.data import DataLoader, Dataset


class Scans(Dataset):
    def __getitem__(self, index):
        return parse(self.paths[index])  #> cost cpu_ms=0.2 idle_ms=0.2 loader_ms=0.2


for batch in DataLoader(Scans()):  #> cost cpu_ms=0.1 loader_ms=0.1; use loader; site loader num_workers=0
    train(batch)  #> cost device_ms=100
```

## Fix safety

Display: only the author knows what the line computes and where else that could be done.

## References

- [Performance tuning guide: data loading](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import libcst as cst

from warpline.model.change import Scale
from warpline.model.profile import LineCost
from warpline.rulekit import Context, Draft, Rule, Source, count, ms, percent
from warpline.rulekit.loaders import exposed_ms, iterated_at, keeping_up_ms, waited_ms, waits
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
_DEPTH = 4  # functions that only call such functions


class SlowSampleLine(Rule):
    area = "data"

    def find(self, context: Context) -> Iterator[Draft]:
        for site in context.sites("loader"):
            if facts_of(Loader, site).num_workers:
                yield from self._in_workers(context, site)
                continue
            lines = waits(context, site)
            loading = sum(cost.loader_ms for cost in lines)
            hottest = next((cost for cost in lines if cost.place not in site.uses), None)
            if hottest is None or loading <= 0:
                continue
            part = 100 * hottest.loader_ms / loading
            exposed = exposed_ms(context, hottest)
            if part < PART_OF_LOADING or context.share(exposed) < SHARE_OF_STEP:
                continue
            place = hottest.place
            short = hottest.calls * _SHORT_MS > hottest.loader_ms
            repeated = _repeated_at(context, lines, place) if short else None
            yield context.draft(
                repeated.place if repeated else place,
                (f"A line of `{repeated.function}`, which runs here," if repeated else "This line")
                + " takes {spent} of each step, {part} of the loading time of a batch (it runs "
                + ("once" if round(hottest.calls) == 1 else "{calls} times")
                + " a step).",
                {
                    "spent": ms("time at the line", exposed),
                    "part": percent("time at the line", part, "batch time"),
                    "calls": count("calls", hottest.calls, "per step"),
                },
                cause=iterated_at(context, site),
                cost_ms=exposed,
                saving_ms=exposed,
                change=Scale((place,), device=0.0, host=0.0),
            )

    def _in_workers(self, context: Context, site: Site) -> Iterator[Draft]:
        """The wait shrinks as the batch does: by the share of it that the line takes, at most."""
        workers = context.profile.facts.workers
        loaders = [one for one in context.sites("loader") if facts_of(Loader, one).num_workers and one.uses]
        if workers is None or not workers.lines or loaders != [site]:  # whose lines they are is known of one
            return
        spent: dict[tuple[str, int], float] = {}  # a comprehension is a function of its own, at that line
        for line in workers.lines:
            place = line.place
            spent[place] = spent.get(place, 0.0) + line.batch_ms
        hottest = max(spent, key=lambda place: spent[place])
        waited, needed = waited_ms(context, site), keeping_up_ms(context, site)
        if needed is not None:
            waited = min(waited, needed)
        part = 100 * spent[hottest] / workers.batch_ms if workers.batch_ms else 0.0
        if part < PART_OF_LOADING or context.share(waited) < SHARE_OF_STEP:
            return
        calls = sum(line.calls for line in workers.lines if line.place == hottest)
        short = calls * _SHORT_MS > spent[hottest]
        repeated = _repeated_at(context, workers.lines, hottest) if short else None
        evidence = {"calls": count("calls", round(calls), "per batch")} if repeated else {}
        yield context.draft(
            repeated.place if repeated else hottest,
            (
                f"A line of `{repeated.function}`, which runs here {{calls}} times a batch,"
                if repeated
                else "This line"
            )
            + " takes {spent} per batch in the loader's workers, {part} of their time for it, and each step "
            "waits {wait} for a batch.",
            {
                **evidence,
                "spent": ms("time at the line in a worker, per batch", spent[hottest]),
                "part": percent("time at the line", part, "batch time"),
                "wait": ms("exposed wait", waited),
            },
            cause=iterated_at(context, site),
            cost_ms=waited,
            saving_ms=waited * part / 100,
        )


class _Repeated(NamedTuple):
    place: tuple[str, int]  # of a loop or comprehension
    function: str  # that it calls


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
        callers = {
            line.place: (other, call)
            for line in lines
            for other in [context.source(line.file)]
            for call in other.calls(line.line, function.name.value)
            if other.line(call) == line.line
        }
        if len(callers) != 1:
            return None
        ((place, (source, call)),) = callers.items()
        if _repeats(source, call):
            return _Repeated(place, function.name.value)
    return None


def _repeats(source: Source, node: cst.CSTNode) -> bool:
    """Whether a loop or a comprehension of its function runs ``node`` more than once."""
    return bool(source.loops(node)) or source.enclosing(node, *_COMPREHENSIONS) is not None
