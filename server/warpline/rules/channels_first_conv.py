"""Convolutions run on NCHW tensors, which tensor cores cannot use directly.

## What it does

Finds costly convolutions in half precision or TF32 whose inputs are in NCHW layout. The fix converts
the model to `torch.channels_last`; the activations then use that layout too. Where the script has an option
for it that is off (`--channels-last`), the fix is its default. Where the script converts the model under
another condition that was false (`if device.type == "cuda":`), the fix removes the condition. `Conv1d` has
no such layout and does not count.

On a CPU the layout matters for some convolutions (depthwise ones, groups) and not for others. There it finds
those that were faster in the other layout, with the operators between them, when both were tried beside the
script.

## Why is this slow

Tensor cores multiply along the channels, so cuDNN's fast kernels need all channels of a pixel next to
each other (NHWC). With NCHW inputs, cuDNN transposes inputs and outputs around every convolution, or
uses a slower kernel.

## Example

```python
import torch

model = ResNet().to("cuda")
#^ found
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in loader:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = criterion(model(images), labels)
        #^ cost device_ms=30
        #^ op aten::convolution device_ms=25 shapes=[[8,64,8,8]] dtypes=c10::Half strides=[[4096,64,8,1]]
        #^ kernel nchwToNhwcKernel count=100 device_ms=6
    loss.backward()
    optimizer.step()
```

## Use instead

```python
import torch

model = ResNet().to("cuda")
model.to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in loader:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
```

## Example

A function that makes the model and moves it:

```python
import torch

def build(device):
    net = ResNet()
    return net.to(device)
    #^ found

model = build("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in loader:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = criterion(model(images), labels)
        #^ cost device_ms=30
        #^ op aten::convolution device_ms=25 shapes=[[8,64,8,8]] dtypes=c10::Half strides=[[4096,64,8,1]]
        #^ kernel nchwToNhwcKernel count=100 device_ms=6
    loss.backward()
    optimizer.step()
```

## Use instead

```python
import torch

def build(device):
    net = ResNet()
    return net.to(device, memory_format=torch.channels_last)

model = build("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in loader:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
```

## Example

A view of activations that would fail in the other layout, and one that would not:

```python
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        x = self.features(x)
        #^ node aten.convolution.default args=[%8] shape=[8,64,6,6] dtype=float16
        weights = x.view(8, 64, 36).mean(2)
        #^ node aten.view.default args=[%0,[8,64,36]] shape=[8,64,36] dtype=float16 of=x.view(8, 64, 36)
        return self.head(x.view(x.size(0), -1)) * weights
        #^ node aten.view.default args=[%0,[8,2304]] shape=[8,2304] dtype=float16

model = Net().to("cuda")
#^ found
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in loader:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = criterion(model(images), labels)
        #^ cost device_ms=30
        #^ op aten::convolution device_ms=25 shapes=[[8,64,8,8]] dtypes=c10::Half strides=[[4096,64,8,1]]
        #^ kernel nchwToNhwcKernel count=100 device_ms=6
    loss.backward()
    optimizer.step()
```

## Use instead

```python
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        x = self.features(x)
        weights = x.view(8, 64, 36).mean(2)
        return self.head(x.reshape(x.size(0), -1)) * weights

model = Net().to("cuda")
model.to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in loader:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
```

## Fix safety

Unsafe: other kernels round differently (about 1e-2 of the value in bfloat16). Shapes and the state dict
stay the same. `.view` of activations fails where it joins channels with rows: the edit writes `.reshape`
at such lines of the recorded step. Code that did not run in it (an evaluation) may need the same.

## References

- [Channels last memory format](https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import libcst as cst

from warpline.model import costs
from warpline.model.change import Change, ChannelsLast, Replace, Scale, Together
from warpline.model.kernel_name import turns_layout
from warpline.model.profile import LineCost, Op
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, ms
from warpline.rulekit.calling import model_born
from warpline.rulekit.convolutions import another_way, convolution_ms, network_places, planes
from warpline.rulekit.flags import switch_on, switched_off
from warpline.rulekit.inference import steps
from warpline.rulekit.model_lines import (
    about_model,
    below_its_making,
    below_statement,
    classes_of,
    finished_in,
    given_a_name,
    model_place,
    named_at,
    on_module,
    replaced,
    trained,
)
from warpline.rulekit.models_given import Made, given_model
from warpline.rulekit.saving import Spent
from warpline.rulekit.training import TrainingStep
from warpline.rulekit.views import reshaped
from warpline.syntax.source import Source, is_method, receiver
from warpline.wire.precision import HALF
from warpline.wire.sites import Module, facts_of

#: Percent of the step that convolutions take on a CPU before another layout is tried.
_MUCH_ON_A_CPU = 10.0
_TITLE = "Convert the model to channels_last"


class ChannelsFirstConv(Rule):
    area = "fusion"

    def find(self, context: Context) -> Iterator[Draft]:
        if context.can("kernels") and context.can("tensor cores"):
            yield from self._on_tensor_cores(context)
        elif context.can("replacements") and not context.can("kernels"):
            yield from self._on_a_cpu(context)

    def _on_a_cpu(self, context: Context) -> Iterator[Draft]:
        """Asks for a trial of all of a recorded network: only that tells what another layout gains there."""
        spent, places = Spent(context.profile.lines, _any_channels_first_ms), network_places(context)
        if not places or context.share(spent.total) < _MUCH_ON_A_CPU:
            return
        place, fix = _edit(context, spent.hottest)
        yield context.draft(
            place,
            "Convolutions on NCHW tensors take {spent} a step ({share}). With their channels last they were "
            "faster here, and so were the operators between them.",
            context.spent("convolutions on NCHW", spent.total),
            cause=spent.hottest.place,
            cost_ms=spent.total,
            change=Replace("channels_last", places, Scale(places)),
            tried=True,
            fixes=[fix],
        )

    def _on_tensor_cores(self, context: Context) -> Iterator[Draft]:
        if tuple(context.device.capability or (0, 0)) < (7, 0):
            return
        spent = Spent(context.profile.lines, _channels_first_ms)
        total = spent.total
        if not context.matters(total):
            return
        turned = sum(
            kernel.device_ms for cost in spent for kernel in cost.kernels if turns_layout(kernel.name)
        )
        slower = costs.value("conv-layout") * total
        place, fix = _edit(context, spent.hottest)
        yield context.draft(
            place,
            "Convolutions on NCHW tensors take {spent} a step ({share}). Converting their layout "
            "for the tensor cores and back takes {turned} of the step.",
            {**context.spent("convolutions on NCHW", total), "turned": ms("layout conversion", turned)},
            cause=spent.hottest.place,
            cost_ms=total,
            saving_ms=max(turned, slower),
            change=_change(context, spent, turned > 0, slower),
            fixes=[fix],
        )


def _edit(context: Context, hottest: LineCost) -> tuple[tuple[str, int], Callable[[], Fix]]:
    """Where to convert the model, and the edit; of a script that has an option for it, where that is off."""
    if (flag := switched_off(context, "channels_last")) is not None:
        return flag.place, partial(switch_on, flag, _TITLE)
    step = next((found for found in steps(context) if found.forward and trained(found)[0]), None)
    finished = _finished(step) if step is not None else None
    fix = partial(_fix, context, step, hottest)
    if step is not None:
        given = _given(context, step)
        place = given[0].place(given[1]) if given is not None else model_place(step)
        return place if finished is None else step.source.place(finished), fix
    born = model_born(context, hottest)
    if born is None:
        return hottest.place, fix
    source, line = named_at(context, born)
    return (source.path, line), fix


def _finished(step: TrainingStep) -> cst.Call | None:
    """Where the function that makes the model moves it, or sets its mode, as it returns it."""
    name, layer = trained(step)
    return finished_in(step, name) if name is not None and layer is None else None


def _given(context: Context, step: TrainingStep) -> Made | None:
    """Where another function makes or moves the model, and hands it to the step's."""
    name, layer = trained(step)
    return given_model(context, step, name) if name is not None and layer is None else None


