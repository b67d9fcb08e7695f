"""A tensor grows by concatenation in a loop, and is copied completely each time.

## What it does

Finds `out = torch.cat([out, piece])` in a loop when the line takes a measurable part of the step. The
fix collects the pieces in a list and concatenates them once after the loop. Where an `if` tells the first
piece from the others (`out is None`, or the number of the round), that goes with it. Attributes, entries of a
dictionary, queues that lose their oldest entries, and arrays of NumPy's are found, too. So is what keeps its
length: a queue, a window or a cache that each step copies to put a piece in and let another go, by
`torch.cat` or `torch.roll`, where the next step reads the result in its place.

## Why is this slow

Each iteration allocates a new tensor and copies everything collected so far: `n` iterations copy about
`n * n / 2` pieces. One concatenation after the loop copies each piece once.

## Example

```python
import torch

def collect(chunks):
    out = torch.empty(0, 64)
    for chunk in chunks:
        piece = encode(chunk)  #> cost device_ms=5
        out = torch.cat([out, piece], dim=0)
        #^ found; cost step_ms=8 device_ms=8 calls=100; op aten::cat count=100 device_ms=8
    return out
```

## Use instead

```python
import torch

def collect(chunks):
    out = torch.empty(0, 64)
    out_parts = [out]
    for chunk in chunks:
        piece = encode(chunk)
        out_parts.append(piece)
    out = torch.cat(out_parts, dim=0)
    return out
```

## Example

```python
import torch

outputs = None
for step in range(100):
    y = cell(step)  #> cost device_ms=5
    if outputs is None:
        outputs = y
    else:
        outputs = torch.cat((outputs, y), 1)
        #^ found; cost step_ms=8 device_ms=8; op aten::cat count=99 device_ms=8
total = outputs.sum()
```

## Use instead

```python
import torch

outputs_parts = []
for step in range(100):
    y = cell(step)
    outputs_parts.append(y)
outputs = torch.cat(outputs_parts, 1)
total = outputs.sum()
```

## Example

```python
import torch

frames = None
for at, noise in enumerate(noises):
    x = denoise(x, noise)  #> cost device_ms=5
    frames = x if frames is None else torch.cat([frames, x])
    #^ found; cost step_ms=8 device_ms=8; op aten::cat count=99 device_ms=8
show(frames)
```

## Use instead

```python
import torch

frames_parts = []
for at, noise in enumerate(noises):
    x = denoise(x, noise)
    frames_parts.append(x)
frames = torch.cat(frames_parts)
show(frames)
```

## Example

Several tensors grow in one loop:

```python
import torch

means, spreads = torch.zeros(0, 8), torch.zeros(0, 8)
for x in parts:
    mean = encode(x)  #> cost device_ms=5
    means = torch.cat((means, mean))
    #^ found; cost step_ms=4 device_ms=4; op aten::cat count=50 device_ms=4
    spreads = torch.cat((spreads, mean.exp()))
    #^ cost step_ms=3 device_ms=3; op aten::cat count=50 device_ms=3
loss = spreads.log().sum() + means.square().sum()
```

## Use instead

```python
import torch

means, spreads = torch.zeros(0, 8), torch.zeros(0, 8)
means_parts = [means]
spreads_parts = [spreads]
for x in parts:
    mean = encode(x)
    means_parts.append(mean)
    spreads_parts.append(mean.exp())
means = torch.cat(means_parts)
spreads = torch.cat(spreads_parts)
loss = spreads.log().sum() + means.square().sum()
```

## Example

A cache that each call needs completely:

```python
def forward(self, k, v, past):
    k = torch.cat([past[0], k], dim=1)
    #^ found; cost step_ms=4 device_ms=4; op aten::cat count=2 shapes=[[8,200,64,8,1,64],[]] device_ms=1
    #^ op aten::cat count=2 shapes=[[8,201,64,8,1,64],[]] device_ms=1
    #^ op aten::cat count=2 shapes=[[8,202,64,8,1,64],[]] device_ms=1
    return attend(k, v)  #> cost device_ms=10
```

## Use instead

Allocate the tensor at its final length and write into it: `cache[:, at : at + 1] = k`.

## Example

Each round is a step of its own:

```python
import torch

kept = torch.empty(0, 64)
for chunk in chunks:
    kept = torch.cat((kept, encode(chunk)))
    #^ found; cost step_ms=4 device_ms=4
    #^ op aten::cat count=0.3 shapes=[[800,64,16,64],[]] device_ms=1
    #^ op aten::cat count=0.3 shapes=[[816,64,16,64],[]] device_ms=1
    #^ op aten::cat count=0.3 shapes=[[832,64,16,64],[]] device_ms=1
```

## Use instead

```python
import torch

kept = torch.empty(0, 64)
kept_parts = [kept]
for chunk in chunks:
    kept_parts.append(encode(chunk))
kept = torch.cat(kept_parts)
```

## Example

A queue of each class, in an attribute:

```python
import torch

class Memory:
    def keep(self, rows, kinds):
        for kind in range(self.kinds):
            self.kept[kind] = torch.cat((self.kept[kind], rows[kinds == kind]))[-4000:]
            #^ found; cost step_ms=4 device_ms=4
            #^ op aten::cat count=0.3 shapes=[[4000,64,16,64],[]] device_ms=1
            #^ op aten::cat count=0.3 shapes=[[4000,64,18,64],[]] device_ms=1
```

## Use instead

A tensor of 4000 rows for each class, into which each row is written where the oldest one stands.

## Example

A queue of negatives that two functions change:

```python
import torch

def put(queue, keys):
    return torch.cat([queue, keys])
    #^ found; cost step_ms=9 device_ms=9 calls=1; op aten::cat count=1 device_ms=9
    #^ tensor %8 shape=[65536,128] next=%1; tensor %9 shape=[16,128]
    #^ node aten.cat.default args=[[%8,%9]] shape=[65552,128]

def cut(queue):
    return queue[-65536:]
    #^ cost step_ms=0.1 calls=1; node aten.slice.Tensor args=[%0,0,-65536] shape=[65536,128]

for x in loader:
    keys = momentum_model(x)  #> cost device_ms=20 calls=1
    queue = cut(put(queue, keys))  #> cost calls=1
```

## Use instead

One tensor that is written in place: `queue[at : at + len(keys)] = keys`, and then
`at = (at + len(keys)) % len(queue)`.

## Example

A window that moves on:

```python
import torch

def observe(self, row):
    self.window = torch.roll(self.window, -1, 0)
    #^ found; cost step_ms=9 device_ms=9 calls=1; op aten::roll count=1 device_ms=9
    #^ tensor %9 shape=[8192,512] next=%0; node aten.roll.default args=[%9,[-1],[0]] shape=[8192,512]
    self.window[-1] = row  #> cost step_ms=0.1 calls=1
    return self.model(self.window)  #> cost device_ms=20 calls=1
```

## Use instead

A tensor of twice as many rows, `self.rows`: `self.rows[self.at + 8192] = row`, `self.at += 1`, and the model
reads `self.rows[self.at : self.at + 8192]`. At the end those are copied to the beginning.

## Example

An array that a hook adds to:

```python
import numpy as np

class Recorder:
    def __init__(self):
        self.seen = None

    def hook(self, layer, args, out):
        rows = out.detach().cpu().numpy()
        if self.seen is None:
            self.seen = rows
        else:
            self.seen = np.vstack((self.seen, rows))  #> found; cost step_ms=9 idle_ms=9 calls=1
```

## Use instead

`self.seen = []`, `self.seen.append(rows)`, and `np.vstack(self.seen)` where it is read.

## Example

An array that grows in a loop:

```python
import numpy as np

marks = np.zeros((0, 8))
for rows in loader:
    marks = np.concatenate((marks, score(rows)), axis=0)  #> found; cost step_ms=9 idle_ms=9 calls=1
```

## Use instead

```python
import numpy as np

marks = np.zeros((0, 8))
marks_parts = [marks]
for rows in loader:
    marks_parts.append(score(rows))
marks = np.concatenate(marks_parts, axis=0)
```

## Fix safety

Safe: the pieces are concatenated in the same order, once. A piece that the loop changes in place later, or
that is a part of a larger tensor, is copied first.

A static cache of transformers' `generate` hides what is not filled, so prompts may differ in length. On a GPU
decoding is compiled for it: once, and again for another batch size and for each prompt that is longer than
all before (`max_cache_len` can say the longest).

## References

- [torch.cat](https://docs.pytorch.org/docs/stable/generated/torch.cat.html)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import libcst as cst

from warpline.model.change import Replace, Scale, Together
from warpline.model.costs import value
from warpline.model.profile import LineCost, Op
from warpline.rulekit import Context, Draft, Rule, count
from warpline.rulekit.graph import graph_around
from warpline.rulekit.graph.rings import rings
from warpline.rulekit.growing import grows, new_share
from warpline.rulekit.joined import (
    Growth,
    concatenated_once,
    is_read,
    join_in_loop,
    joined_again,
    joins_arrays,
)
from warpline.rulekit.memory import never_reused
from warpline.rulekit.saving import forward_share

#: No kernel is shorter.
SHORTEST_MS = value("least-kernel-ns") / 1e6


class CatInLoop(Rule):
    area = "fusion"

    def find(self, context: Context) -> Iterator[Draft]:
        by_loop: dict[cst.For | cst.While, list[_Grown]] = {}
        moved = _moved(context)
        for cost in context.profile.lines:
            joins = [op for op in cost.ops if op.name == "aten::cat"]
            rounds = sum(op.count for op in joins if op.phase == "forward")
            if not context.matters(cost.step_ms):
                continue
            source = context.source(cost.file)
            if cost.place in moved and source.text and cost.backward_ms == 0:
                yield _ring(context, cost, moved[cost.place])
                continue
            arrays = not joins and joins_arrays(source, cost.line)
            rounds = cost.calls if arrays else rounds
            again = joined_again(source, cost.line)
            # One round of the loop may be a step: then the tensor is longer in each.
            if not (rounds >= 2 or (rounds > 0 and (again or grows(joins)))):
                continue
            growth = join_in_loop(source, cost.line)
            if growth is None or is_read(growth):
                kept = grows(joins) or (again and growth is None)
                if source.text and cost.backward_ms == 0 and kept:
                    yield _kept(context, cost, joins)
                continue
            by_loop.setdefault(growth.loop, []).append(_grown(growth, cost, joins, rounds))
        for grown in by_loop.values():
            yield _of_loop(context, grown)


def _moved(context: Context) -> dict[tuple[str, int], dict[str, float]]:
    """Where a tensor of one length is copied to take a piece in, by which operators, and the new share."""
    graph = graph_around(context.profile.facts.dataflow)
    found: dict[tuple[str, int], dict[str, float]] = {}
    for node, share in rings(graph).items() if graph is not None else ():
        place = graph.place(node) if graph is not None else None
        if place is not None:
            by_name = found.setdefault(place, {})
            by_name[node.name] = max(share, by_name.get(node.name, 0.0))
    return found


def _ring(context: Context, cost: LineCost, new: dict[str, float]) -> Draft:
    """The draft for a queue or a window, which each step copies to add a piece and drop another. The line may
    do more than that."""
    moves = [op for op in cost.ops if op.phase == "forward" and op.name.removeprefix("aten::") in new]
    share = forward_share(cost, moves.__contains__)
    spent, rounds = share * cost.step_ms, sum(op.count for op in moves) or cost.calls
    left = _left(context, cost, share, rounds, max(new.values()))
    held, told = never_reused(context)
    often = "{rounds} times a step" if round(rounds) > 1 else "for that"
    return context.draft(
        cost.place,
        "A tensor that each step puts a piece into and takes another out of is copied completely here "
        f"{often}, which takes {{spent}} ({{share}})." + held,
        {
            "rounds": count("copies", round(rounds), "per step"),
            **context.spent("copied tensor", spent),
            **told,
        },
        cost_ms=spent,
        change=Scale((cost.place,), device=left, host=1.0 if context.on_gpu else left),
        fixes=[
            "keep one tensor and a position, write each piece over the oldest one without a graph "
            "(`queue[at : at + n] = piece`), and count the position round; where the order is read, keep one "
            "of twice the length, read a slice of it that moves on, and copy that to the beginning at the end"
        ],
    )


def _left(context: Context, cost: LineCost, share: float, rounds: float, new: float) -> float:
    """What remains of a line where only the piece is written, by a kernel on a device, which takes some time
    in any case."""
    joined = share * cost.device_ms
    least = SHORTEST_MS * rounds / joined if context.on_gpu and joined > 0 else 0.0
    return 1 - share * (1 - min(1.0, max(new, least)))


def _grown(growth: Growth, cost: LineCost, joins: list[Op], rounds: float) -> _Grown:
    # Of n rounds that copy n/2 pieces on average, one that copies n remains.
    left = 2 / rounds if rounds > 2 else _new(joins) if rounds < 2 else 1.0
    share = _share(cost, joins)
    place, left = (cost.place,), 1 - share * (1 - left)
    change: Replace | Scale = Scale(place, left, left)
    if rounds >= 2 and joins:  # what is tried is a loop within one step
        change = Replace("cat", place, change, shares=(share,))
    return _Grown(growth, cost, rounds, share * cost.step_ms, cost.step_ms * (1 - left), change)


def _of_loop(context: Context, grown: list[_Grown]) -> Draft:
    """One finding, with one edit, for all tensors that grow in the same loop."""
    grown = sorted(grown, key=lambda one: one.cost.line)
    most = max(grown, key=lambda one: one.spent_ms)
    spent, (held, told) = sum(one.spent_ms for one in grown), never_reused(context)
    said = f"`{most.growth.name}` grows by concatenation in a loop: it is copied completely {{rounds}} "
    if len(grown) > 1:
        said = (
            f"`{most.growth.name}` and other tensors ({{tensors}} in all) grow by concatenation in a loop: "
            "each is copied completely {rounds} "
        )
        told = {"tensors": count("growing tensors", len(grown), "tensors"), **told}
    changes = tuple(one.change for one in grown)
    return context.draft(
        most.cost.place,
        said + "times a step, which takes {spent} ({share})." + held,
        {
            "rounds": count("concatenations", round(most.rounds), "per step"),
            **context.spent("growing tensor", spent),
            **told,
        },
        cost_ms=spent,
        saving_ms=sum(one.saving_ms for one in grown),
        change=changes[0] if len(changes) == 1 else Together(changes),
        fixes=[partial(concatenated_once, [one.growth for one in grown])],
    )


def _joins(op: Op) -> bool:
    return op.name == "aten::cat"


def _new(joins: list[Op]) -> float:
    """The share of what joins copy that is the piece. NumPy's sizes are not known: a list copies nothing."""
    return new_share(joins) if joins else 0.0


