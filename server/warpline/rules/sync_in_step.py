"""The host waits for the device in every step, and the device then waits for the host.

## What it does

Finds lines at which the host waits for the device (`.item()`, `.cpu()`, `print(tensor)`, `nonzero`, a
tensor as a condition), while the device is idle elsewhere in the step because nothing was queued.

## Why is this slow

The host should run ahead of the device and queue work. A value read on the host makes it wait until
all queued work is done; then the device has nothing to do until the host has queued more. Add up on
the device, and read when the loop is over or every so many steps.

## Example

```python
#> totals idle_ms=8
total = 0.0
for images, labels in loader:
    loss = criterion(model(images), labels)  #> cost device_ms=12 idle_ms=8 step_ms=20
    loss.backward()
    optimizer.step()
    total += loss.item()  #> found; cost cpu_ms=9 sync_ms=9 step_ms=0.5
print(total / len(loader))
```

## Use instead

```python
total = 0.0
for images, labels in loader:
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
    total += loss.detach().double()
total = float(total)
print(total / len(loader))
```

## Example

```python
#> totals idle_ms=8
history = []
for images, labels in loader:
    loss = train(images, labels)  #> cost device_ms=12 idle_ms=8 step_ms=20
    history.append(loss.item())  #> found; cost cpu_ms=9 sync_ms=9 step_ms=0.5
plot(history)
```

## Use instead

```python
history = []
for images, labels in loader:
    loss = train(images, labels)
    history.append(loss.detach())
history[:] = [float(value) for value in history]
plot(history)
```

## Example

```python
#> totals idle_ms=8
for step, (images, labels) in enumerate(loader):
    loss = train(images, labels)  #> cost device_ms=12 idle_ms=8 step_ms=20
    print(f"step {step}: {loss.item():.3f}")  #> found; cost cpu_ms=9 sync_ms=9
```

## Use instead

```python
for step, (images, labels) in enumerate(loader):
    loss = train(images, labels)
    if step % 50 == 0:
        print(f"step {step}: {loss.item():.3f}")
```

## Example

```python
#> totals idle_ms=8
right = 0
for images, labels in loader:
    scores = model(images)  #> cost device_ms=12 idle_ms=8 step_ms=20
    right += (scores.argmax(1) == labels).sum().item()  #> found; cost cpu_ms=9 sync_ms=9 step_ms=0.5
print(right)
```

## Use instead

```python
right = 0
for images, labels in loader:
    scores = model(images)
    right += (scores.argmax(1) == labels).sum().detach()
right = int(right)
print(right)
```

## Near misses

The device is never idle: the wait costs nothing.

```python
#> totals idle_ms=0.001
total = 0.0
for images, labels in loader:
    loss = train(images, labels)  #> cost device_ms=20
    total += loss.item()  #> cost cpu_ms=19 sync_ms=19 step_ms=0.001
```

Read every hundredth step only:

```python
#> totals idle_ms=8
for step, images in enumerate(loader):
    loss = train(images)  #> cost device_ms=12 idle_ms=8 step_ms=20
    if step % 100 == 0:
        print(loss.item())
```

## Fix safety

Safe where the sum or the list is only read after the loop: a sum in double precision on the device
has the very same bits. Unsafe where a message is printed every so many steps only.

## References

- [Tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.change import RemoveSyncs
from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, ms, percent
from warpline.rulekit.source import Source, Statement
from warpline.rulekit.waiting import counter, is_method, lost_ms, read_call, reads_of

#: Operators that bring a value to the host.
_READ_OPS = ("aten::item", "aten::_local_scalar_dense")


class SyncInStep(Rule):
    area = "waiting"
    needs_gpu = True

    def find(self, context: Context) -> Iterator[Draft]:
        for cost in context.profile.lines:
            lost = lost_ms(context, cost)
            if not context.matters(lost):
                continue
            if any(kernel.kind == "copy" and "HtoD" in kernel.name for kernel in cost.kernels):
                continue  # waiting for a copy to the device: the data rules
            place = (cost.file, cost.line)
            yield context.draft(
                place,
                place,
                "The host waits {wait} of each step for the device here, and queues nothing meanwhile: the "
                "device is then idle, {idle} a step in all.",
                {
                    "wait": ms("sync wait", cost.sync_ms),
                    "idle": ms("device idle", context.idle_ms()),
                    "share": percent("at most lost", context.share(lost)),
                },
                cost_ms=lost,
                change=RemoveSyncs((place,)),
                fixes=[partial(_fix, context, cost)],
            )


def _fix(context: Context, cost: LineCost) -> Fix:
    source = context.source(cost.file)
    call = read_call(source, cost.line) if source is not None else None
    if source is None or call is None:
        raise Refused("what waits here is not a plain `.item()` or `.cpu()`")
    statement = source.statement(call)
    loops = source.loops(call)
    if statement is None or not loops:
        raise Refused("the value is read in no loop of this function")
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        raise Refused("the value decides which way the program goes")
    small = statement.body[0]
    if is_method(call, "item") and isinstance(small, cst.AugAssign) and isinstance(small.target, cst.Name):
        return _sum(source, call, small, cost)
    if isinstance(small, cst.Expr):
        outer = small.value
        if is_method(outer, "append") and is_method(call, "item"):
            return _list(source, call, outer, _whole(source, call, cost))
        return _every_so_often(source, statement, call)
    raise Refused("the value is used on the host in every step")


def _sum(source: Source, call: cst.Call, small: cst.AugAssign, cost: LineCost) -> Fix:
    assert isinstance(small.target, cst.Name)
    if not isinstance(small.operator, cst.AddAssign):
        raise Refused("only sums can be kept on the device without changing their bits")
    name, whole = small.target.value, _whole(source, call, cost)
    loop = _loop_without(source, name, small)
    edits = Edits(source)
    # In double precision a sum has the bits that Python's own would have.
    edits.replace(call, _receiver(source, call) + (".detach()" if whole else ".detach().double()"))
    edits.insert_after(loop, f"{name} = {'int' if whole else 'float'}({name})")
    # What was summed may have been integers, which no record says: then a whole number becomes 3.0.
    known = whole or _types(cost) or not is_method(_summed(call), "sum", "count_nonzero")
    return edits.fix("Add up on the device and read once after the loop", "safe" if known else "unsafe")


def _list(source: Source, call: cst.Call, outer: cst.BaseExpression, whole: bool) -> Fix:
    assert isinstance(outer, cst.Call) and isinstance(outer.func, cst.Attribute)
    if not isinstance(outer.func.value, cst.Name) or len(outer.args) != 1 or outer.args[0].value is not call:
        raise Refused("the value is used on the host in every step")
    name = outer.func.value.value
    loop = _loop_without(source, name, outer)
    edits = Edits(source)
    edits.replace(call, _receiver(source, call) + ".detach()")
    edits.insert_after(loop, f"{name}[:] = [{'int' if whole else 'float'}(value) for value in {name}]")
    return edits.fix("Keep the values on the device and read them after the loop", "safe")


def _whole(source: Source, call: cst.Call, cost: LineCost) -> bool:
    """Whether the value that is read is an integer: by its recorded type, else a counted comparison."""
    types = _types(cost)
    if types:
        return all("int" in name or "bool" in name for name in types)
    summed = _summed(call)
    if not is_method(summed, "sum") or not isinstance(summed, cst.Call):
        return False
    return bool(source.nodes(cst.Comparison, within=summed.func))


def _types(cost: LineCost) -> list[str]:
    return [op.dtypes[0] for op in cost.ops if op.name in _READ_OPS and op.dtypes]


def _summed(call: cst.Call) -> cst.BaseExpression | None:
    return call.func.value if isinstance(call.func, cst.Attribute) else None


def _loop_without(source: Source, name: str, use: cst.CSTNode) -> cst.For | cst.While:
    """The innermost loop, provided that ``name`` is used nowhere else in it."""
    loop = source.loops(use)[0]
    for read in reads_of(source, name, loop):
        if not source.inside(read, use):
            raise Refused(f"`{name}` is also read inside the loop")
    if any(isinstance(node, cst.Return) for node in source.nodes(cst.Return, within=loop)):
        raise Refused("the function may return from inside the loop")
    return loop


def _receiver(source: Source, call: cst.Call) -> str:
    assert isinstance(call.func, cst.Attribute)
    return source.code(call.func.value)


def _every_so_often(source: Source, statement: Statement, call: cst.Call) -> Fix:
    found = counter(source, statement)
    if found is None:
        raise Refused("the loop has no counter by which to read it every so many steps")
    if any(
        isinstance(outer, cst.If) for outer in source.ancestors(statement) if source.inside(outer, found[1])
    ):
        raise Refused("it is read under a condition already")
    edits = Edits(source)
    edits.wrap([statement], f"if {found[0]} % 50 == 0:")
    return edits.fix("Read the value every so many steps only", "unsafe")
