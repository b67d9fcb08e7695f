"""A stored loss keeps the whole graph of its step in memory.

## What it does

Finds memory that grows from step to step while the loop sums or collects losses with their graph, or
while another line stores results of the step, such as its scores. It is told where a million steps would fill
the memory that is free, or from 1 MiB a step on. On a CPU the graph's nodes alone may do that.

## Why is this slow

`total += loss` or `losses.append(loss)` keeps every activation of that step. Memory fills up, until the
run fails or a smaller batch is needed.

## Example

```python
#> memory growth_bytes_per_step=52428800
total = 0.0
for images, labels in loader:
    loss = criterion(model(images), labels)  #> cost device_ms=20 kept_bytes=52428800
    loss.backward()
    optimizer.step()
    total += loss  #> found
print(total)
```

## Use instead

```python
total = 0.0
for images, labels in loader:
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
    total += loss.detach()
print(total)
```

## Example

```python
#> memory growth_bytes_per_step=52428800
losses = []
for images, labels in loader:
    loss = criterion(model(images), labels)  #> cost device_ms=20 kept_bytes=52428800
    losses.append(loss)  #> found
    loss.backward()
```

## Use instead

```python
losses = []
for images, labels in loader:
    loss = criterion(model(images), labels)
    losses.append(loss.detach())
    loss.backward()
```

## Example

```python
#> memory growth_bytes_per_step=52428800
class Meter:
    def update(self, scores, labels):
        self.true.append(labels)  #> cost cpu_ms=0.001 calls=1
        self.seen.append(scores)  #> found; cost cpu_ms=0.001 calls=1

for images, labels in loader:
    scores = model(images)  #> cost device_ms=20 kept_bytes=52428800 nodes=40 calls=1
    criterion(scores, labels).backward()
    meter.update(scores, labels)  #> cost cpu_ms=0.01 calls=1
```

## Use instead

```python
class Meter:
    def update(self, scores, labels):
        self.true.append(labels)
        self.seen.append(scores.detach())

for images, labels in loader:
    scores = model(images)
    criterion(scores, labels).backward()
    meter.update(scores, labels)
```

## Example

```python
#> memory growth_bytes_per_step=52428800
class Mean:
    def update(self, value):
        self.sum = self.sum + value  #> found; cost cpu_ms=0.001 calls=1

for images, labels in loader:
    scores = model(images)  #> cost device_ms=20 kept_bytes=52428800 nodes=40 calls=1
    mean.update(entropy(scores[:, :64]))  #> cost cpu_ms=0.01 calls=1 nodes=4
    criterion(scores, labels).backward()
```

## Use instead

```python
class Mean:
    def update(self, value):
        self.sum = self.sum + value.detach()

for images, labels in loader:
    scores = model(images)
    mean.update(entropy(scores[:, :64]))
    criterion(scores, labels).backward()
```

## Example

```python
#> memory growth_bytes_per_step=52428800
entropy = 0.0
for images, labels in loader:
    scores = model(images)  #> cost device_ms=20 kept_bytes=52428800 nodes=40 calls=1
    criterion(scores, labels).backward()  #> cost calls=1 nodes=2
    entropy = 0.9 * entropy + 0.1 * spread(scores)  #> found; cost cpu_ms=0.001 calls=1 nodes=6
```

## Use instead

```python
entropy = 0.0
for images, labels in loader:
    scores = model(images)
    criterion(scores, labels).backward()
    entropy = (0.9 * entropy + 0.1 * spread(scores)).detach()
```

## Example

On a CPU, the size of the process shows the nodes of the graph; torch keeps a few numbers only:

```python
#> device kind=cpu; memory growth_bytes_per_step=60000 free_bytes=20000000000
class Sums:
    def count(self, parts):
        for name, part in parts.items():
            self.of[name] += 0.5 * part  #> found; cost cpu_ms=0.1 kept_bytes=8 calls=2 nodes=4

for images, labels in loader:
    loss = criterion(model(images), labels)  #> cost device_ms=20 nodes=40 calls=1
    loss.backward()  #> cost calls=1
    sums.count({"loss": loss})  #> cost cpu_ms=0.1 calls=1
```

## Use instead

```python
class Sums:
    def count(self, parts):
        for name, part in parts.items():
            self.of[name] += (0.5 * part).detach()

for images, labels in loader:
    loss = criterion(model(images), labels)
    loss.backward()
    sums.count({"loss": loss})
```

## Example

One entry of a dict still has its graph, and others are numbers:

```python
#> memory growth_bytes_per_step=52428800
def compare(scores, labels):
    error = (scores - labels).abs()  #> cost device_ms=1 kept_bytes=52428800 calls=1 nodes=2 unused_nodes=2
    metrics = {
        "error": error.mean(),  #> cost calls=1 nodes=1 unused_nodes=1
        "close": (error < 1).float().mean().item(),  #> cost calls=1
    }
    return criterion(scores, labels), metrics  #> cost calls=1 nodes=2

class Log:
    def push(self, metrics):
        for name in metrics:
            self.sums[name] += metrics[name]  #> found; cost calls=2 nodes=1 unused_nodes=1

for images, labels in loader:
    loss, metrics = compare(model(images), labels)  #> cost device_ms=20 calls=1 nodes=40
    loss.backward()  #> cost calls=1
    log.push(metrics)  #> cost calls=1
```

## Use instead

```python
def compare(scores, labels):
    error = (scores - labels).abs()
    metrics = {
        "error": error.mean().detach(),
        "close": (error < 1).float().mean().item(),
    }
    return criterion(scores, labels), metrics

class Log:
    def push(self, metrics):
        for name in metrics:
            self.sums[name] += metrics[name]

for images, labels in loader:
    loss, metrics = compare(model(images), labels)
    loss.backward()
    log.push(metrics)
```

## Fix safety

Safe: the values stay the same. Only the graph is freed, and no backward pass uses it. No edit is offered
where a line keeps all that is passed by any name (`**values`), or all entries of a dict, and some of it may
be a plain number; unless only one value has a graph, and no backward pass goes through that.

## References

- [FAQ: my model reports "cuda runtime error: out of memory"](https://docs.pytorch.org/docs/stable/notes/faq.html)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, size
from warpline.rulekit.entries import held
from warpline.rulekit.keeping import keepers
from warpline.rulekit.made_in_step import is_made, some_with_graph
from warpline.rulekit.memory import growth_bytes
from warpline.syntax.source import Source, is_method, receiver


class GraphKeptAlive(Rule):
    area = "waiting"
    covers = ("memory-growth",)

    def find(self, context: Context) -> Iterator[Draft]:
        held = growth_bytes(context, mistaken=True)
        growth = held or growth_bytes(context, mistaken=True, graph=True)
        if growth is None:
            return
        kept = [cost for cost in context.profile.lines if cost.kept_bytes > 0]
        hottest = max(kept, key=lambda cost: cost.kept_bytes, default=None)
        losses = [(source, node) for source in context.sources() for node in _kept_losses(source)]
        keeping = [(source, node) for source, node, _ in keepers(context)][:1]
        for source, node in (losses or keeping) if keeping or held else ():
            place = source.place(node)
            yield context.draft(
                place,
                "This keeps the graph of every step: memory grows by {growth} a step.",
                {"growth": size("memory growth per step", growth)},
                cause=hottest.place if hottest is not None else place,
                cost_ms=None,
                severity="warning",
                fixes=[partial(_fix, context, source, node)],
            )


def _kept_losses(source: Source) -> Iterator[cst.Name]:
    """``loss`` in ``total += loss`` and ``losses.append(loss)``, in a loop that calls
    ``loss.backward()``; not where the sum itself is sent back."""
    losses = (receiver(call) for call in source.nodes(cst.Call) if is_method(call, "backward"))
    sent = {loss.value for loss in losses if isinstance(loss, cst.Name)}
    for node in source.nodes(cst.Name):
        if node.value not in sent or not source.loops(node):
            continue
        parent = source.parent(node)
        if isinstance(parent, cst.AugAssign) and parent.value is node:
            sent_itself = isinstance(parent.target, cst.Name) and parent.target.value in sent
            if isinstance(parent.operator, cst.AddAssign) and not sent_itself:
                yield node
        elif is_method(source.taking(node), "append"):
            yield node


def _fix(context: Context, source: Source, node: cst.BaseExpression) -> Fix:
    if isinstance(node, cst.IfExp):  # in the first step it may be a plain number
        raise Refused("add `.detach()` to the side of the `if` that has the graph")
    if parts := held(context, source, node):  # which have no `detach` as a whole
        made = [(other, one) for other, one in parts if is_made(context, other, one, graph=True)]
        raise Refused(f"detach {_listed(made)} where `{source.code(node)}` is made")
    if passed := some_with_graph(context, source, node):  # others may be plain numbers
        return _fix_of_some(context, passed)
    cost = context.cost(*source.place(node))
    if not is_made(context, source, node, graph=True) and cost is not None and cost.nodes < cost.calls:
        raise Refused(f"`{source.code(node)}` may be a plain number, too: detach it where it has a graph")
    return _detached(source, node)


def _fix_of_some(context: Context, passed: list[tuple[Source, cst.BaseExpression]]) -> Fix:
    """Each is detached where it is written, if nothing else can have its graph, and none is needed."""
    (source, node), *others = passed
    cost = context.cost(*source.place(node))
    unused = cost is not None and 0 < cost.nodes == cost.unused_nodes
    if others or not isinstance(node, cst.Call) or not unused:
        raise Refused(f"what is kept may not all be tensors: detach {_listed(passed)} where it is written")
    return _detached(source, node)


def _listed(parts: list[tuple[Source, cst.BaseExpression]]) -> str:
    return ", ".join(f"`{other.code(one)}` (line {other.line(one)})" for other, one in parts)


def _detached(source: Source, node: cst.BaseExpression) -> Fix:
    code = source.code(node)
    plain = isinstance(node, (cst.Name, cst.Attribute, cst.Subscript, cst.Call))
    edits = Edits(source).replace(node, f"{code}.detach()" if plain else f"({code}).detach()")
    return edits.fix("Store the value without its graph (detach)", "safe")
