"""Convolutions run with the algorithm that a heuristic picked, and none was tried.

## What it does

Finds steps with costly convolutions of unchanging shapes while `torch.backends.cudnn.benchmark` is
off, and switches it on.

## Why is this slow

cuDNN has several algorithms for each convolution, and which is fastest depends on all of its sizes.
With `benchmark` on, the first call of each shape times them and later calls use the winner.

## Example

```python
#> flags cudnn_benchmark=false deterministic=false
import torch

for images, labels in loader:
    logits = model(images)
    #^ found
    #^ cost device_ms=30
    #^ op aten::cudnn_convolution count=53 device_ms=25 shapes=[[32,3,224,224],[64,3,7,7]]
    loss = criterion(logits, labels)
```

## Use instead

```python
import torch

torch.backends.cudnn.benchmark = True

for images, labels in loader:
    logits = model(images)
    loss = criterion(logits, labels)
```

## Near misses

Switched on already:

```python
#> flags cudnn_benchmark=true deterministic=false
logits = model(images)  #> cost device_ms=30; op aten::cudnn_convolution count=53 device_ms=25
```

Shapes that change from step to step, each of which would be tuned anew:

```python
#> flags cudnn_benchmark=false deterministic=false
logits = model(images)
#^ cost device_ms=30
#^ op aten::cudnn_convolution count=0.2 device_ms=6
#^ op aten::cudnn_convolution count=0.4 device_ms=9
```

Determinism was asked for:

```python
#> flags cudnn_benchmark=false deterministic=true
logits = model(images)  #> cost device_ms=30; op aten::cudnn_convolution count=53 device_ms=25
```

Hardly any convolution:

```python
#> flags cudnn_benchmark=false deterministic=false
logits = model(images)  #> cost device_ms=30; op aten::cudnn_convolution count=1 device_ms=0.1
```

## Fix safety

Unsafe: another algorithm rounds differently (about 1e-6 of the value in float32), and which one wins
may differ from run to run. Every new shape costs some trials.

## References

- [torch.backends.cudnn](https://docs.pytorch.org/docs/stable/backends.html#module-torch.backends.cudnn)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model import costs
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, ms, percent
from warpline.rulekit.convolutions import convolution_ms, convolutions
from warpline.rulekit.saving import less_device_time
from warpline.rulekit.training import after_imports


class UntunedConvolution(Rule):
    area = "fusion"
    severity = "information"
    needs_gpu = True

    def find(self, context: Context) -> Iterator[Draft]:
        flags = context.profile.facts.flags
        if flags.cudnn_benchmark is not False or flags.deterministic:
            return
        spent = {cost: convolution_ms(cost) for cost in context.profile.lines if convolutions(cost)}
        total = sum(spent.values())
        if not spent or not context.matters(total):
            return
        # A shape that does not come every step would be tuned again and again.
        if any(op.count < 0.99 for cost in spent for op in convolutions(cost) if op.phase == "forward"):
            return
        hottest = max(spent, key=lambda cost: spent[cost])
        yield context.draft(
            (hottest.file, hottest.line),
            (hottest.file, hottest.line),
            "Convolutions of unchanging shapes take {spent} a step, {share}, and cuDNN was not allowed to "
            "try which algorithm is fastest.",
            {
                "spent": ms("convolutions", total),
                "share": percent("convolutions", context.share(total)),
            },
            cost_ms=total,
            # What the heuristic misses is often nothing at all.
            saving_ms=costs.value("conv-search") * total,
            change=less_device_time(spent, costs.value("conv-search") * total, at_most=True),
            fixes=[partial(_fix, context)],
        )


def _fix(context: Context) -> Fix:
    source = context.source(context.profile.manifest.script)
    if source is None:
        raise Refused("the script's own text is not at hand")
    if any(source.is_named(node, "cudnn.benchmark") for node in source.nodes(cst.Attribute)):
        raise Refused("the script sets it itself")
    edits = Edits(source)
    name = edits.add_import("torch.backends.cudnn.benchmark", "import torch")
    after_imports(source, edits, f"{name} = True")
    return edits.fix("Let cuDNN try its algorithms", "unsafe")
