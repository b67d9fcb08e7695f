"""A framework makes the host wait for the device in every step, for something that a setting turns off.

## What it does

Finds waits at the lines of a framework that are known to be there for one of its settings, such as the
Trainer's look at each step's loss for NaN, and leads to the setting.

## Why is this slow

The host has to know a value that the device has not computed yet. It queues nothing meanwhile, and when it
knows the value the device has nothing queued either.

## Example

```python
#> totals idle_ms=30
from transformers import Trainer, TrainingArguments

args = TrainingArguments("out", logging_steps=10)
#^ found
#^ site framework construction=transformers.TrainingArguments "parameters=['logging_nan_inf_filter']"
trainer = Trainer(model=model, args=args, train_dataset=data)
trainer.train()  #> cost step_ms=119 device_ms=80 idle_ms=30 cpu_ms=110 sync_ms=60
#^ inside file=/lib/transformers/trainer.py line=1914 sync_ms=55 text='and (torch.isnan(loss)'
```

## Use instead

```python
from transformers import Trainer, TrainingArguments

args = TrainingArguments("out", logging_steps=10, logging_nan_inf_filter=False)
trainer = Trainer(model=model, args=args, train_dataset=data)
trainer.train()
```

## Near misses

It waits, but the device has work all the time:

```python
#> totals idle_ms=0.001
from transformers import Trainer, TrainingArguments

args = TrainingArguments("out")
#^ site framework construction=transformers.TrainingArguments "parameters=['logging_nan_inf_filter']"
trainer = Trainer(model=model, args=args, train_dataset=data)
trainer.train()  #> cost step_ms=119 device_ms=119 sync_ms=60
#^ inside file=/lib/transformers/trainer.py line=1914 sync_ms=55 text='and (torch.isnan(loss)'
```

The wait is at another line:

```python
from transformers import Trainer, TrainingArguments

args = TrainingArguments("out")
#^ site framework construction=transformers.TrainingArguments "parameters=['logging_nan_inf_filter']"
trainer = Trainer(model=model, args=args, train_dataset=data)
trainer.train()
```

## Fix safety

Unsafe: what the setting did is no longer done. Without the Trainer's filter a loss that is NaN shows as NaN
in the log, and no longer as the average of the losses before it; the training itself is the same.

## References

- [TrainingArguments](https://huggingface.co/docs/transformers/main_classes/trainer#transformers.TrainingArguments)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Refused, Rule, ms, percent
from warpline.rulekit.frameworks import setting_fix
from warpline.wire.frameworks import Construction, Setting, constructions
from warpline.wire.run import Site
from warpline.wire.sites import Framework, facts_of


class FrameworkWait(Rule):
    area = "waiting"
    covers = ("sync-in-step",)
    needs_gpu = True

    def find(self, context: Context) -> Iterator[Draft]:
        for one in constructions():
            for setting in one.settings:
                if setting.rule == self.name and setting.text:
                    yield from self._waits(context, one, setting)

    def _waits(self, context: Context, one: Construction, setting: Setting) -> Iterator[Draft]:
        package = one.module.partition(".")[0]
        site = next((each for each in context.sites("framework") if _made(each, one)), None)
        for cost in context.profile.lines:
            waited = sum(
                entry.sync_ms
                for entry in cost.inside
                if setting.text in entry.text and package in entry.file.replace("\\", "/").split("/")
            )
            lost = min(waited, context.idle_ms())
            if not context.matters(lost):
                continue
            place = (cost.file, cost.line)
            name = next(iter(setting.arguments))
            yield context.draft(
                (site.file, site.line) if site is not None else place,
                place,
                f"{package} makes the host wait for the device in each step, {{wait}} of it, while nothing "
                f"new is queued: the device is then idle, {{idle}} a step in all. `{name}` turns that off.",
                {
                    "wait": ms("wait in the framework", waited),
                    "idle": ms("device idle", context.idle_ms()),
                    "share": percent("at most lost", context.share(lost)),
                },
                cost_ms=lost,
                fixes=[partial(_fix, context, site, one, setting)],
            )


def _made(site: Site, one: Construction) -> bool:
    return facts_of(Framework, site).construction == one.key


def _fix(context: Context, site: Site | None, one: Construction, setting: Setting) -> Fix:
    if site is None:
        raise Refused(f"no line of yours was seen to construct `{one.name}`")
    return setting_fix(context, site, one, setting)
