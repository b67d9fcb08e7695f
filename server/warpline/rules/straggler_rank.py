"""One process is slower than the others, and all wait for it at every exchange.

## What it does

Finds the time in which this process's collectives had begun but waited for another process to begin
theirs, from the exchanges that all processes on this machine recorded.

## Why is this slow

A collective ends for all when the slowest process has arrived. Uneven batches, a loader that is slower
on one rank, or logging on rank 0 only, cost every device that time.

## Example

```python
#> manifest world_size=8; totals collective_wait_ms=15
for images, labels in loader:
    loss = model(images, labels)  #> found; cost device_ms=80 communication_ms=30
    loss.backward()
```

## Use instead

Look at the profile of the rank that the others wait for (the one whose own wait is smallest): give it
as much work as the others have, and take what only it does (logging, checkpoints, evaluation) out of
the step.

## Near misses

All arrive together:

```python
#> manifest world_size=8; totals collective_wait_ms=1
for images, labels in loader:
    loss = model(images, labels)  #> cost device_ms=80 communication_ms=30
```

## Fix safety

Display: what makes a rank slow is seen in that rank's own profile.

## References

- [Distributed data parallel notes](https://docs.pytorch.org/docs/stable/notes/ddp.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from warpline.rulekit import Context, Draft, Rule, ms, percent
from warpline.rulekit.parallel import exposed_communication

#: Share of the step (TraceML warns at 10 %, is critical at 20 %).
MINIMUM_PERCENT = 10.0


class StragglerRank(Rule):
    area = "many devices"
    covers = ("exposed-communication",)

    def find(self, context: Context) -> Iterator[Draft]:
        if context.profile.manifest.world_size < 2:
            return
        waited = context.profile.totals.get("collective_wait_ms")
        if waited is None:
            context.note(
                "whether one rank is slower than the others is not known: their exchanges were not recorded"
            )
            return
        lines = exposed_communication(context)[1]
        if not lines or context.share(waited) < MINIMUM_PERCENT:
            return
        place = (lines[0].file, lines[0].line)
        yield context.draft(
            place,
            place,
            "This rank waits {waited} of each step ({share}) at exchanges for a slower one.",
            {"waited": ms("wait for other ranks", waited), "share": percent("wait", context.share(waited))},
            cost_ms=waited,
        )
