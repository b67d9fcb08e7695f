"""scaled_dot_product_attention runs a slower kernel than it could, because of its arguments.

## What it does

Finds calls of `F.scaled_dot_product_attention` for which torch cannot use its fastest kernels:

- It falls back to its math implementation, which stores the whole score matrix. The usual reasons are
  inputs without a dimension for heads (3-D), batch or head sizes that only match by broadcasting, fewer heads
  of keys and values than of queries in float32 (`enable_gqa`, which transformers passes for Llama, Mistral
  and Qwen: flash attention takes them in 16 bits only), and fused kernels that the script switches off.
- It computes in float32, which flash attention does not take, though the model's products run in 16 bits.
  Rotary embeddings do that, if their tables are float32: `x * cos` of a bfloat16 `x` is float32.
- A causal mask is passed as a tensor. On a GPU flash attention takes no mask, so a slower kernel runs, and it
  computes the hidden half of the scores too. So does the one on a CPU. `nn.MultiheadAttention` and
  `nn.TransformerEncoderLayer` pass their mask on, unless `is_causal=True`
  says what it is (they want the mask all the same).
- cuDNN's attention makes a plan for each new size of its inputs, in milliseconds of host time. While a text
  is generated, or where batches have many lengths, nearly each step has a new size.

## Why is this slow

The math implementation reads and writes a matrix of sequence length times sequence length several times,
where a fused kernel never stores it. In float32 a fused kernel needs several times as long as flash attention
in bfloat16. With `is_causal=True` the kernel also skips the hidden half.

## Example

```python
#> steps step_ms=50
import torch
import torch.nn.functional as F

class Attention(torch.nn.Module):
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return F.scaled_dot_product_attention(q, k, v)
        #^ found; cost step_ms=30 device_ms=30; op aten::_scaled_dot_product_attention_math count=1
        #^ op aten::bmm count=2 device_ms=30 shapes=[[16,2048,64],[16,64,2048]] dtypes=c10::Half,c10::Half
        #^ op aten::scaled_dot_product_attention shapes=[[16,99,64],[16,99,64],[16,99,64]] dtypes=c10::Half
```

## Use instead

```python
import torch
import torch.nn.functional as F

class Attention(torch.nn.Module):
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return F.scaled_dot_product_attention(q.unsqueeze(1), k.unsqueeze(1), v.unsqueeze(1)).squeeze(1)
```

## Example

The tables of a rotary embedding make queries and keys float32:

```python
#> steps step_ms=50
import torch
import torch.nn.functional as F

def attend(x, rotary):
    q, k, v = project(x)
    #^ cost step_ms=10 device_ms=10; op aten::mm count=2 device_ms=10 dtypes=c10::BFloat16,c10::BFloat16
    q, k = rotary(q), rotary(k)
    return F.scaled_dot_product_attention(q, k, v.to(q.dtype))
    #^ found; cost step_ms=30 device_ms=30
    #^ op aten::_scaled_dot_product_efficient_attention device_ms=30 shapes=[[9,4],[9,4],[9,4]] dtypes=float
```

## Use instead

```python
import torch
import torch.nn.functional as F

def attend(x, rotary):
    q, k, v = project(x)
    q, k = rotary(q), rotary(k)
    return F.scaled_dot_product_attention(q.bfloat16(), k.bfloat16(), v.to(q.dtype).bfloat16()).float()
```

Or make the tables bfloat16, and leave the call as it is.

## Example

The keys get longer with each token, and cuDNN plans for each length:

```python
#> steps step_ms=45; totals idle_ms=38
import torch
import torch.nn.functional as F

def attend(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)
    #^ found; cost step_ms=39 cpu_ms=40 device_ms=1 idle_ms=38 launches=16
    #^ op aten::_scaled_dot_product_cudnn_attention count=4 cpu_ms=20 shapes=[[8,12,1,64],[8,12,317,64]]
    #^ op aten::_scaled_dot_product_cudnn_attention count=4 cpu_ms=20 shapes=[[8,12,1,64],[8,12,318,64]]
```

## Use instead

```python
import torch
import torch.nn.functional as F

torch.backends.cuda.enable_cudnn_sdp(False)

def attend(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)
```

## Example

Several heads of queries share one of keys, in float32:

```python
#> steps step_ms=50
import torch.nn.functional as F

def attend(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    #^ found; cost step_ms=30 device_ms=30; op aten::_scaled_dot_product_attention_math count=1
    #^ op aten::bmm count=2 device_ms=30 shapes=[[64,512,64],[64,64,512]] dtypes=float,float
    #^ op aten::scaled_dot_product_attention shapes=[[4,16,512,64],[4,2,512,64],[4,2,512,64]] dtypes=float
```

## Use instead

`torch.autocast("cuda", torch.bfloat16)` around the forward pass, or weights in bfloat16.

## Fix safety

Unsafe: another kernel adds in another order, so results differ by rounding. Inputs in 16 bits round each
number first, as the products before them do. The entries of a mask are read
in one step: if the masks of other steps hide something else, the results differ by more. If each sample has a
mask of its own, no edit is offered.

## References

- [scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
- The conditions of the fused kernels: `aten/src/ATen/native/transformers/sdp_utils_cpp.h` in torch's sources
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.change import Fuse, MatmulRate, Replace, Scale
from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, Source, count
from warpline.rulekit.fused_attention import (
    NAME,
    Call,
    attention_call,
    attention_share,
    calls_of,
    expanded,
    half_of_products,
    in_float32,
    is_causal,
    made_causal,
    may_be_none,
    module_call,
    planned_sizes,
    planning_ms,
    plans_mostly,
    runs_math,
)
from warpline.rulekit.origins import Origin, argument_origin, unpacked_origin
from warpline.rulekit.saving import less_device_time
from warpline.rulekit.settings import set_in_script
from warpline.rulekit.terms import atom
from warpline.wire.precision import OF_DTYPE

_METRIC = "attention"
#: Switches of fused kernels, as settings name them.
_SWITCHES = ("flash_sdp", "mem_efficient_sdp")
#: What the math implementation hides weights with.
_DROPOUTS = ("aten::dropout", "aten::native_dropout")
#: Types of 16 bits as torch writes them, and its methods that cast to them, by their names in a trace.
_SPELLED = {"c10::BFloat16": ("bfloat16", "bfloat16"), "c10::Half": ("float16", "half")}
_WORDS = {
    "no heads": "fused kernels need a dimension for heads, and the inputs have three dimensions",
    "broadcast": "fused kernels need equal batch and head sizes, and the inputs only match by broadcasting",
    "switched off": "fused kernels are switched off",
    "grouped": "the fused kernels for float32 want as many heads of keys and values as of queries",
    "float64": "fused kernels do not compute in float64",
    "": "none of the fused kernels accepts these inputs",
}


class SlowAttentionKernel(Rule):
    area = "fusion"
    covers = ("launch-bound",)  # the host plans, and launches little

    def find(self, context: Context) -> Iterator[Draft]:
        half = half_of_products(context.profile.lines)
        for cost in context.profile.lines:
            if context.matters(planned := min(planning_ms(cost), context.idle_ms(), cost.step_ms)):
                yield _planned(context, cost, planned)
                continue
            calls = calls_of(cost)
            if not calls:
                continue
            share = attention_share(cost)
            spent = cost.step_ms * share
            if not context.matters(spent):
                continue
            if runs_math(cost):
                if context.on_gpu or _has_kernel_on_host(context, cost, calls):
                    yield _fallback(context, cost, calls, share)
            elif context.on_gpu and half and in_float32(cost):
                yield _single(context, cost, calls, half, share)
            elif all(call.mask for call in calls) and is_causal(context, cost, calls):
                yield _causal(context, cost, share)


def _has_kernel_on_host(context: Context, cost: LineCost, calls: list[Call]) -> bool:
    """Whether the fused kernel for CPUs, which has no dropout, would take the inputs once they are in its
    form."""
    dropped = any(op.name in _DROPOUTS for op in cost.ops)
    return not dropped and _reason(context, calls) in ("no heads", "broadcast", "switched off")


def _planned(context: Context, cost: LineCost, spent: float) -> Draft:
    place = cost.place
    return context.draft(
        place,
        "cuDNN's attention makes a plan for each new size of its inputs ({sizes} in the captured steps): the "
        "device is idle for {spent} ({share}) meanwhile. The other fused kernels need none. A size that "
        "comes again has its plan already.",
        {
            "sizes": count("sizes planned for", planned_sizes(cost)),
            **context.spent("planning", spent),
        },
        cost_ms=spent,
        # Of one step in five a replay knows nothing: it gives each the host time of the median step.
        change=Scale((place,), host=max(0.0, 1 - spent / max(cost.cpu_ms, spent)), at_most=True)
        if plans_mostly(cost)
        else None,
        fixes=[partial(_without_cudnn, context)],
        once="planning",
    )


def _without_cudnn(context: Context) -> Fix:
    return set_in_script(
        context,
        "torch.backends.cuda.enable_cudnn_sdp",
        "{name}(False)",
        "Leave attention to the other fused kernels",
        unless=("enable_cudnn_sdp", "sdpa_kernel"),
        reason="the script chooses the attention kernels itself: remove cuDNN's there",
    )


def _fallback(context: Context, cost: LineCost, calls: list[Call], share: float) -> Draft:
    place, spent = cost.place, cost.step_ms * share
    reason = _reason(context, calls)
    options = [reason.replace(" ", "-")] if reason in ("no heads", "broadcast", "switched off") else []
    change = Fuse((place,), shares=(share,))
    return context.draft(
        place,
        "Attention falls back to torch's math implementation, which takes {spent} a step ({share}): "
        f"{_WORDS[reason]}.",
        context.spent(_METRIC, spent),
        cost_ms=spent,
        change=Replace("fused_attention", (place,), change, tuple(options), (share,)) if options else change,
        fixes=[partial(_mended, context, cost, calls, reason)],
    )


def _reason(context: Context, calls: list[Call]) -> str:
    if all(call.headless for call in calls):
        return "no heads"
    if all(call.broadcast for call in calls):
        return "broadcast"
    if all(call.dtype == "double" for call in calls):
        return "float64"
    if all(call.grouped and call.dtype == "float" for call in calls):
        return "grouped"
    last = {setting.name: setting for setting in context.profile.facts.settings}
    if any(name in last and last[name].value is False for name in _SWITCHES):
        return "switched off"
    return ""


def _mended(context: Context, cost: LineCost, calls: list[Call], reason: str) -> Fix:
    if reason == "grouped":
        raise Refused("compute it in bfloat16 or float16, where flash attention shares heads (`enable_gqa`)")
    source, call = attention_call(context, cost)
    given = [source.argument(call, name, at) for at, name in enumerate(("query", "key", "value"))]
    arguments = [arg for arg in given if arg is not None]
    if len(arguments) < 3:
        raise Refused("pass query, key and value in a form that a fused kernel accepts")
    if any(source.code(arg.value).endswith(".unsqueeze(1)") for arg in arguments):
        raise Refused("the code changed since the run")
    edits = Edits(source)
    if reason == "no heads":
        mask = source.argument(call, "attn_mask", 3)
        ranks = {len(one.mask) for one in calls}
        if max(ranks) > 2:  # else it broadcasts as before
            if mask is None or ranks != {3} or may_be_none(source, mask.value):
                raise Refused("give the inputs and the mask a dimension for heads with `.unsqueeze(1)`")
            arguments.append(mask)
        new = {arg.value: f"{atom(source.code(arg.value))}.unsqueeze(1)" for arg in arguments}
        edits.replace(call, f"{source.rewritten(call, new)}.squeeze(1)")
        return edits.fix("Add a dimension for heads", "unsafe")
    if reason == "broadcast":
        for arg, text in expanded(source, arguments, calls).items():
            edits.replace(arg, text)
        return edits.fix("Expand the inputs to equal sizes", "unsafe")
    if reason == "switched off":
        raise Refused("switch the fused kernels on, if results may differ by rounding")
    raise Refused(
        "run the call once in `with torch.nn.attention.sdpa_kernel(SDPBackend.FLASH_ATTENTION)`: torch "
        "then warns why that kernel cannot run"
    )


def _single(context: Context, cost: LineCost, calls: list[Call], half: str, share: float) -> Draft:
    place, spent = cost.place, cost.step_ms * share
    precision, (dtype, method) = OF_DTYPE[half], _SPELLED[half]
    return context.draft(
        place,
        f"Attention gets float32 inputs, though most matrix products run in {dtype}. Flash attention takes "
        "none, so a slower kernel runs: {spent} a step ({share}).",
        context.spent(_METRIC, spent),
        cost_ms=spent,
        change=Replace("fused_attention", (place,), MatmulRate(precision, (place,)), (precision,), (share,)),
        fixes=[partial(_in_half, context, cost, calls, dtype, method)],
    )


def _in_half(context: Context, cost: LineCost, calls: list[Call], dtype: str, method: str) -> Fix:
    source, call = attention_call(context, cost)
    given = [source.argument(call, name, at) for at, name in enumerate(("query", "key", "value"))]
    arguments = [arg.value for arg in given if arg is not None]
    if len(arguments) < 3 or source.unpacked(call):
        raise Refused(f"cast query, key and value to {dtype}")
    if any(call.mask and call.mask_dtype != "bool" for call in calls):
        raise Refused(f"cast query, key, value and the mask to {dtype}")
    if any(source.code(value).endswith((f".{method}()", f"{dtype})")) for value in arguments):
        raise Refused("the code changed since the run")
    new = {value: f"{atom(source.code(value))}.{method}()" for value in arguments}
    edits = Edits(source).replace(call, f"{source.rewritten(call, new)}.float()")
    return edits.fix(f"Attend in {dtype}", "unsafe")


def _causal(context: Context, cost: LineCost, share: float) -> Draft:
    place, spent = cost.place, cost.step_ms * share
    # Half of the scores are hidden; that flash attention is faster too is for the trial to show.
    otherwise = less_device_time({cost: spent}, spent / 2, assumed=True)
    held = _unpacked_mask(context, cost)
    slower = "flash attention cannot run, and " if context.on_gpu else ""
    return context.draft(
        place if held is None else held.place,
        f"A causal mask is passed as a tensor: {slower}the hidden half of the scores is computed as well. "
        "That takes {spent} a step ({share}).",
        context.spent(_METRIC, spent),
        cause=place,
        cost_ms=spent,
        change=Replace("fused_attention", (place,), otherwise, ("causal",), (share,)),
        fixes=[partial(_without_mask, context, cost)],
    )


def _unpacked_mask(context: Context, cost: LineCost) -> Origin | None:
    """The mask in a mapping that the call unpacks."""
    source = context.source(cost.file)
    call = source.call(cost.line, NAME)
    if call is None:
        return None
    given = source.argument(call, "attn_mask", 3)
    return argument_origin(context, source, call, "attn_mask") if given is None else None


def _read_elsewhere(context: Context, held: Origin) -> bool:
    """Whether something else may read the mask of that mapping: by its key, or by unpacking the mapping."""
    written = sum(
        source.literal(node) == "attn_mask"
        for source in context.sources()
        for node in source.nodes(cst.SimpleString)
    )
    unpacking = 0
    for source, call in context.calls():
        found = [unpacked_origin(context, source, value, "attn_mask") for value in source.unpacked(call)]
        unpacking += any(one is not None and one.node is held.node for one in found)
    return written > 1 or unpacking > 1


def _told_causal(source: Source, call: cst.Call, mask: cst.BaseExpression) -> Fix:
    """``is_causal=True`` beside the mask: a module of torch's then leaves it out, but wants to have it."""
    if isinstance(mask, (cst.Name, cst.Attribute)):
        told = f"{source.code(mask)} is not None"
    elif isinstance(mask, cst.Subscript) or source.name(getattr(mask, "func", mask)).startswith("torch."):
        told = "True"
    else:
        raise Refused("pass `is_causal=True` besides the mask")
    return Edits(source).set_argument(call, "is_causal", told).fix("Use is_causal=True", "unsafe")


