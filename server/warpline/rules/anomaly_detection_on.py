"""Anomaly detection checks every gradient for NaN.

## What it does

Finds `torch.autograd.set_detect_anomaly(True)` (or `detect_anomaly()`) by the checks for NaN that it
adds to the backward pass.

## Why is this slow

After each backward operation, its gradients are checked for NaN. The host reads the result, and waits
for the device each time. In the forward pass, each operation stores a Python traceback.

## Example

```python
#> flags anomaly_mode=true
import torch

torch.autograd.set_detect_anomaly(True)  #> found
for images, labels in loader:
    loss = model(images, labels)  #> cost device_ms=20 cpu_ms=16
    #^ op aten::isnan phase=backward count=90 cpu_ms=4; op aten::any phase=backward count=90 cpu_ms=3
    loss.backward()
```

## Use instead

```python
import torch

torch.autograd.set_detect_anomaly(False)
for images, labels in loader:
    loss = model(images, labels)
    loss.backward()
```

## Near misses

Turned off:

```python
#> flags anomaly_mode=false
import torch

torch.autograd.set_detect_anomaly(False)
for images, labels in loader:
    loss = model(images, labels)  #> cost device_ms=20; op aten::isnan phase=backward count=1 cpu_ms=4
```

The script checks for NaN itself, without anomaly detection:

```python
import torch

for images, labels in loader:
    loss = model(images, labels)  #> cost device_ms=20
    if torch.isnan(loss).any():  #> cost cpu_ms=5; op aten::isnan count=1 cpu_ms=4
        break
```

## Fix safety

Safe: values stay the same. A NaN in a gradient is no longer reported.

## References

- [Anomaly detection](https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.change import Scale
from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule
from warpline.rulekit.origins import argument_origin
from warpline.syntax.source import Source

#: What autograd calls to look for NaN after each backward function.
CHECKS = ("aten::isnan", "aten::_is_any_true", "aten::any", "aten::is_nonzero", "aten::item", "aten::ne")


class AnomalyDetectionOn(Rule):
    area = "waiting"
    tags = ("unnecessary",)

    def find(self, context: Context) -> Iterator[Draft]:
        if not context.profile.facts.flags.anomaly_mode:
            return
        costs = [cost for cost in context.profile.lines if _checking(cost) > 0]
        spent = sum(_checking(cost) for cost in costs)
        if not context.matters(spent):
            return
        hottest = max(costs, key=_checking)
        cause = hottest.place
        found = _switch(context)
        yield context.draft(
            _site(context, found) or cause,
            "Anomaly detection is on: checking every gradient for NaN takes {spent} of each step ({share}).",
            context.spent("NaN checks", spent),
            cause=cause,
            cost_ms=spent,
            change=_change(costs, spent),
            fixes=[partial(_fix, context, found)],
        )


def _checking(cost: LineCost) -> float:
    return sum(op.cpu_ms for op in cost.ops if op.phase == "backward" and op.outer and op.name in CHECKS)


def _switch(context: Context) -> tuple[Source, cst.Call] | None:
    """The call that turned it on, the script's own file first."""
    script = context.profile.manifest.script
    found = context.calls("set_detect_anomaly", "detect_anomaly")
    for source, call in sorted(found, key=lambda entry: (entry[0].path != script, entry[0].path)):
        first = source.argument(call, "mode", 0)
        if first is None or source.literal(first.value) is not False:
            return source, call
    return None


def _change(costs: list[LineCost], spent: float) -> Scale:
    """The part of those lines' time that the checks are, gone from host and device alike.

    An estimate: the stack that each forward operator stores for the error message is in no operator of its
    own, so what that costs is not known.
    """
    left = 1 - min(1.0, spent / max(sum(cost.step_ms for cost in costs), spent))
    return Scale(tuple(cost.place for cost in costs), device=left, host=left, assumed=True)


def _site(context: Context, found: tuple[Source, cst.Call] | None) -> tuple[str, int] | None:
    """Where to change it: where the value stands that the call is given, else the call."""
    if found is None:
        return None
    source, call = found
    value = argument_origin(context, source, call, "mode", 0)
    return value.place if value is not None and value.editable else source.place(call)


def _fix(context: Context, found: tuple[Source, cst.Call] | None) -> Fix:
    if found is None:
        raise Refused("the call that turns it on was not found in your files")
    source, call = found
    title = "Turn off anomaly detection"
    if source.is_named(call.func, "detect_anomaly"):
        edits = Edits(source)
        edits.replace(call, "torch.autograd.set_detect_anomaly(False)")
        edits.add_import("torch.autograd", "import torch")
        return edits.fix(title, "safe")
    value = argument_origin(context, source, call, "mode", 0)
    if value is None:
        raise Refused("the call's argument was not understood")
    if not value.editable:
        raise Refused(f"it depends on {value.words}")
    return Edits(value.source).replace(value.node, "False").fix(title, "safe")
