"""Anomaly detection checks every gradient for NaN.

## What it does

Finds `torch.autograd.set_detect_anomaly(True)` (or `detect_anomaly()`) by what it adds to the step: the
tracebacks that it stores in the forward pass, and the checks for NaN in the backward pass.

## Why is this slow

In the forward pass, each operation stores a Python traceback, which takes as long as launching ten
operations. After each backward operation, its gradients are checked for NaN. The host reads the result, and
waits for the device each time.

## Example

```python
#> flags anomaly_mode=true
import torch

torch.autograd.set_detect_anomaly(True)  #> found
for images, labels in loader:
    loss = model(images, labels)  #> cost device_ms=20 cpu_ms=36 traceback_ms=20 check_ms=7
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

## Fix safety

Safe: values stay the same. A NaN in a gradient is no longer reported.

## References

- [Anomaly detection](https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.change import NoAnomalyDetection
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Origin, Refused, Rule
from warpline.rulekit.message import ms, percent
from warpline.rulekit.origins import argument_origin
from warpline.syntax.source import Source


class AnomalyDetectionOn(Rule):
    area = "waiting"
    tags = ("unnecessary",)

    def find(self, context: Context) -> Iterator[Draft]:
        facts = context.profile.facts
        if not facts.flags.anomaly_mode:
            return
        costs = [cost for cost in context.profile.lines if cost.check_ms + cost.traceback_ms > 0]
        checks = sum(cost.check_ms for cost in costs)
        stored = sum(cost.traceback_ms for cost in costs)
        if not context.matters(checks + stored):
            return
        hottest = max(costs, key=lambda cost: cost.check_ms + cost.traceback_ms)
        found = _switch(context)
        value = argument_origin(context, *found, "mode", 0) if found is not None else None
        called = found[0].place(found[1]) if found is not None else hottest.place
        said = "Anomaly detection is on: it takes {share} of each step, {checks} to check gradients for NaN"
        evidence = {
            "share": percent("anomaly detection", context.share(checks + stored)),
            "checks": ms("NaN checks", checks),
        }
        if facts.traceback_ns is None:  # recorded before they were
            said += ". The Python traceback that it stores for each operation comes on top."
        else:
            said += " and {stored} to store a Python traceback for each operation."
            evidence["stored"] = ms("tracebacks", stored)
        yield context.draft(
            value.place if value is not None and value.editable else called,
            said,
            evidence,
            cause=hottest.place,
            cost_ms=checks + stored,
            change=NoAnomalyDetection(tuple(cost.place for cost in costs)),
            fixes=[partial(_fix, found, value)],
        )


def _switch(context: Context) -> tuple[Source, cst.Call] | None:
    """The call that turned it on, the script's own file first."""
    script = context.profile.manifest.script
    found = context.calls("set_detect_anomaly", "detect_anomaly")
    for source, call in sorted(found, key=lambda entry: (entry[0].path != script, entry[0].path)):
        if source.passed(call, "mode", 0) is not False:
            return source, call
    return None


def _fix(found: tuple[Source, cst.Call] | None, value: Origin | None) -> Fix:
    if found is None:
        raise Refused("the call that turns it on was not found in your files")
    source, call = found
    title = "Turn off anomaly detection"
    if source.is_named(call.func, "detect_anomaly"):
        edits = Edits(source)
        edits.replace(call, "torch.autograd.set_detect_anomaly(False)")
        edits.add_import("torch.autograd", "import torch")
        return edits.fix(title, "safe")
    if value is None:
        raise Refused("the call's argument was not understood")
    if not value.editable:
        raise Refused(f"it depends on {value.words}")
    return Edits(value.source).replace(value.node, "False").fix(title, "safe")