def _without_mask(context: Context, cost: LineCost) -> Fix:
    alike = all(math.prod(one.mask[:-2]) == 1 for one in calls_of(cost))
    if alike and (in_module := module_call(context, cost)) is not None:
        return _told_causal(*in_module)
    source, call = attention_call(context, cost)
    held = _unpacked_mask(context, cost)
    entry = held.source.parent(held.node) if held is not None else None
    always = held is not None and not isinstance(held.node, cst.IfExp)
    told = isinstance(entry, cst.DictElement) and always and len(source.unpacked(call)) == 1
    mask = source.argument(call, "attn_mask", 3)
    causal = source.argument(call, "is_causal", 5)
    if causal is not None or not (told or (mask is not None and not source.unpacked(call))):
        raise Refused("pass `is_causal=True` instead of the mask")
    if told and held is not None and _read_elsewhere(context, held):
        raise Refused("pass `is_causal=True` instead of the mask, which other code reads as well")
    if sum(arg.keyword is None for arg in call.args) > 4:
        raise Refused("pass `is_causal=True` instead of the mask, and the later arguments by name")
    calls = calls_of(cost)
    if any(math.prod(one.mask[:-2]) > 1 for one in calls) and not made_causal(context, cost, calls):
        raise Refused(
            "each sample has its own mask, and in another batch it may hide padding too: pass "
            "`is_causal=True` if it never does"
        )
    edits = Edits(held.source if held is not None and told else source)
    if told and entry is not None:
        edits.replace(entry, '"is_causal": True')
    elif mask is not None:
        edits.replace(mask, "is_causal=True")  # with the brackets that it may be in
    return edits.fix("Use is_causal=True", "unsafe")
