"""A Python loop works on one slice of a tensor at a time.

## What it does

Finds costly loops and comprehensions that iterate over a tensor, or index it, and launch many small
operations; also loops that do the same to the same tensors with another number in each iteration
(`labels == k` for each `k`), without layers and without needing the previous result. If each iteration does
the same to its own slice and collects the results, the fix replaces the loop with one operation on the whole
tensor. Otherwise the finding says why not.

## Why is this slow

Each operation takes the host tens of microseconds in every iteration, whatever the size of the slice,
and a slice is too small to fill the device. On the whole tensor it is one operation.

## Example

```python
import torch

def scale(x, low, high):
    rows = []
    for i in range(x.size(0)):
        rows.append((x[i] - low) / (high - low))
        #^ found; cost step_ms=12 idle_ms=10 cpu_ms=12 launches=192; op aten::select count=64 cpu_ms=1
    y = torch.stack(rows)
    return y
```

## Use instead

```python
import torch

def scale(x, low, high):
    y = (x - low) / (high - low)
    return y
```

## Example

Iterations that depend on one another are not edited:

```python
def scan(x, state):
    for t in range(x.shape[0]):
        state = 0.9 * state + x[t]
        #^ found; cost step_ms=12 idle_ms=10 cpu_ms=12 launches=192; op aten::select count=64 cpu_ms=1
    return state
```

## Use instead

Nothing is edited: each iteration needs the result of the previous one.

## Example

A loop over the images of a tensor:

```python
def set_loss(boxes, kinds, wanted):
    total = []
    for i, target in enumerate(wanted):
        #^ op aten::unbind count=1 shapes=[[64,100]] cpu_ms=0.1; cost step_ms=0.2 cpu_ms=0.2
        near = F.l1_loss(boxes[i], wanted[i])
        right = F.cross_entropy(kinds[i], target)
        #^ found; cost step_ms=12 idle_ms=10 cpu_ms=12 launches=192; op aten::nll_loss count=64 cpu_ms=5
        total.append(near + right)
    return torch.stack(total).mean()
```

## Use instead

One loss over all images: `F.cross_entropy(kinds.flatten(0, 1), wanted.flatten())`.

## Example

Slices of different lengths:

```python
import torch

def pooled(rows, spans):
    parts = []
    for start, end in spans:
        parts.append(rows[:, start:end].amax(1))
        #^ found; cost step_ms=9 cpu_ms=9 device_ms=1 calls=40 launches=40; op aten::amax count=7 cpu_ms=8
        #^ op aten::slice count=5 shapes=[[64,30]]; op aten::slice count=5 shapes=[[64,31]]
        #^ op aten::slice count=6 shapes=[[64,32]]
    return torch.cat(parts)

for rows, spans in loader:
    train(pooled(rows, spans))  #> cost device_ms=10
```

## Use instead

One call for all pieces: pad them to one length with a mask, or reduce by a row's number with
`scatter_reduce_`.

## Near misses

Micro-batches:

```python
for piece in images.chunk(16):
    #^ op aten::split count=1 shapes=[[64,100]] cpu_ms=0.1; cost step_ms=0.2 cpu_ms=0.2
    loss = model(piece).sum()  #> cost step_ms=12 idle_ms=10 cpu_ms=12; op aten::addmm count=64 cpu_ms=5
    loss.backward()
```

A loop over a few layers, each a large operation:

```python
for i in range(12):
    x = layers[i](x)  #> cost step_ms=40 device_ms=40 launches=120; op aten::addmm count=12 device_ms=40
```

A training loop:

```python
for i in range(1000):
    batch = data[i]  #> cost step_ms=1 cpu_ms=1; op aten::select count=1 cpu_ms=1
    loss = model(batch)  #> cost device_ms=40
```

A recurrent network, whose cell needs the previous result:

```python
for t in range(x.shape[1]):
    h = cell(x[:, t], h)  #> cost step_ms=12 idle_ms=10 cpu_ms=12; op aten::select count=64 cpu_ms=1
```

It takes almost no time:

```python
for i in range(x.size(0)):
    y[i] = x[i] * 2  #> cost step_ms=0.01 cpu_ms=0.01; op aten::select count=64 cpu_ms=0.01
train(y)  #> cost device_ms=40
```

## Fix safety

Unsafe: the same elementwise arithmetic on the whole tensor. The values are the same if the other
operands (`low`, `high`) are numbers or broadcast in the same way.

## References

- [Vectorising: torch.vmap](https://docs.pytorch.org/docs/stable/generated/torch.vmap.html)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial

import libcst as cst

from warpline.model.change import Change, Replace, Scale, Together
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, Source, count, ms, percent
from warpline.rulekit.rounds import Rounds, piecework_ms, rounds, takes_piece
from warpline.rulekit.terms import descend
from warpline.syntax.source import Statement

#: Kernels that take less are all launch and tail (see ``warpline.simulate.changes``).
SHORT_MS = 0.005

_SLICES, _WHOLE = "one slice after the other", "the same tensors again and again"
_ELEMENTWISE = {
    "abs", "exp", "log", "log1p", "sqrt", "rsqrt", "sin", "cos", "tanh", "sigmoid", "relu", "gelu", "silu",
    "clamp", "square", "pow", "float", "half",
}  # fmt: skip


class PythonLoopOverTensor(Rule):
    area = "fusion"

    def find(self, context: Context) -> Iterator[Draft]:
        for found in rounds(context):
            costs = found.costs
            spent = sum(cost.step_ms for cost in costs)
            calls = sum(op.count for cost in costs for op in cost.ops if op.outer)
            pieces = {(cost.file, cost.line): piecework_ms(cost) for cost in costs}
            device = sum(cost.device_ms for cost in costs) - sum(pieces.values())
            launches = sum(cost.launches for cost in costs)
            # Rounds that keep the device busy are not what the loop costs, unless it is with taking pieces.
            if not context.matters(spent) or (context.on_gpu and device > spent / 2):
                continue
            # A kernel this short takes as long for one piece as for many.
            short = context.on_gpu and launches > 0 and device / launches < SHORT_MS
            first, last = found.source.span(found.loop)
            inside = context.costs_within(found.source.path, first[0], last[0])
            hottest = max(
                [cost for cost in costs if cost in inside] or costs,
                key=lambda cost: (not found.whole and takes_piece(cost), cost.step_ms),
            )
            yield context.draft(
                (hottest.file, hottest.line),
                (hottest.file, hottest.line),
                f"A Python loop works on {_WHOLE if found.whole else _SLICES}: {{rounds}} iterations and "
                "{calls} operations a step, which take {spent} ({share}).",
                {
                    "rounds": count("rounds", round(found.count), "per step"),
                    "calls": count("operations in the loop", round(calls), "per step"),
                    "spent": ms("loop over a tensor", spent),
                    "share": percent("loop over a tensor", context.share(spent)),
                },
                cost_ms=spent,
                saving_ms=spent * (1 - 1 / found.count),
                change=_at_once(found, short, pieces),
                fixes=[partial(_fix, found)],
            )


def _at_once(found: Rounds, short: bool, pieces: Mapping[tuple[str, int], float]) -> Change:
    """One round for all pieces. Where that was not tried: one round's time on the host, and on a device that
    is done with a piece as soon as it begins; else of taking the pieces (``pieces``: ms by line) alone."""
    places = tuple((cost.file, cost.line) for cost in found.costs)
    gone = 1 - 1 / found.count
    otherwise = Together(
        tuple(
            Scale(
                ((cost.file, cost.line),),
                device=1 - gone * (1.0 if short else pieces[cost.file, cost.line] / (cost.device_ms or 1.0)),
                host=1 - gone,
            )
            for cost in found.costs
        )
    )
    if found.whole:  # what each round takes of the same tensors is not in their shapes
        return otherwise
    return Replace("loop", places, otherwise, (str(round(found.count)),))


def _fix(found: Rounds) -> Fix:
    source, loop = found.source, found.loop
    if found.whole:
        raise Refused(
            "create a tensor of all numbers (`torch.arange(n)[:, None]`) and compute all "
            "iterations at once, or combine rows by their number with `index_add_` or "
            "`scatter_reduce_`"
        )
    if not isinstance(loop, cst.For):
        raise Refused(
            "the loop is a comprehension: call its function with the whole tensor, or use `torch.vmap`"
        )
    block = source.block(loop)
    index = block.index(loop)
    body = loop.body.body
    if len(body) != 1 or loop.orelse is not None or not isinstance(body[0], cst.SimpleStatementLine):
        raise Refused(
            "an iteration has more than one statement" if len(body) > 1 else "iterations may differ"
        )
    pieces, value = _collected(source, body[0])
    if value is None or pieces is None:
        carried = _bound(loop) & _read(loop)
        reason = "each iteration needs the result of the previous one"
        raise Refused(reason if carried else "the results are not collected in a list")
    start, stack = _start(source, block[:index], pieces), block[index + 1] if index + 1 < len(block) else None
    if start is None or stack is None:
        raise Refused("the list of results is not created directly above the loop and stacked directly below")
    joined = _stacked(source, stack, pieces)
    variable, tensor = source.code(loop.target), _whole(source, loop)
    whole = _lifted(source, value, variable, tensor)
    edits = Edits(source)
    edits.remove(start)
    edits.remove(loop)
    edits.replace(joined, whole)
    return edits.fix("Work on the whole tensor at once", "unsafe")


def _bound(loop: cst.For) -> set[str]:
    """Names that a round gives a value."""
    targets = (item.target for item in descend(loop.body, cst.AssignTarget, cst.AugAssign))
    return {target.value for target in targets if isinstance(target, cst.Name)}


def _read(loop: cst.For) -> set[str]:
    values = (item.value for item in descend(loop.body, cst.Assign, cst.AugAssign))
    names = {name.value for value in values for name in descend(value, cst.Name)}
    added = (item.target for item in descend(loop.body, cst.AugAssign))
    return names | {target.value for target in added if isinstance(target, cst.Name)}


def _collected(
    source: Source, statement: cst.SimpleStatementLine
) -> tuple[str | None, cst.BaseExpression | None]:
    """``rows.append(value)`` -> rows, value."""
    small = statement.body[0]
    call = small.value if isinstance(small, cst.Expr) else None
    if (
        isinstance(call, cst.Call)
        and isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "append"
    ):
        return source.code(call.func.value), call.args[0].value if len(call.args) == 1 else None
    return None, None


def _start(source: Source, above: list[Statement], pieces: str) -> Statement | None:
    return next((item for item in reversed(above) if source.code(item).strip() == f"{pieces} = []"), None)


def _stacked(source: Source, statement: Statement, pieces: str) -> cst.Call:
    calls: list[cst.Call] = list(descend(statement, cst.Call))
    for call in calls:
        given = [source.code(arg.value) for arg in call.args]
        if source.is_named(call.func, "torch.stack") and given and given[0] == pieces:
            dim = source.argument(call, "dim", 1)
            if dim is None or source.literal(dim.value) == 0:
                return call
    raise Refused("the list is not stacked along the first dimension directly below the loop")


def _whole(source: Source, loop: cst.For) -> str:
    """The tensor whose first dimension the loop runs over."""
    found = re.fullmatch(r"range\((?:len\((\w+)\)|(\w+)\.(?:size\(0\)|shape\[0\]))\)", source.code(loop.iter))
    if found is None:
        raise Refused("the loop may not run over the whole first dimension")
    return found.group(1) or found.group(2)


def _lifted(source: Source, value: cst.BaseExpression, variable: str, tensor: str) -> str:
    """``value`` with ``x`` for ``x[i]``; elementwise only."""
    for node in descend(value, cst.BaseExpression):
        if isinstance(node, cst.Call):
            name = source.code(node.func).rpartition(".")[2]
            if name not in _ELEMENTWISE or any(arg.keyword is not None for arg in node.args):
                raise Refused(f"`{name}` may not be elementwise")
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.MatrixMultiply):
            raise Refused("a matrix product is not elementwise")
    text = source.code(value)
    lifted = re.sub(rf"\b{tensor}\s*\[\s*{variable}\s*\]", tensor, text)
    if lifted == text or re.search(rf"\b{variable}\b", lifted):
        raise Refused("the loop variable is used for more than the slice")
    return lifted
