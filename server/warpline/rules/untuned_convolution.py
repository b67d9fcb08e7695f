"""cuDNN chooses convolution algorithms by a heuristic instead of timing them.

## What it does

Finds steps with costly convolutions of constant shapes while `torch.backends.cudnn.benchmark` is off.
The fix turns it on: where the script switches it off, at that value, else below its imports.

## Why is this slow

cuDNN has several algorithms for each convolution, and its sizes decide which is fastest. With
`benchmark` on, the first call of each shape times the algorithms, and later calls use the fastest.

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

## Fix safety

Unsafe: another algorithm rounds differently (about 1e-6 of the value in float32), and the fastest
algorithm may differ from run to run. Every new shape is timed first.

## References

- [torch.backends.cudnn](https://docs.pytorch.org/docs/stable/backends.html#module-torch.backends.cudnn)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from warpline.model import costs
from warpline.rulekit import Context, Draft, Rule
from warpline.rulekit.convolutions import another_way, convolution_ms, convolutions
from warpline.rulekit.saving import Spent
from warpline.rulekit.settings import said, said_instead, set_in_script

_NAME = "torch.backends.cudnn.benchmark"
_TITLE = f"Turn on {_NAME}"


class UntunedConvolution(Rule):
    area = "fusion"
    severity = "information"
    needs = ("kernels", "cudnn")

    def find(self, context: Context) -> Iterator[Draft]:
        flags = context.profile.facts.flags
        if flags.cudnn_benchmark is not False or flags.deterministic:
            return
        spent = Spent(context.profile.lines, convolution_ms)
        total = spent.total
        if not context.matters(total):
            return
        # A shape that does not come every step would be tuned again and again.
        if any(op.count < 0.99 for cost in spent for op in convolutions(cost) if op.phase == "forward"):
            return
        off = said(context, {_NAME: False})
        yield context.draft(
            off.place if off is not None else spent.hottest.place,
            "Convolutions of constant shapes take {spent} a step ({share}), and cuDNN does not "
            "time its algorithms (torch.backends.cudnn.benchmark is off).",
            context.spent("convolutions", total),
            cause=spent.hottest.place,
            cost_ms=total,
            # What the heuristic misses is often nothing at all.
            saving_ms=costs.value("conv-search") * total,
            change=another_way(spent, "benchmark", costs.value("conv-search") * total),
            fixes=[
                partial(
                    said_instead, off, "True", _TITLE, "the line that switches it off does not name the value"
                )
                if off is not None
                else partial(
                    set_in_script,
                    context,
                    _NAME,
                    "{name} = True",
                    _TITLE,
                    unless=("cudnn.benchmark",),
                    reason="the script already sets it",
                )
            ],
        )
