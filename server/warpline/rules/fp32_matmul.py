"""Matrix products run in float32 and do not use the tensor cores.

## What it does

Adds up the device time of matrix products (`mm`, `addmm`, `bmm` and their backward) whose operands are
float32, and of float32 convolutions if nothing runs under autocast. The fixes run the forward pass and the
loss under autocast (bfloat16 if the device supports it, else float16 with a `GradScaler`), or allow TF32.
Where a function that the step calls has the model's call and returns float32, autocast begins at that call.
Where the script has an option for autocast that is off (`--amp`), the fix is its default; where a value of
its own chooses between autocast and `nullcontext()`, gives autocast float32 or switches it off
(`enabled=cuda and args.precision == "bf16"`), the fix is that value. Where nothing is trained and a setting
gives a library's model the type of its weights (`model.to(getattr(torch, settings.dtype))`), it is that. A
script that allows TF32 has chosen its precision: what bfloat16 would gain on top is a hint.

## Why is this slow

Float32 products do not use the GPU's tensor cores. On an H200 they run at about 1/15 of the rate of
bfloat16 and 1/7 of the rate of TF32.

## Example

```python
#> device kind=cuda capability=(9,0) bf16=true; flags allow_tf32=false
import torch

for inputs, labels in loader:
    inputs, labels = inputs.to("cuda"), labels.to("cuda")
    optimizer.zero_grad()
    logits = model(inputs)
    #^ found; cost device_ms=60; op aten::addmm count=73 device_ms=50 dtypes=float,float,float
    loss = criterion(logits, labels)  #> cost device_ms=1
    loss.backward()
    optimizer.step()  #> cost device_ms=5
```

## Use instead

```python
import torch

for inputs, labels in loader:
    inputs, labels = inputs.to("cuda"), labels.to("cuda")
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        logits = model(inputs)
        loss = criterion(logits, labels)
    loss.backward()
    optimizer.step()
```

## Example

On a device without bfloat16, float16 needs gradient scaling:

```python
#> device kind=cuda name="Tesla V100" capability=(7,0) bf16=false; flags allow_tf32=false
import torch
from torch.nn.utils import clip_grad_norm_

def train():
    for batch in loader:
        loss = model(batch)
        #^ found; cost device_ms=60; op aten::mm count=73 device_ms=50 dtypes=float,float
        optimizer.zero_grad()
        loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()  #> cost device_ms=5
```

## Use instead

```python
import torch
from torch.nn.utils import clip_grad_norm_

def train():
    scaler = torch.amp.GradScaler("cuda")
    for batch in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(batch)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
```

## Example

Convolutions that cuDNN runs in TF32, at half the rate of bfloat16:

```python
import torch

for images, labels in loader:
    loss = criterion(model(images), labels)
    #^ found; cost device_ms=60; op aten::cudnn_convolution count=9 device_ms=20 dtypes=float,float
    #^ op aten::convolution_backward phase=backward count=9 device_ms=30 dtypes=float,float,float
    loss.backward()
```

## Use instead

```python
import torch

for images, labels in loader:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = criterion(model(images), labels)
    loss.backward()
```

## Example

In TF32, which the script allows (a hint):

```python
import torch

torch.set_float32_matmul_precision("high")  #> flags float32_matmul_precision=high
for batch in loader:
    loss = model(batch)
    #^ found; cost device_ms=60; op aten::mm count=9 device_ms=50 dtypes=float,float
    #^ kernel sm90_xmma_gemm_tf32 device_ms=50 tensor_cores=true
    loss.backward()
```

## Use instead

```python
import torch

torch.set_float32_matmul_precision("high")
for batch in loader:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(batch)
    loss.backward()
```

## Fix safety

Unsafe: bfloat16 keeps 8 bits of the mantissa, float16 and TF32 keep 11, float32 24. Losses usually
agree to about 1e-2 (autocast) and 1e-3 (TF32); sums, norms and losses stay in float32 under autocast.
No autocast is offered where the recorded step has something under it that would raise: a product with a
sparse matrix; a factorization, an FFT or complex numbers made of 16 bits; `index_add_` or another operator
that would get two types; `binary_cross_entropy`; products in an autograd function without `custom_fwd`;
operators and kernels of the script's own; `.numpy()` of a result. None is offered around products inside of
an autocast that the run saw switched off, either: there it would do nothing. Weights in bfloat16 lose their
last bits for good, and are not offered where the step has an operator on weights and float32 numbers.

## References

- [Automatic mixed precision](https://docs.pytorch.org/docs/stable/amp.html)
- [TF32 on Ampere and later](https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from warpline.model import costs
from warpline.model.change import MatmulRate
from warpline.model.dtypes import tf32_allowed
from warpline.model.profile import LineCost, Op
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Refused, Rule, count
from warpline.rulekit.autocast_choice import autocast_choice
from warpline.rulekit.autocasting import Region, half, lowering, region, under_autocast, with_autocast
from warpline.rulekit.choice import Choice
from warpline.rulekit.flags import switch_on, switched_off
from warpline.rulekit.fused_attention import runs_math
from warpline.rulekit.inference import steps
from warpline.rulekit.kernels import MATMULS
from warpline.rulekit.message import ms
from warpline.rulekit.saving import Spent
from warpline.rulekit.settings import Said, said, said_instead, set_in_script
from warpline.rulekit.weights_choice import weights_choice
from warpline.wire.precision import Precision
from warpline.wire.sites import Framework

#: Not bound by the bytes of the numbers that they read, or products of their own.
_APART = (
    *("aten::sort", "aten::topk", "aten::index", "aten::embedding", "aten::nonzero", "aten::_scaled_dot"),
    *("aten::_flash_attention", "aten::_efficient_attention", "aten::_cudnn_attention", "aten::mv"),
)

_SPARSE = "cusparse::"
#: Products of many matrices at once: attention's.
_BATCHED = ("aten::bmm", "aten::baddbmm")

#: First compute capability with the units: float16, and bfloat16 with TF32.
_HALF, _TF32 = (7, 0), (8, 0)

_TITLE = "Switch on the script's autocast"

#: Settings that keep float32 products from TF32, with the value that does.
_SETTER = "set_float32_matmul_precision"
_OFF = {"torch.backends.cuda.matmul.allow_tf32": False, "float32_matmul_precision": "highest"}


class Fp32Matmul(Rule):
    area = "precision"
    needs = ("kernels", "tensor cores")

    def find(self, context: Context) -> Iterator[Draft]:
        capability = context.device.capability
        flags = context.profile.facts.flags
        if capability is None or tuple(capability) < _HALF:
            return
        # In TF32 all of it is at half the rate of bfloat16, and the script has chosen that.
        rounds = tf32_allowed("aten::mm", flags) and tuple(capability) >= _TF32
        if rounds and context.autocast:
            return
        products = {cost: _in_float32(cost, rounds) for cost in context.profile.lines}
        # cuDNN rounds to TF32 unless told otherwise: such convolutions are at half the rate of bfloat16's.
        convolved = {cost: 0.0 if context.autocast else _convolved(cost) for cost in context.profile.lines}
        spent = Spent(products, lambda cost: min(products[cost] + convolved[cost], cost.step_ms))
        total = spent.total
        if not context.matters(total):
            return
        hottest = spent.hottest
        step = next((found for found in steps(context) if found.forward), None)
        place = hottest.place
        where, choice = None, None
        if step is not None and not context.autocast:
            where = region(context, step, spent)
            choice = autocast_choice(context, step, where)
            if under_autocast(step) and choice is None and not flags.autocast:
                return  # edited since the run
            place = where.source.place(where.first)  # else only the lines with the products leave autocast
        precision: Precision = "bf16" if context.device.bf16 else "fp16"
        calls = sum(
            op.count
            for cost in spent
            for op in cost.ops
            if _is_float32(op.name, op.dtypes) or (convolved[cost] and _is_convolution(op))
        )
        left = 0.5 if rounds else costs.value("tensor-cores")
        gained = sum(convolved.values()) / 2 + sum(products.values()) * (1 - left)
        only = not context.matters(sum(products.values()))
        tf32 = not only and not rounds  # would help
        off = said(context, _OFF, (_SETTER,)) if tf32 and tuple(capability) >= _TF32 else None
        place = off.place if off is not None else place
        option = switched_off(context, "autocast") if off is None else None
        # In inference, the type of the weights may be the script's to choose.
        weights = weights_choice(context) if off is None and not context.autocast else None
        own = weights or option or choice if off is None else None  # the script's own, such as --amp
        place = own.place if own is not None else place
        between = _between(context, where)
        lower = MatmulRate(precision, spent.places, elementwise=True, between=tuple(between.items()))
        beside = _beside(context, between) if off is None else 0.0
        rounded = MatmulRate("tf32", spent.places)
        autocast = partial(with_autocast, context, step, where)
        if weights is not None:
            lower = MatmulRate(precision, spent.places, elementwise=True, weights=True)
            autocast = partial(weights.fix, f"Keep the weights in {half(context)}")
        elif option is not None:
            autocast = partial(switch_on, option, _TITLE)
        elif choice is not None:
            autocast = partial(choice.fix, _TITLE)
        what = "convolution" if only else "matrix product"
        yield context.draft(
            place,
            "{products} "
            + what
            + (" a step runs" if calls == 1 else "s a step run")
            + (" in TF32" if rounds else " in float32")
            + (", without the tensor cores" if tf32 else ", not in bfloat16")
            + ": {spent} ({share} of the step)."
            + (" What is computed between them, {beside}, would move fewer bytes." if beside else "")
            + (_passed(own) if isinstance(own, Choice) else ""),
            {
                "products": count(f"float32 {what}s", calls, "calls"),
                **context.spent(f"float32 {what}s", total),
                **({"beside": ms("between them", beside)} if beside else {}),
            },
            cause=hottest.place,
            cost_ms=total,
            saving_ms=min(gained, total),
            change=rounded if off is not None else lower,
            # Autocast adds a cast to each weight, which costs the host more than TF32 does.
            alternative=None if not tf32 else lower if off is not None else rounded,
            severity="hint" if rounds else None,
            hides=("float32", lower) if off is None and not rounds else None,
            fixes=[partial(_switch_on, off), autocast]
            if off is not None
            else [autocast, *([partial(_allow_tf32, context)] if tf32 else [])],
        )


def _between(context: Context, where: Region | None) -> dict[tuple[str, int], float]:
    """Lines that would compute in 16 bits under an autocast that is not there yet, with the share of their
    bytes that is left; empty where none can be put there."""
    if context.autocast or (where is None and not context.sites(Framework.KIND)):
        return {}
    return lowering(context, where).bytes_left


def _beside(context: Context, between: Iterable[tuple[str, int]]) -> float:
    """Device time of what else these lines compute; 0 where it is too little to report."""
    found = sum(
        op.device_ms
        for cost in context.costs(between)
        for op in cost.ops
        if not _is_convolution(op) and not _is_float32(op.name, op.dtypes) and not op.name.startswith(_APART)
    )
    return found if context.matters(found) else 0.0


def _passed(own: Choice) -> str:
    """The last sentence of the message, where the command line chooses float32; else ""."""
    return f" The command line passes `{own.passed}`, which chooses float32." if own.passed else ""


def _switch_on(off: Said) -> Fix:
    value = "True" if off.setting.value is False else '"high"'
    title = "Allow TF32 for float32 matrix products"
    return said_instead(off, value, title, "the line that switches TF32 off does not name the value")


def _is_float32(name: str, dtypes: tuple[str, ...]) -> bool:
    return name in MATMULS and bool(dtypes) and dtypes[0] == "float"


def _is_convolution(op: Op) -> bool:
    return "convolution" in op.name and "float" in op.dtypes[:2]


def _convolved(cost: LineCost) -> float:
    """Device time of float32 convolutions, forward and backward."""
    return min(sum(op.device_ms for op in cost.ops if _is_convolution(op)), cost.step_ms)


def _in_float32(cost: LineCost, rounds: bool) -> float:
    """Device time of float32 products. Of a line whose kernels all use tensor cores none, unless TF32 may be
    used (``rounds``)."""
    known = [kernel.tensor_cores for kernel in cost.kernels if kernel.tensor_cores is not None]
    if known and all(known) and not rounds:
        return 0.0
    # The math implementation of attention computes in float32, whatever it is given.
    own = _BATCHED if runs_math(cost) else ()
    # Products with a sparse matrix have no such units: they wait for memory.
    sparse = sum(kernel.device_ms for kernel in cost.kernels if _SPARSE in kernel.name)
    products = (op for op in cost.ops if _is_float32(op.name, op.dtypes) and op.name not in own)
    return max(0.0, min(sum(op.device_ms for op in products) - sparse, cost.step_ms))


def _allow_tf32(context: Context) -> Fix:
    capability = context.device.capability
    if capability is None or tuple(capability) < _TF32:
        raise Refused("the device does not support TF32")
    return set_in_script(
        context,
        "torch.set_float32_matmul_precision",
        '{name}("high")',
        "Allow TF32 for float32 matrix products",
        unless=("set_float32_matmul_precision", "allow_tf32"),
        reason="the script already sets the precision of matrix products",
    )