def _change(context: Context, spent: Spent, turned: bool, slower: float) -> Change:
    """The network in channels_last. It is tried with its norms, pools and activations where it was recorded.
    Else the conversions go; where there are none (a slower kernel was taken) the convolutions are tried. The
    norms are faster either way."""
    alone = another_way(spent, "channels_last", slower)
    otherwise = ChannelsLast() if turned else Together((alone.otherwise, ChannelsLast()))
    places = network_places(context)
    if not places:
        return otherwise if turned else alone
    return Replace("channels_last", places, otherwise)


def _channels_first_ms(cost: LineCost) -> float:
    known = {kernel.tensor_cores for kernel in cost.kernels if not turns_layout(kernel.name)}
    # By what goes in: a gradient in another layout comes of what follows the convolution.
    given = [op for op in planes(cost) if op.phase != "backward" and _lies_channels_first(op)]
    first = any(op.dtypes[0] in HALF or True in known for op in given)
    return convolution_ms(cost, planes) if first else 0.0


def _any_channels_first_ms(cost: LineCost) -> float:
    first = any(_lies_channels_first(op) for op in planes(cost) if op.phase != "backward")
    return convolution_ms(cost, planes) if first else 0.0


def _lies_channels_first(op: Op) -> bool:
    if not op.shapes or not op.strides or len(op.shapes[0]) != 4 or len(op.strides[0]) != 4 or not op.dtypes:
        return False
    (_, channels, height, width), (_, step, _, along) = op.shapes[0], op.strides[0]
    return along == 1 and step == height * width and channels > 4 and height * width > 1


