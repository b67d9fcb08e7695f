"""`torch.compile` compiles the same code several times.

## What it does

Finds recompilations that Dynamo reported, with the guard that failed. If a size changed, the fix
compiles for dynamic shapes.

## Why is this slow

A compilation takes seconds, and training waits. After eight recompilations Dynamo gives up, and the
code runs uncompiled.

## Example

```python
import torch

compiled = torch.compile(model)  #> found; site compile mode=default
for batch in loader:
    loss = compiled(batch)
    #^ cost step_ms=50 device_ms=50
    #^ event recompile count=6 milliseconds=9000 reason="size mismatch at index 1. expected 64, actual 71"
    loss.backward()
```

## Use instead

```python
import torch

compiled = torch.compile(model, dynamic=True)
for batch in loader:
    loss = compiled(batch)
    loss.backward()
```

## Example

Each size is a reason of its own:

```python
import torch

compiled = torch.compile(model, dynamic=False)
#^ found; site compile mode=default
for batch in loader:
    loss = compiled(batch)
    #^ cost step_ms=50
    #^ event recompile milliseconds=3000 reason="size mismatch at index 1. expected 72, actual 48"
    #^ event recompile milliseconds=3000 reason="size mismatch at index 1. expected 48, actual 24"
```

## Use instead

```python
import torch

compiled = torch.compile(model, dynamic=True)
for batch in loader:
    loss = compiled(batch)
```

## Example

A number of the module's that changes in each step:

```python
import torch

class Quantiser(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = 0  #> found

    def forward(self, x):
        return x / (1 + 0.01 * self.seen)
        #^ cost step_ms=50; event recompile count=6 milliseconds=9000 reason="0/1: self.seen == 1"

compiled = torch.compile(Quantiser())  #> site compile mode=default
loss = compiled(batch)  #> cost step_ms=50
```

## Use instead

Keep it in a tensor: `self.register_buffer("seen", torch.zeros(()))` and `self.seen += 1`.

## Example

One that the class begins with, beside a class of another number of that name:

```python
import torch

class Meter:
    def __init__(self):
        self.calls = 0

class Annealed(torch.nn.Module):
    calls: int = 0  #> found

    def penalty(self, x):
        self.calls += 1
        return x * min(1, self.calls / 1000)

    def cost(self, x):
        #^ cost step_ms=50; event recompile count=6 milliseconds=9000 reason="0/1: self.calls == 1"
        return self.penalty(x).mean()

model = Annealed()
model.cost = torch.compile(model.cost)  #> site compile mode=default
```

## Example

One of a base class, which is counted in the class:

```python
import torch
from parts import Counted

class Warmed(Counted):
    def forward(self, x):
        #^ cost step_ms=50; event recompile count=6 milliseconds=9000 reason="0/1: L['self'].turn == 1"
        self.turn += 1  #> found
        return x * self.turn

compiled = torch.compile(Warmed())  #> site compile mode=default
```

## Example

One of several functions that are compiled:

```python
import torch

@torch.compile  #> site compile mode=default
def whiten(x):
    return x / x.norm()

@torch.compile  #> found; site compile mode=default
def pool(x):  #> cost step_ms=50
    #^ event recompile count=6 milliseconds=9000 reason="size mismatch at index 0. expected 64, actual 71"
    return x.mean(0)
```

## Use instead

```python
import torch

@torch.compile
def whiten(x):
    return x / x.norm()

@torch.compile(dynamic=True)
def pool(x):
    return x.mean(0)
```

## Fix safety

Unsafe: code for dynamic shapes rounds differently, and runs a little slower.

## References

- [Dynamic shapes](https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Refused, Rule, Source, count, ms
from warpline.rulekit.compiling import set_option
from warpline.rulekit.origins import assignments
from warpline.rulekit.terms import function_at, names_in
from warpline.wire.run import CompileEvent, Site

#: Dynamo's reasons for a size that changed.
_SIZES = ("size mismatch", "stride mismatch", "shape", "size()[")
#: Its reason for a number of the script's that changed: `0/1: self.seen == 1`, `L['self'].scale == 0.5`.
_NUMBER = re.compile(r"(?:\d+/\d+: )?((?:[LG]\[')?[\w.'\[\]]*?(\w+)(?:'\])?) == -?\d[\d.e+-]*(?:\s|$)")
#: The option by which whole numbers of modules may change: Dynamo's reason names it where it would help.
_DYNAMIC = "allow_unspec_int_on_nn_module"


class Recompilation(Rule):
    area = "compiled"

    def find(self, context: Context) -> Iterator[Draft]:
        steps = context.profile.steps.captured + len(context.profile.manifest.timed_ns)
        for event in _by_place(context.profile.facts.compile_events):
            if event.count < 2:
                continue
            spent = event.milliseconds / max(steps, 1)
            if not context.matters(spent):
                continue
            site = _compiled_at(context, event)
            number = None if _by_size(event) else _NUMBER.match(event.reason)
            held = _set_at(context, event, *number.groups()) if number is not None else None
            why = "sizes change" if _by_size(event) else ""
            why = f"`{number[1]}` changes" if number is not None else why
            yield context.draft(
                held or (site.place if site is not None else event.place),
                "This code was recompiled {times} times, which took {total}"
                + (f", because {why}." if why else "."),
                {
                    "times": count("recompilations", event.count, "recompilations"),
                    "total": ms("compilation, in all", event.milliseconds),
                    "spent": ms("compilation, over the steps seen", spent),
                },
                # Compile time lies outside the steps: spread over those seen it is this, and a replay of
                # the steps knows nothing of it.
                cause=event.place,
                cost_ms=spent,
                saving_ms=0.0,
                fixes=[partial(_fix, context, site, event, number)],
            )


def _compiled_at(context: Context, event: CompileEvent) -> Site | None:
    """The ``torch.compile`` of several that names the function which is compiled again, or its class, or a
    variable with an object of that; else the first one."""
    sites, source = [*context.sites("compile")], context.source(event.file)
    function = function_at(source, event.line)
    if len(sites) > 1 and function is not None:
        owner = source.enclosing(function, cst.ClassDef)
        named = {(owner or function).name.value, function.name.value} - {"forward", "__call__"}
        above = [source.place(one) for one in function.decorators]
        for site in sites:
            where = context.source(site.file)
            calls: list[cst.BaseExpression] = [*where.calls(site.line, "torch.compile", "compile")]
            values = [value for one in calls for name in names_in(one) for value in where.assigned(name)]
            if site.place in above or named & set().union(*(names_in(one) for one in (*calls, *values))):
                return site
    return next(iter(sites), None)


def _by_place(events: Iterable[CompileEvent]) -> Iterable[CompileEvent]:
    """The recompilations of each function as one: each size that is met is a reason of its own."""
    found: dict[tuple[str, int], CompileEvent] = {}
    for event in events:
        if event.kind == "recompile":
            place = event.place
            spent, times = event.milliseconds, event.count
            if (before := found.get(place)) is not None:
                spent, times = spent + before.milliseconds, times + before.count
            found[place] = replace(event, count=times, milliseconds=spent)
    return found.values()


def _by_size(event: CompileEvent) -> bool:
    return any(words in event.reason for words in _SIZES)


def _set_at(context: Context, event: CompileEvent, guarded: str, name: str) -> tuple[str, int] | None:
    """Where an attribute first gets a value: in a method of the class whose code is compiled, or in the class
    itself; else the one statement that counts it there, or a method of the file."""
    if not guarded.endswith(f".{name}"):
        return None
    source = context.source(event.file)
    own = guarded in (f"self.{name}", f"L['self'].{name}")
    owner = next(iter(source.at(event.line, cst.ClassDef)), None) if own else None
    given = _of_class(source, owner, name) if owner is not None else []
    given = given or source.assigned(f"self.{name}")
    return source.place(given[0]) if given else None


def _of_class(source: Source, owner: cst.ClassDef, name: str) -> list[cst.BaseExpression]:
    """What the class sets the attribute to: in its methods, else in its body, else by its only ``+=``."""
    body = [
        value
        for target, value in assignments(source, owner)
        if source.code(target) == name and source.enclosing(target, cst.FunctionDef, cst.ClassDef) is owner
    ]
    sums = [one.target for one in source.nodes(cst.AugAssign, within=owner)]
    counted: list[cst.BaseExpression] = [one for one in sums if source.code(one) == f"self.{name}"]
    own = source.assigned(f"self.{name}", within=owner)
    return own or body or (counted if len(counted) == 1 else [])


def _fix(context: Context, site: Site | None, event: CompileEvent, number: re.Match[str] | None) -> Fix:
    if number is not None:
        raise Refused(
            f"the code is compiled again for each value of `{number[1]}`: keep it in a buffer, or compute "
            "what depends on it outside the compiled code"
            + (f", or set `torch._dynamo.config.{_DYNAMIC} = True`" if _DYNAMIC in event.reason else "")
        )
    if not _by_size(event):
        raise Refused("the failed guard is not about a size; Dynamo's log names it (TORCH_LOGS=recompiles)")
    if site is None:
        raise Refused("the call of torch.compile was not found")
    return set_option(context, site, "dynamic", "True").fix("Compile for dynamic shapes", "unsafe")
