"""One rank is slower than the others, and all wait for it at every collective.

## What it does

Compares how long each rank on this machine was in each collective: all leave it together, so the rank
that was in it for the shortest time arrived last. Reports a rank that arrived last in every recorded
step, by 10 % of the step or more in each, with the time that the others waited for it. That is no more
than the others could be quicker: where their hosts alone need the whole step, a device waits only because
its host is ahead. Reports nothing if the last rank changes from step to step, or if the profiler slowed the
steps by as much, because then the profiler may have delayed it.

The finding stands at the line on which that rank spends more than the others do, where one line accounts for
more than half of the wait. Otherwise it stands where the others wait.

## Why is this slow

A collective ends for all ranks when the slowest one has arrived. Every device loses the time of uneven
batches, of a slow loader on one rank, or of logging on rank 0 only.

## Example

```python
#> manifest world_size=8; totals late_rank=3 late_rank_ms=15 collective_wait_ms=15
for images, labels in loader:
    if rank == 3:
        save_images(images)  #> found; late more_ms=14
    loss = model(images, labels)  #> cost device_ms=80 communication_ms=30
    loss.backward()
```

All lines of a rank that gets larger batches are slower, so the finding stands where the others wait:

```python
#> manifest world_size=8; totals late_rank=3 late_rank_ms=15 collective_wait_ms=15
for images, labels in loader:
    loss = model(images, labels)  #> found; cost device_ms=80 communication_ms=30
    loss.backward()
```

## Use instead

Give that rank as much work as the others, and move work that only it does (logging, checkpoints,
evaluation) out of the step. If the finding names no line of that rank, `warpline ranks RUN` compares the
lines of all ranks, and `warpline show RUN/ranks/N` prints those of one rank.

## Fix safety

Display: what is to be done depends on why that rank does more there.

## References

- [Distributed data parallel notes](https://docs.pytorch.org/docs/stable/notes/ddp.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from warpline.model.ranks import LATE_RANK_PERCENT
from warpline.rulekit import Context, Draft, Rule, count, ms, percent
from warpline.rulekit.parallel import exposed_communication


class StragglerRank(Rule):
    area = "many devices"
    covers = ("exposed-communication",)

    def find(self, context: Context) -> Iterator[Draft]:
        if context.profile.manifest.world_size < 2:
            return
        totals = context.profile.totals
        if "collective_wait_ms" not in totals:
            context.note("no rank was compared with the others: their collectives were not recorded")
            return
        lines = exposed_communication(context)[1]
        late = totals.get("late_rank_ms", 0.0)
        if not lines or context.share(late) < LATE_RANK_PERCENT:
            return
        waiting, line = lines[0].place, context.profile.late_line
        evidence = {
            "rank": count("late rank", totals["late_rank"], "rank"),
            "late": ms("wait for the late rank", late),
            "share": percent("wait", context.share(late)),
        }
        if line is None:
            who = "This rank waits for" if totals["late_rank"] else "The other ranks wait for"
            yield context.draft(
                waiting,
                who + " rank {rank} at collectives for {late} of each step ({share}). "
                "warpline ranks RUN compares the lines of all ranks.",
                evidence,
                cost_ms=late,
            )
            return
        yield context.draft(
            (line.file, line.line),
            "Rank {rank} spends {more} more on this line than other ranks do, and they wait for it at "
            "collectives for {late} of each step ({share}).",
            {**evidence, "more": ms("more on this line than other ranks", line.more_ms)},
            cost_ms=late,
            cause=waiting,
        )
