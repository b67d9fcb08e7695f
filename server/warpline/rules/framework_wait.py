"""A framework makes the host wait for the device in every step, and a setting turns that off.

## What it does

Finds waits at lines of a framework that one of its settings turns off, such as the Trainer's NaN check
of each step's loss, or an average of the weights (timm's `ModelEmaV2`) that is kept on the CPU, and points to
the setting.

## Why is this slow

The host reads a value that the device has not computed yet. It queues no work while it waits, so the
device is idle afterwards. What else the waiting line of the framework does goes with the wait: copies to the
CPU, and the work there on what was copied.

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

## Example

```python
import timm

model = timm.create_model("resnet18").cuda()
average = timm.utils.ModelEmaV3(model, 0.999, device="cpu")
#^ found; site framework construction=timm.ModelEmaV3 "parameters=['device']" with.device=cpu
for x, y in loader:
    train(model, x, y)  #> cost device_ms=20 step_ms=25
    average.update(model)
    #^ cost step_ms=30 idle_ms=29 cpu_ms=28 sync_ms=20
    #^ inside file=/lib/timm/utils/model_ema.py line=214 sync_ms=20 text=model_v.to(device=self.device)
```

## Use instead

```python
import timm

model = timm.create_model("resnet18").cuda()
average = timm.utils.ModelEmaV3(model, 0.999, device=None)
for x, y in loader:
    train(model, x, y)
    average.update(model)
```

## Fix safety

Unsafe: the setting's feature is off. Without the Trainer's filter, a NaN loss appears as NaN in the log
instead of the average of the earlier losses. The training itself is the same. An average of the weights on
the device takes as much of its memory as the model, and is rounded otherwise in the last bit.

## References

- [TrainingArguments](https://huggingface.co/docs/transformers/main_classes/trainer#transformers.TrainingArguments)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from warpline.rulekit import Context, Draft, Rule, ms, percent
from warpline.rulekit.calling import MOSTLY
from warpline.rulekit.framework_settings import edited_at, setting_fix
from warpline.rulekit.frameworks import applies, made_by
from warpline.rulekit.saving import without_inside
from warpline.syntax.edits import attempted
from warpline.wire.frameworks import Construction, Setting, constructions

_MORE = (
    " The lines that wait take {gone} in all, with copies and with work of the host, and that goes with it."
)


class FrameworkWait(Rule):
    area = "waiting"
    covers = ("sync-in-step",)
    needs = ("kernels",)

    def find(self, context: Context) -> Iterator[Draft]:
        for one in constructions():
            for setting in one.settings:
                if setting.rule == self.name and setting.text:
                    yield from self._waits(context, one, setting)

    def _waits(self, context: Context, one: Construction, setting: Setting) -> Iterator[Draft]:
        package = one.module.partition(".")[0]
        site = next(iter(made_by(context, one)), None)
        if site is None or not applies(context, site, setting):
            return
        for cost in context.profile.lines:
            waiting = [
                entry
                for entry in cost.inside
                if setting.text in entry.text
                and set(one.owned) & set(entry.file.replace("\\", "/").split("/"))
            ]
            waited, gone = sum(entry.sync_ms for entry in waiting), sum(entry.step_ms for entry in waiting)
            idle = min(waited, context.idle_ms())
            lost = max(idle, gone)
            if not context.matters(idle):
                continue
            place, fix = cost.place, attempted(partial(setting_fix, context, site, one, setting))
            name = next(iter(setting.arguments), "")
            remedy = f"The setting is `{name}` here." if name else f"`{one.method}` asks for it."
            yield context.draft(
                edited_at(context, site, one, [setting], fix),
                f"{package} makes the host wait {{wait}} of each step for the device and queue nothing "
                "meanwhile. The device is idle for {idle} a step in total."
                + (_MORE if context.matters(gone - idle) else "")
                + f" {remedy}",
                {
                    "wait": ms("wait in the framework", waited),
                    **({"gone": ms("at lines that wait", gone)} if context.matters(gone - idle) else {}),
                    "idle": ms("device idle", context.idle_ms()),
                    "share": percent("at most lost", context.share(lost)),
                },
                cause=place,
                cost_ms=lost,
                change=without_inside(cost, waiting) if waited >= MOSTLY * cost.sync_ms else None,
                fixes=[fix],
            )