def _share(cost: LineCost, joins: list[Op]) -> float:
    """The part of the line's time that joins take: it may call what makes the piece. NumPy's are no
    operators, and work while none runs."""
    return forward_share(cost, _joins) if joins else cost.idle_ms / cost.step_ms


def _kept(context: Context, cost: LineCost, joins: list[Op]) -> Draft:
    """A tensor that is longer in each call, as a cache of keys and values is.

    The line may call a whole model: only the part of its time that the joins take counts. Of that the piece
    remains, which is written into its place: on a device by a kernel, which takes some time in any case.
    """
    share, rounds = _share(cost, joins), sum(op.count for op in joins) or cost.calls
    spent, left = share * cost.step_ms, _left(context, cost, share, rounds, _new(joins))
    held, told = never_reused(context)
    said = (
        "A tensor grows here with each call: it is copied completely {rounds} times a step, "
        "which takes {spent} ({share}), and more as it grows."
        if grows(joins)
        else "What is kept from call to call is joined to another piece here: it is copied completely "
        "{rounds} times a step, which takes {spent} ({share})."
    )
    return context.draft(
        cost.place,
        said + held,
        {
            "rounds": count("concatenations", round(rounds), "per step"),
            **context.spent("growing tensor", spent),
            **told,
        },
        cost_ms=spent,
        change=Scale((cost.place,), device=left, host=1.0 if context.on_gpu and joins else left),
        fixes=[
            "where each call needs the earlier pieces, allocate all of it once at its final length, write "
            "each piece into a slice, and pass on the filled part (a queue's newest pieces take the place of "
            "its oldest); else collect the pieces in a list, and join them once where they are read"
        ],
    )


@dataclass(frozen=True)
class _Grown:
    """``growth``, and what it takes of the line ``cost``."""

    growth: Growth
    cost: LineCost
    rounds: float
    spent_ms: float
    saving_ms: float
    change: Replace | Scale
