"""Memory grows with every step.

## What it does

Finds memory that grows from step to step, names the line that keeps it (if several lines may keep it, the one
that allocates most of it), and computes how many steps are left. On a CPU it finds what is kept though
nothing reads more of it than the newest entries, parts of tensors, which keep all of them, and caches without
a largest size. Also, on any device, finds a list or a tensor that gets longer in each step and is never
emptied, if each step computes something of all of it. In training, the list may be emptied now and then, as
that of an epoch's scores is, if what is computed of it has no gradient. Where Python or NumPy goes through
the list, the finding is at that line, also in a function that each step gives the list.

## Why is this slow

The run fails when memory is full. Before that, the allocator slows down, because it has to search and
to call the driver. If each step also reads all that was kept, as in `torch.stack(history).mean(0)`, it takes
longer than the one before.

## Example

```python
#> memory growth_bytes_per_step=52428800 peak_bytes=10000000000
cache = {}
for step, images in enumerate(loader):
    features = model(images)  #> found; cost device_ms=20 kept_bytes=52428800
    cache[step] = features
```

## Use instead

Store tensors on the host (`features.cpu()`), or without their graph (`features.detach()`), or only the
last few.

## Example

A loss of `F.mse_loss`, `F.smooth_l1_loss`, `F.binary_cross_entropy` or `F.soft_margin_loss` is one number in
a storage of the size of its input, which `detach` shares:

```python
#> memory growth_bytes_per_step=8388608 peak_bytes=10000000000
for step, images in enumerate(loader):
    loss = F.mse_loss(decoder(encoder(images)), images)
    #^ cost calls=1 device_ms=20 kept_bytes=8388608
    #^ op aten::mse_loss shapes=[[128,16384],[128,16384]] dtypes=float,float
    #^ op aten::mse_loss_backward phase=backward shapes=[[],[128,16384]] dtypes=float,float
    loss.backward()  #> cost calls=1
    curve.append(loss.detach())  #> found; cost calls=1
```

## Use instead

```python
for step, images in enumerate(loader):
    loss = F.mse_loss(decoder(encoder(images)), images)
    loss.backward()
    curve.append(loss.detach().clone())
```

## Example

The same holds for a part of a tensor, which is a view of all of it:

```python
#> device kind=cpu; memory growth_bytes_per_step=20971520 free_bytes=20000000000
for images in loader:
    states = encoder(images)
    #^ cost device_ms=20 kept_bytes=20971520 calls=1; node aten.mm.default args=[%9,%8] shape=[64,160,512]
    last.append(states[:, -1])  #> found; cost calls=1; node aten.select.int args=[%0,1,-1] shape=[64,512]
save(torch.cat(last))
```

## Use instead

```python
for images in loader:
    states = encoder(images)
    last.append(states[:, -1].clone())
save(torch.cat(last))
```

## Example

```python
#> memory growth_bytes_per_step=52428800 peak_bytes=10000000000
class Encoder(nn.Module):
    def forward(self, images):
        return self.layers(images).relu()  #> cost calls=1 device_ms=20 kept_bytes=52428800


for step, images in enumerate(loader):  #> cost calls=1
    features = encoder(images)  #> cost calls=1
    shown.append(step)  #> cost calls=1
    cache[step] = features  #> found; cost calls=1
```

## Use instead

Store `features.cpu()`, or clear `cache` from time to time.

## Example

Work that grows with what is kept:

```python
#> device kind=cpu; steps step_ms=20
codes = []
for images in loader:
    code = encode(images)  #> cost step_ms=16 device_ms=16 calls=1
    codes.append(code)  #> found; cost step_ms=0.1 calls=1
    middle = torch.stack(codes).mean(0)
    #^ cost step_ms=4 device_ms=4 calls=1
    #^ op aten::mean count=0.2 shapes=[[211,64]] device_ms=0.2
    #^ op aten::mean count=0.2 shapes=[[212,64]] device_ms=0.2
    #^ op aten::mean count=0.2 shapes=[[213,64]] device_ms=0.2
    #^ op aten::mean count=0.2 shapes=[[214,64]] device_ms=0.2
    #^ op aten::mean count=0.2 shapes=[[215,64]] device_ms=0.2
```

## Use instead

Keep what is computed of it: `total += code`, `count += 1`.

## Example

The same in an object, whose list is joined first:

```python
#> device kind=cpu; steps step_ms=20
class Drift:
    def __init__(self):
        self.scores = []

    def add(self, scores):
        self.scores.append(scores)  #> found; cost step_ms=0.1 calls=1
        everything = torch.cat(self.scores)
        #^ cost step_ms=3 device_ms=3 calls=1; op aten::cat shapes=[[],[]]
        return everything.mean(0)
        #^ cost step_ms=0.5 device_ms=0.5 calls=1
        #^ op aten::mean count=0.2 shapes=[[640,8]] device_ms=0.1
        #^ op aten::mean count=0.2 shapes=[[672,8]] device_ms=0.1
        #^ op aten::mean count=0.2 shapes=[[704,8]] device_ms=0.1
        #^ op aten::mean count=0.2 shapes=[[736,8]] device_ms=0.1
        #^ op aten::mean count=0.2 shapes=[[768,8]] device_ms=0.1

drift = Drift()
for images in loader:
    scores = model(images)  #> cost step_ms=16 device_ms=16 calls=1
    shown = drift.add(scores)  #> cost step_ms=0.1 calls=1
```

## Use instead

`self.total += scores.sum(0)`, `self.rows += len(scores)`, and the mean of these.

## Example

Each training step computes something of all scores of the epoch so far:

```python
#> steps step_ms=40
class Curve:
    def __init__(self):
        self.chances = []

    def add(self, chances):
        self.chances.append(chances.detach().flatten())  #> found; cost step_ms=0.1 calls=1

    def middle(self):
        everything = torch.cat(self.chances)
        #^ cost step_ms=0.5 device_ms=0.5 calls=1; op aten::cat shapes=[[],[]]
        order = everything.argsort()
        #^ cost step_ms=4 device_ms=4 calls=1
        #^ op aten::sort count=0.2 shapes=[[40960]] device_ms=0.8
        #^ op aten::sort count=0.2 shapes=[[45056]] device_ms=0.8
        #^ op aten::sort count=0.2 shapes=[[49152]] device_ms=0.8
        #^ op aten::sort count=0.2 shapes=[[53248]] device_ms=0.8
        #^ op aten::sort count=0.2 shapes=[[57344]] device_ms=0.8
        return everything[order[len(order) // 2]]  #> cost calls=1

for epoch in range(9):
    curve = Curve()
    for images, marks in loader:
        chances = net(images)  #> cost step_ms=34 device_ms=34 backward_ms=22 calls=1
        curve.add(chances)  #> cost calls=1
        shown = curve.middle()  #> cost calls=1
```

## Use instead

`curve.middle()` where the epoch ends, or a histogram: it stays as small as it is.

## Example

On a CPU, what nothing reads but for its newest entry:

```python
#> device kind=cpu; memory growth_bytes_per_step=20971520 free_bytes=20000000000
import collections

class Recorder:
    def __init__(self, layer):
        self.outputs = []
        layer.register_forward_hook(self.save)

    def save(self, layer, inputs, output):
        self.outputs.append(output.detach())  #> found; cost calls=1

    def newest(self):
        return self.outputs[-1]

for images in loader:
    scores = model(images)  #> cost device_ms=20 kept_bytes=20971520 calls=1
    match(scores, recorder.newest())  #> cost calls=1
```

## Use instead

```python
import collections

class Recorder:
    def __init__(self, layer):
        self.outputs = collections.deque(maxlen=1)
        layer.register_forward_hook(self.save)

    def save(self, layer, inputs, output):
        self.outputs.append(output.detach())

    def newest(self):
        return self.outputs[-1]

for images in loader:
    scores = model(images)
    match(scores, recorder.newest())
```

## Example

Each backward pass takes the newest entries in turn; the list is emptied only where a ranking begins:

```python
#> device kind=cpu; memory growth_bytes_per_step=3342336 free_bytes=20000000000
class Ranking:
    def begin(self):
        self.outputs = []

    def forward(self, images):
        self.done = 0
        for layer in self.layers:  #> cost calls=14
            images = layer(images)  #> cost calls=13 device_ms=60 kept_bytes=3342336
            images.register_hook(self.rank)  #> cost calls=13
            self.outputs.append(images.detach())  #> found; cost calls=13
        return images

    def rank(self, gradient):
        output = self.outputs[-1 - self.done]  #> cost calls=13
        self.ranks[self.done] += (output * gradient).mean((0, 2, 3))  #> cost calls=13 device_ms=2
        self.done += 1  #> cost calls=13

ranking.begin()
for images in loader:
    ranking.forward(images).sum().backward()  #> cost calls=1
```

## Use instead

Empty the list at the beginning of `forward`.

## Example

The program reads the last few only:

```python
#> memory growth_bytes_per_step=52428800 peak_bytes=10000000000
import collections

recent = collections.deque()
for images in loader:
    features = model(images)  #> cost device_ms=20 kept_bytes=52428800 calls=1
    recent.append(features)  #> found; cost calls=1
print(torch.stack(list(recent)[-20:]).mean())
```

## Use instead

```python
import collections

recent = collections.deque(maxlen=20)
for images in loader:
    features = model(images)
    recent.append(features)
print(torch.stack(list(recent)[-20:]).mean())
```

## Example

What Python computes of all that a list holds:

```python
#> device kind=cpu; steps step_ms=10
import numpy as np

hits = []
for images, labels in loader:
    scores = model(images)  #> cost step_ms=9 device_ms=9 calls=1; op aten::mm device_ms=9
    hits.append(scores.argmax(1).numpy() == labels.numpy())  #> cost step_ms=0.1 calls=1
    accuracy = float(np.mean(np.concatenate(hits)))  #> found; cost step_ms=0.8 calls=1
    bar.set_description(f"{accuracy:.3f}")  #> cost step_ms=0.1 calls=1
save(hits)
```

## Use instead

Add up the hits and their number, and compute the accuracy of these.

## Fix safety

Safe: a clone has the same value, and a `deque` with a largest length keeps all that the program reads
(`list(kept)[-n:]`; unsafe where `n` is a name, as `[-0:]` is everything). Otherwise display: only the author
knows why the tensors are stored.

## References

- [Understanding CUDA memory usage](https://docs.pytorch.org/docs/stable/torch_cuda_memory.html)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import libcst as cst

from warpline.model.dtypes import ELEMENT_BYTES
from warpline.model.profile import LineCost
from warpline.model.report import Evidence, Fix
from warpline.rulekit import Context, Draft, Edits, Rule, Source, count, size
from warpline.rulekit.keeping import detached, endless_caches, keepers, kept_for_nothing, parts_kept
from warpline.rulekit.memory import free_bytes, growth_bytes
from warpline.rulekit.newest import newest_read
from warpline.rulekit.read_again import work_on_all
from warpline.syntax.source import is_method
from warpline.wire.sites import longest_epoch

#: Passes over the data whose results fit into the free memory, where a list of one pass's is no problem.
#: Chosen, not fitted: others may run before the list is freed.
ROOMY = 4
_FULL = " At this rate, memory is full after {left} more steps."

#: Operators that reduce to one number in the tensor that they computed: the storage stays as large.
_WHOLE = ("aten::mse_loss", "aten::smooth_l1_loss", "aten::binary_cross_entropy", "aten::soft_margin_loss")


class MemoryGrowth(Rule):
    area = "memory"
    covers = ("constant-rebuilt",)

    def find(self, context: Context) -> Iterator[Draft]:
        yield from work_on_all(context)
        growth = growth_bytes(context, mistaken=True)
        kept = [cost for cost in context.profile.lines if cost.kept_bytes > 0]
        if growth is None or not kept:
            return
        # What nothing reads is a mistake however little it is; what something reads may be wanted.
        little = growth_bytes(context) is None
        line = max(kept, key=lambda cost: cost.kept_bytes)
        cause = line.place
        if little and not context.on_gpu:
            yield from _for_nothing(context, line, growth)
            return
        name, shared = _whole(line), detached(context, line)
        number = bool(name) and len(shared) == 1
        parts = [] if number else parts_kept(context, line)
        caches = endless_caches(context, line)
        if len(caches) == 1 and not little:
            yield _cached(context, *caches[0], growth)
            return
        if not context.on_gpu and len(parts) != 1:
            yield from _for_nothing(context, line, growth)
            return
        copied = shared[0] if number else parts[0][:2] if len(parts) == 1 else None
        place = copied[0].place(copied[1]) if copied is not None else _keeper(context) or cause
        newest = newest_read(context) if copied is None else None
        times: dict[str, Evidence] = {}
        text = "Memory grows by {growth} a step; "
        if number:
            text += (
                f"{{kept}} of it is the storage of one number: `{name}` leaves its result in one as large as "
                "its input, and `detach` shares it."
            )
        elif copied is not None:
            times["times"] = count("numbers in all for one kept", parts[0][2])
            text += "{kept} of it is a tensor {times} times as large as the view of it that is kept here."
        elif place == cause:
            text += "{kept} of it is allocated here and not freed."
        else:
            text += "this keeps what another line allocates, {kept} of it."
        fixes: list[Callable[[], Fix] | str] = [partial(_clone, *copied)] if copied is not None else []
        if newest is not None and newest.place == place:
            text += f" Nothing reads more of `{newest.keeper}` than its newest entries."
            fixes = [newest.shortened]
        if copied is None and _one_pass(context, place, growth):
            return
        if little and (newest is None or newest.place != place):
            return
        yield _growing(context, place, line, growth, text, fixes, times)


def _growing(
    context: Context,
    place: tuple[str, int],
    line: LineCost,
    growth: float,
    text: str,
    fixes: Sequence[Callable[[], Fix] | str],
    more: Mapping[str, Evidence] | None = None,
) -> Draft:
    """``place`` keeps what ``line`` allocates."""
    here = ", allocated here" if place == line.place else ""
    evidence = {
        "growth": size("memory growth per step", growth),
        "kept": size(f"kept per step{here}", line.kept_bytes),
        **(more or {}),
    }
    if (free := free_bytes(context)) > 0:
        evidence["left"] = count("steps until memory is full", round(free / growth), "steps")
        text += _FULL
    return context.draft(
        place, text, evidence, cause=line.place, cost_ms=None, severity="warning", fixes=fixes
    )


def _one_pass(context: Context, place: tuple[str, int], growth: float) -> bool:
    """Whether the line at ``place`` collects what one pass over a loader gives, in a list that the same
    function makes before, and memory has room for ``ROOMY`` such passes."""
    source = context.source(place[0])
    statement = source.statement_at(place[1])
    loops = source.loops_from(statement) if statement is not None else []
    batches = longest_epoch(context.profile.facts.sites) or 0
    if statement is None or len(loops) != 1 or not 0 < ROOMY * batches * growth < free_bytes(context):
        return False
    function = source.enclosing(statement, cst.FunctionDef)
    added = {
        call.func.value.value
        for call in source.nodes(cst.Call, within=statement)
        if isinstance(call.func, cst.Attribute) and isinstance(call.func.value, cst.Name)
    }
    made = {
        one.value
        for one in source.nodes(cst.Name, within=function)
        if source.binds(one) and not source.inside(one, loops[0])
    }
    return function is not None and bool(added & made)


def _whole(line: LineCost) -> str:
    """The loss that made what the line keeps, where that is one number in the storage of all."""
    for op in line.ops:
        behind = [one for one in line.ops if one.name == f"{op.name}_backward"]
        if op.name not in _WHOLE or op.phase != "forward" or not op.shapes or not op.dtypes:
            continue
        whole = op.count * math.prod(op.shapes[0]) * ELEMENT_BYTES.get(op.dtypes[0], 0)
        if whole <= line.kept_bytes and any(one.shapes[:1] == ((),) for one in behind):
            return op.name.removeprefix("aten::")
    return ""


def _clone(source: Source, value: cst.BaseExpression) -> Fix:
    copy = "copy" if is_method(value, "numpy") else "clone"
    edits = Edits(source).replace(value, f"{source.code(value)}.{copy}()")
    return edits.fix("Keep the numbers without the storage", "safe")


def _for_nothing(context: Context, line: LineCost, growth: float) -> Iterator[Draft]:
    """On a CPU, the only line that keeps what nothing reads. What is read later, as the scores of an
    evaluation, is wanted, and has no better place."""
    found = {source.place(value): keeper for source, value, keeper in kept_for_nothing(context)}
    newest = newest_read(context)
    if not found and newest is not None:
        found = {newest.place: newest.keeper}
    if len(found) != 1:
        return
    ((place, keeper),) = found.items()
    fixes = [newest.shortened] if newest is not None and newest.place == place else []
    text = (
        f"Memory grows by {{growth}} a step; `{keeper}` keeps {{kept}} of it, and nothing reads more of it "
        "than its newest entries."
    )
    yield _growing(context, place, line, growth, text, [*fixes, "keep only the newest entries"])


def _cached(context: Context, source: Source, decorator: cst.Decorator, growth: float) -> Draft:
    return context.draft(
        source.place(decorator),
        "Memory grows by {growth} a step: each step runs this function for something new, and the cache "
        "keeps all results.",
        {"growth": size("memory growth per step", growth)},
        cost_ms=None,
        severity="warning",
        fixes=["leave the cache out, or give it a `maxsize`"],
    )


def _keeper(context: Context) -> tuple[str, int] | None:
    """The only line that puts what a step makes where it outlives the step; None where there are several."""
    found = {source.place(node) for source, node, _ in keepers(context, graph=False)}
    return found.pop() if len(found) == 1 else None
