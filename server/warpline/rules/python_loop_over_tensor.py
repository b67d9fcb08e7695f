"""A Python loop works on one slice of a tensor at a time.

## What it does

Finds costly loops and comprehensions that iterate over a tensor, or index it, and launch many small
operations; also loops that do the same to the same tensors with another number in each iteration
(`labels == k` for each `k`), without layers and without needing the previous result; and loops that call a
recurrent cell (`nn.LSTMCell`, `nn.GRUCell`, `nn.RNNCell`) for each time of a sequence, also in functions of
yours, where the recorded step shows that its input needs nothing that it gave. What functions of yours, and
modules without a state of their own, do in a round is part of the loop. If each iteration does the same to
its own slice, and the results are stacked, added up, or fill a tensor (`out[:, i] = f(x[i])`), the fix calls
the work of an iteration by `torch.vmap`, which does it for all slices at once. A batch of windows (`data[i:i
+ n]` for random `i`) becomes one look-up in a view of all windows, for tensors and NumPy's arrays. An
iteration that only reads its number (`int(i)`, `i.item()`) gets it from `tolist()`. Means and sums of the
rows of each group (`x[owner == i].mean(0)`) become one `index_add_`. The largest or smallest number of what a
mask chooses in each row (`x[i][mask[i]].max()`) becomes that of the row with the others filled. A cell that
only such a loop uses becomes the layer with the same weights. Otherwise the finding says why not.

## Why is this slow

Each operation takes the host tens of microseconds in every iteration, whatever the size of the slice,
and a slice is too small to fill the device. On the whole tensor it is one operation.

## Example

```python
import torch

def scale(x, low, high):
    rows = []
    for row in x:
        #^ found; tensor %9 shape=[64,100]; node aten.unbind.int args=[%9,0] of=x
        #^ cost step_ms=1 calls=1; op aten::unbind count=1 shapes=[[64,100]] cpu_ms=0.5
        rows.append((row - low) / (high - low))
        #^ cost step_ms=12 idle_ms=10 cpu_ms=12 launches=192; op aten::sub count=64 cpu_ms=1
    y = torch.stack(rows)
    return y
```

## Use instead

```python
import torch

def scale(x, low, high):
    rows = torch.vmap(lambda row: (row - low) / (high - low))(x)
    y = rows
    return y
```

## Example

Windows of a text or of a series:

```python
import numpy as np
import torch

data = np.memmap("train.bin", dtype=np.uint16, mode="r")

def batch(size):
    ix = torch.randint(len(data) - size, (64,))
    x = torch.stack([torch.from_numpy(data[i:i+size].astype(np.int64)) for i in ix])
    #^ found; tensor %9 shape=[64]; node aten.unbind.int args=[%9,0] of=ix
    #^ node aten.lift_fresh.default shape=[256] of='torch.from_numpy(data[i:i+size].astype(np.int64))'
    #^ cost step_ms=2; op aten::unbind count=1 shapes=[[64]] cpu_ms=0.1; op aten::add count=64 cpu_ms=1
    return x
```

## Use instead

```python
import numpy as np
import torch

data = np.memmap("train.bin", dtype=np.uint16, mode="r")

def batch(size):
    ix = torch.randint(len(data) - size, (64,))
    x = torch.from_numpy(np.lib.stride_tricks.sliding_window_view(data, size)[ix.numpy()].astype(np.int64))
    return x
```

## Example

Iterations that depend on one another are not edited:

```python
def scan(x, state):
    for t in range(x.shape[0]):  #> found
        state = 0.9 * state + x[t]
        #^ cost step_ms=12 idle_ms=10 cpu_ms=12 launches=192; op aten::select count=64 cpu_ms=1
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
        #^ found; op aten::unbind count=1 shapes=[[64,100]] cpu_ms=0.1; cost step_ms=0.2 cpu_ms=0.2
        near = F.l1_loss(boxes[i], wanted[i])
        right = F.cross_entropy(kinds[i], target)
        #^ cost step_ms=12 idle_ms=10 cpu_ms=12 launches=192; op aten::nll_loss count=64 cpu_ms=5
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
    for start, end in spans:  #> found
        parts.append(rows[:, start:end].amax(1))
        #^ cost step_ms=9 cpu_ms=9 device_ms=1 calls=40 launches=40; op aten::amax count=7 cpu_ms=8
        #^ op aten::slice count=5 shapes=[[64,30]]; op aten::slice count=5 shapes=[[64,31]]
        #^ op aten::slice count=6 shapes=[[64,32]]
    return torch.cat(parts)

for rows, spans in loader:
    train(pooled(rows, spans))  #> cost device_ms=10
```

## Use instead

One call for all pieces: pad them to one length with a mask, or reduce by a row's number with
`scatter_reduce_`.

## Example

Pieces that `map` hands to a function:

```python
import torch

for rows in loader:
    rows = model(rows)  #> cost device_ms=10
    peaks = torch.stack(list(map(lambda row: row.softmax(0).amax(), rows)))
    #^ found; cost step_ms=9 cpu_ms=9 launches=128; op aten::unbind count=1 shapes=[[64,100]] cpu_ms=0.1
    #^ op aten::_softmax count=64 cpu_ms=5; op aten::amax count=64 cpu_ms=3
```

## Use instead

One call for all rows: `rows.softmax(1).amax(1)`, or `torch.vmap` of the function.

## Example

A cell for each time of a sequence:

```python
for t in range(x.shape[1]):  #> found
    h, c = cell(x[:, t], (h, c))
    #^ cost step_ms=12 cpu_ms=12 calls=64
    #^ op aten::select count=64 cpu_ms=1
    #^ op aten::lstm_cell count=64 cpu_ms=9 shapes=[[16,6],[],[128,6],[128,32],[128],[128]]
    states.append(h)  #> cost step_ms=0.1 calls=64
```

## Use instead

`states, _ = nn.LSTM(6, 32, batch_first=True)(x)`.

## Example

The same in a module that makes the cell for this alone:

```python
import torch
from torch import nn

class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(6, 32)

    def forward(self, x):
        h = x.new_zeros(len(x), 32)
        states = []
        for t in range(x.shape[1]):  #> found
            h = self.cell(x[:, t], h)
            #^ cost step_ms=12 cpu_ms=12 calls=64
            #^ op aten::select count=64 cpu_ms=1
            #^ op aten::gru_cell count=64 cpu_ms=9 shapes=[[16,6],[16,32],[96,6],[96,32],[96],[96]]
            states.append(h)  #> cost step_ms=0.1 calls=64
        return torch.stack(states, 1)
```

## Use instead

```python
import torch
from torch import nn

class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRU(6, 32, batch_first=True)

    def forward(self, x):
        h = x.new_zeros(len(x), 32)
        states, h = self.cell(x, h[None])
        return states
```

## Example

Rows of a group, reduced for each group:

```python
import torch

def readout(x, of, n):
    return torch.stack([x[of == i].mean(0) for i in range(n)])
    #^ found; tensor %9 shape=[640,32]; tensor %8 shape=[640] dtype=int64
    #^ cost step_ms=9 cpu_ms=9 launches=64; op aten::index count=16 cpu_ms=5; op aten::mean count=16 cpu_ms=3
    #^ node aten.eq.Scalar args=[%8,0] shape=[640] dtype=bool
    #^ node aten.index.Tensor args=[%9,[%0]] shape=[640,32]; node aten.mean.dim args=[%1,[0]] shape=[32]
```

## Use instead

```python
import torch

def readout(x, of, n):
    return (x.new_zeros(n, *x.shape[1:]).index_add_(0, of, x) / torch.bincount(of, minlength=n)[:, None])
```

## Example

The largest and the smallest of the numbers that a mask chooses in each row:

```python
import torch

def hardest(far, same):
    near, away = [], []
    for i in range(len(far)):  #> found
        near.append(far[i][same[i]].max())
        #^ tensor %90 shape=[8,32]; tensor %91 shape=[8,32] dtype=bool
        #^ cost step_ms=5 cpu_ms=5 calls=8; op aten::select count=16 cpu_ms=1; op aten::max count=8 cpu_ms=1
        away.append(far[i][same[i] == 0].min())
        #^ cost step_ms=5 cpu_ms=5 calls=8; op aten::select count=16 cpu_ms=1; op aten::min count=8 cpu_ms=1
    near = torch.stack(near)
    away = torch.stack(away)
    return near, away
```

## Use instead

`near = far.masked_fill(~same, float("-inf")).amax(1)`, and `amin` of the others filled with infinity.
The edit writes them where the recorded step shows that the masks choose in all rows.

## Example

Numbers that are read one by one:

```python
import torch

def neighbours(graph, seeds):
    nodes = torch.unique(seeds)
    return [graph[int(node)] for node in nodes]
    #^ found; cost step_ms=9 calls=1 idle_ms=9 cpu_ms=9; tensor %9 shape=[64] dtype=int64
    #^ op aten::unbind count=1 shapes=[[64]] cpu_ms=0.5; op aten::item count=64 shapes=[[]] cpu_ms=5
    #^ node aten.unbind.int args=[%9,0]
```

## Use instead

```python
import torch

def neighbours(graph, seeds):
    nodes = torch.unique(seeds)
    return [graph[int(node)] for node in nodes.tolist()]
```

## Fix safety

Unsafe: what is summed or multiplied is so in another order. The edit is offered where the record shows that
the rounds take all pieces of their tensors and only compute, and where a trial of the recorded operators
on all pieces had the same results. Not where autocast changes types in a round, or it draws random numbers.

A largest or smallest number of a mask's choice is the same, and so is its gradient, which equal numbers share
(`amax`). Where a mask chooses nothing in a row, the loop raised an error, and infinity is the new result.

Numbers and windows are safe: the values and their layout are the same. The edit for windows is offered where
the record or the text shows that a tensor or an array of NumPy's is cut, and not a file that reads what is
asked for.

A recurrent layer in place of a cell begins with the same weights, and may round otherwise. They have other
names in saved states, so no edit is offered where the program loads some, or uses the cell otherwise.

Rows are added to their groups where the recorded step shows that each row is in one of the groups: with a row
of no group, in another step, the new call fails.

## References

- [Vectorising: torch.vmap](https://docs.pytorch.org/docs/stable/generated/torch.vmap.html)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from warpline.model.change import Change, Replace, Scale, Together
from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Refused, Rule, count
from warpline.rulekit.cells_at_once import BY_HAND, Cells, cells, layer_at_once
from warpline.rulekit.cells_called import Called, called_cells
from warpline.rulekit.grouped import added_at_once, groups
from warpline.rulekit.masked_rows import filled_at_once, masked_rows
from warpline.rulekit.numbers_of_rounds import numbers_at_once
from warpline.rulekit.rounds import Rounds, piecework_ms, rounds
from warpline.rulekit.vectorised import at_once, is_recurrence
from warpline.rulekit.windows import windows
from warpline.rulekit.windows_at_once import how_tried, windows_at_once

#: Kernels that take less are all launch and tail (see ``warpline.simulate.changes``).
SHORT_MS = 0.005

_SLICES, _WHOLE = "one slice after the other", "the same tensors again and again"


class PythonLoopOverTensor(Rule):
    area = "fusion"

    def find(self, context: Context) -> Iterator[Draft]:
        for found in rounds(context):
            if is_recurrence(found.source, found.loop):
                continue  # all rounds at once are none of these
            costs = found.costs
            spent = sum(cost.step_ms for cost in costs)
            calls = sum(op.count for cost in costs for op in cost.ops if op.outer)
            pieces = _pieces(context, costs)
            device = sum(cost.device_ms for cost in costs) - sum(pieces.values())
            # Rounds that keep the device busy are not what the loop costs, unless it is with taking pieces.
            if not context.matters(spent) or (context.on_gpu and device > spent / 2):
                continue
            short = _is_short(context, costs, device)
            change, fix, proven = _way(context, found, short, pieces)
            yield context.draft(
                found.source.place(found.loop),
                f"A Python loop works on {_WHOLE if found.whole else _SLICES}: {{rounds}} iterations and "
                "{calls} operations a step, which take {spent} ({share}).",
                {
                    "rounds": count("rounds", round(found.count), "per step"),
                    "calls": count("operations in the loop", round(calls), "per step"),
                    **context.spent("loop over a tensor", spent),
                },
                cause=max(costs, key=lambda cost: cost.step_ms).place,
                cost_ms=spent,
                saving_ms=spent * (1 - 1 / found.each),
                change=change,
                fixes=[fix],
                proven=proven,
            )
        for cell in cells(context):
            yield _one_layer(context, cell)
        for called in called_cells(context):
            yield _called_layer(context, called)


def _pieces(context: Context, costs: list[LineCost]) -> dict[tuple[str, int], float]:
    """The ms of taking pieces, by line."""
    small_ns = 0.0 if context.on_gpu else context.profile.facts.small_op_ns or 0.0
    return {cost.place: piecework_ms(cost, small_ns) for cost in costs}


def _is_short(context: Context, costs: list[LineCost], device_ms: float) -> bool:
    """Whether a kernel is so short that it takes as long for one piece as for many."""
    launches = sum(cost.launches for cost in costs)
    return context.on_gpu and launches > 0 and device_ms / launches < SHORT_MS


def _called_layer(context: Context, found: Called) -> Draft:
    """A loop that calls a function with a cell for each time: the layer, where it was tried, and one round
    for the work around it."""
    cell, free = found.cells, found.free
    spent = cell.cost.step_ms + sum(cost.step_ms for cost in free)
    around = Rounds(cell.source, cell.loop, free, cell.count, begun=found.begun)
    pieces, places = _pieces(context, free), (cell.cost.place,)
    device = sum(cost.device_ms for cost in free) - sum(pieces.values())
    layer = Replace("recurrent", places, Scale(places), (cell.layer, str(round(around.each))))
    return context.draft(
        cell.source.place(cell.loop),
        "A Python loop calls a cell, and what is around it, for each of {rounds} times, which takes {spent} "
        f"({{share}}). `nn.{cell.layer}` works on the whole sequence, and so can what needs no later state.",
        {
            "rounds": count("rounds", round(cell.count), "per step"),
            **context.spent("loop over a tensor", spent),
        },
        cause=cell.cost.place,
        cost_ms=spent,
        change=Together((layer, _one_round(around, _is_short(context, free, device), pieces))),
        fixes=[BY_HAND.format(cell.layer)],
    )


def _one_layer(context: Context, found: Cells) -> Draft:
    """A loop that calls a cell for each time. What the layer gains can only be tried."""
    spent, places = found.cost.step_ms, (found.cost.place,)
    return context.draft(
        found.source.place(found.loop),
        f"A Python loop calls a cell for each of {{rounds}} times, which takes {{spent}} ({{share}}). "
        f"`nn.{found.layer}` has the same weights and works on the whole sequence.",
        {
            "rounds": count("rounds", round(found.count), "per step"),
            **context.spent("loop over a tensor", spent),
        },
        cause=found.cost.place,
        cost_ms=spent,
        change=Replace("recurrent", places, Scale(places), (found.layer, str(round(found.count)))),
        tried=True,
        fixes=[partial(layer_at_once, context, found)],
    )


def _way(
    context: Context, found: Rounds, short: bool, pieces: Mapping[tuple[str, int], float]
) -> tuple[Change, Callable[[], Fix], bool]:
    """What does the loop's work at once: the change, its fix, and whether only a trial proves the fix.
    ``pieces``: ms by line that a device, or a CPU's operators, spend on taking pieces."""
    try:
        numbers = numbers_at_once(context, found)
    except Refused:
        pass
    else:
        return _one_round(found, short, pieces), lambda: numbers, False
    each = groups(found.source, found.loop)
    if each is not None:
        return _one_round(found, short, pieces), partial(added_at_once, context, found, each), False
    places, cut = tuple(cost.place for cost in found.costs), windows(found.source, found.loop)
    how = how_tried(context, found, cut) if cut else None
    by, options = ("windows", how) if how is not None else ("loop", (str(round(found.each)),))
    change = Replace(by, places, _one_round(found, short, pieces), options)
    if cut:
        return change, partial(windows_at_once, context, found, cut), False
    filled = masked_rows(found.source, found.loop)
    if filled:
        return change, partial(filled_at_once, context, found, filled), True
    return change, partial(at_once, context, found), True


def _one_round(found: Rounds, short: bool, pieces: Mapping[tuple[str, int], float]) -> Change:
    """One round for all pieces, where that was not tried: one round's time on the host, and on a device that
    is done with a piece as soon as it begins; else of taking the pieces, and on a CPU of beginning to compute
    with each (``pieces``)."""
    gone = 1 - 1 / found.each
    return Together(
        tuple(
            Scale(
                (cost.place,),
                device=1 - gone * (1.0 if short else pieces[cost.place] / (cost.device_ms or 1.0)),
                host=1 - gone,
            )
            for cost in found.costs
        )
    )
