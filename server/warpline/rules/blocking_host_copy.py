"""The host waits for a copy from pinned memory, because `non_blocking=True` is missing.

## What it does

Finds copies from pinned memory to the device that the host waits for. Under the profiler the host is slower,
and such a wait can disappear, or most of it. Then a replay of the step, with a host as fast as without the
profiler, says what its removal gains.

## Why is this slow

Without `non_blocking=True` the host waits until the copy is done and queues no work meanwhile. The copy
comes behind all that the device still has to do, so a short copy may mean a long wait. With it, the copy
overlaps with the kernels of the previous step, and the host's own work does too.

## Example

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, num_workers=8, pin_memory=True)  #> site loader num_workers=8 pin_memory=true
for images in loader:  #> use loader
    images = images.cuda()  #> found; cost device_ms=5 copy_ms=5 cpu_ms=6 sync_ms=5
    #^ kernel "Memcpy HtoD (Pinned -> Device)" device_ms=5 kind=copy
    train(images)  #> cost device_ms=30 idle_ms=8
```

## Use instead

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, num_workers=8, pin_memory=True)
for images in loader:
    images = images.cuda(non_blocking=True)
    train(images)
```

## Example

The copy is short, but comes behind the kernels of the previous step, while the host has work of its own:

```python
#> totals idle_ms=17; steps step_ms=39
def to_device(tensor):
    return tensor.to("cuda")  #> found; cost device_ms=0.3 copy_ms=0.3 cpu_ms=10 sync_ms=10 step_ms=1
    #^ kernel "Memcpy HtoD (Pinned -> Device)" device_ms=0.3 kind=copy

for pixels, boxes in scenes():
    heat = to_device(drawn(boxes))  #> cost cpu_ms=16 idle_ms=16 step_ms=16
    train(to_device(pixels), heat)  #> cost device_ms=22 step_ms=22
```

## Use instead

```python
def to_device(tensor):
    return tensor.to("cuda", non_blocking=True)

for pixels, boxes in scenes():
    heat = to_device(drawn(boxes))
    train(to_device(pixels), heat)
```

## Fix safety

Safe for the batches of a loader: the stream keeps the order, so the same values arrive. Unsafe if the script
pins memory itself, because it may write to the host tensor before the copy is done. No edit is offered if it
does so in place, or if its steps may fill memory again that was pinned before them, and wait for no event.

## References

- [pin_memory and non_blocking](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.change import OverlapCopies
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Refused, Rule, Source, ms
from warpline.rulekit.copies import copy_waits, move_calls, without_waiting
from warpline.syntax.source import called_name, is_method, receiver
from warpline.wire.sites import Sync, facts_of

_FACTORIES = ("empty", "zeros", "ones", "full", "rand", "randn", "tensor", "empty_like", "zeros_like")


_SEEN = (
    "The host waits {spent} of each step ({share}) for a copy from pinned memory. With "
    "non_blocking=True the copy would overlap with compute."
)
_HIDDEN = (
    "The host waits here for a copy from pinned memory, and for all that the device still has to do before "
    "it. Under the profiler, which slows the host, that is {wait} of each step; without it up to {spent} "
    "({share}). With non_blocking=True the host would go on."
)


class BlockingHostCopy(Rule):
    area = "data"
    needs = ("kernels",)
    covers = ("python-loop-over-tensor",)  # over tensors that are copied

    def find(self, context: Context) -> Iterator[Draft]:
        for wait in copy_waits(context):
            seen = context.matters(wait.seen_ms)
            # Most of it may be hidden: then what was seen does not limit what the replay gains.
            hidden = not seen or wait.most_ms > 2 * wait.seen_ms
            spent = wait.most_ms if hidden else wait.seen_ms
            if not context.matters(spent):
                continue
            place = wait.costs[0].place
            yield context.draft(
                place,
                _HIDDEN if hidden else _SEEN,
                {
                    **context.spent("wait for the copy", spent),
                    **({"wait": ms("wait under the profiler", wait.seen_ms)} if hidden else {}),
                },
                cost_ms=spent,
                saving_ms=wait.seen_ms if seen else spent,
                change=OverlapCopies(wait.places),
                fixes=[partial(_fix, context, place)],
                replayed=not seen,
            )


def _fix(context: Context, place: tuple[str, int]) -> Fix:
    source, pins = context.source(place[0]), _pins(context)
    moves = move_calls(source, place[1]) if pins else []
    if any(_is_filled(source, call) for call in moves) or (pins and _fills_kept(context)):
        raise Refused(
            "the script fills this host tensor again, and with `non_blocking=True` the copy may not be done "
            "by then: use two such tensors in turn, and wait for the copy before filling one again"
        )
    first, *rest = without_waiting(context, [place]).values()
    return first.fix("Copy with non_blocking=True", "unsafe" if pins else "safe", *rest)


def _is_filled(source: Source, move: cst.Call) -> bool:
    """Whether the file writes into the tensor that ``move`` copies, and does not just replace it."""
    moved = source.code(receiver(move) or move)
    assign = source.enclosing(move, cst.Assign)
    if assign is not None and moved in [source.code(target.target) for target in assign.targets]:
        return False
    targets = [target.target for target in source.nodes(cst.AssignTarget)]
    written = [receiver(call) for call in source.nodes(cst.Call) if called_name(call).endswith("_")]
    written += [target.value for target in targets if isinstance(target, cst.Subscript)]
    return moved in [source.code(node) for node in written if node is not None]


def _pins(context: Context) -> list[tuple[Source, cst.Call]]:
    """Where the script pins memory by other means than a loader."""
    filled = context.calls(*_FACTORIES)
    return [
        *context.calls("pin_memory"),
        *((source, call) for source, call in filled if source.argument(call, "pin_memory")),
    ]


def _fills_kept(context: Context) -> bool:
    """Whether the steps may fill pinned memory again that was made before them, without waiting for an event:
    they write into tensors by ``out=``, ``copy_`` or NumPy."""
    if any(_ran(context, source, call) for source, call in _pins(context)):
        return False  # each step has memory of its own
    waited = (
        (context.source(site.file), site.line)
        for site in context.sites(Sync.KIND)
        if facts_of(Sync, site).what == "synchronize"
    )
    for source, line in waited:
        call = source.call(line, "synchronize")
        if call is not None and not source.name(call.func).startswith("torch."):
            return False  # an event, which says that the copy is over
    return any(
        _ran(context, source, call, on_host=True)
        for source in map(context.source, context.profile.sources)
        for call in source.nodes(cst.Call)
        if is_method(call, "numpy", "copy_") or source.argument(call, "out") is not None
    )


def _ran(context: Context, source: Source, call: cst.Call, on_host: bool = False) -> bool:
    """Whether the steps ran its line; ``on_host``: without a kernel."""
    cost = context.cost(*source.place(call))
    return cost is not None and cost.calls > 0 and not (on_host and cost.kernels)