def _fix(context: Context, step: TrainingStep | None, hottest: LineCost) -> Fix:
    edits = _converted(context, step) if step is not None else _converted_where_made(context, hottest)
    return edits.fix(_TITLE, "unsafe", *reshaped(context, edits))


def _converted(context: Context, step: TrainingStep) -> Edits:
    given = _given(context, step)
    source, made, model = given or (step.source, None, trained(step)[0])
    edits = Edits(source)
    name = edits.add_import("torch.channels_last", "import torch")
    if _always(context, source, model, edits):
        return edits
    code = on_module(context, edits, classes_of(step, model or ""), "to", f"memory_format={name}")
    if made is not None:
        return below_statement(source, made, edits, code.format(model=model))
    finished = _finished(step)
    if finished is None:
        about_model(step, edits, code)
    elif is_method(finished, "to") and not replaced(context, classes_of(step, model or ""), "to"):
        edits.set_argument(finished, "memory_format", name)
    else:
        edits.replace(finished, code.format(model=source.code(finished)))
    return edits


def _converted_where_made(context: Context, hottest: LineCost) -> Edits:
    """The edit where a model is made that no step of this file calls by its name."""
    unnamed = "where the model is made was not found: call `.to(memory_format=torch.channels_last)` on it"
    born = model_born(context, hottest)
    if born is None:
        raise Refused(unnamed)
    source, line = named_at(context, born)
    edits = Edits(source)
    name = edits.add_import("torch.channels_last", "import torch")
    given = given_a_name(context, source, line)
    if given is not None and _always(context, source, given[1], edits):
        return edits
    kind = facts_of(Module, born).type or ""
    code = on_module(context, edits, {kind}, "to", f"memory_format={name}")
    return below_its_making(context, source, line, edits, code, unnamed)


def _always(context: Context, source: Source, model: str | None, edits: Edits) -> bool:
    """Removes the condition under which the script converts ``model``, where it was false; whether it did."""
    for call in source.nodes(cst.Call):
        held, given = receiver(call), source.argument(call, "memory_format")
        layout = given.value if given is not None and is_method(call, "to") else None
        if held is None or source.code(held) != model or not source.is_named(layout, "channels_last"):
            continue
        own, above = source.statement(call), source.enclosing(call, cst.If, cst.FunctionDef)
        if own is None or not isinstance(above, cst.If) or isinstance(source.parent(above), cst.If):
            continue
        only = above.orelse is None and list(above.body.body) == [own]
        if only and context.reached.statement(source, own) is False:
            edits.replace_statement(above, source.code(own))
            return True
    return False
