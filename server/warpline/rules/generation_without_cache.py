"""Each new token sends the whole sequence through the model again.

## What it does

Finds attention without a backward pass, if query and key have the same length and that length grows by one
(or by a piece that is joined to a tensor) from call to call. A model with a cache of keys and values gets
only the new token, so its query has the length one. It reports nothing if the record shows attention without
a causal mask, because then every new token changes the keys and values of all earlier ones.

The cost of a call for one token is unknown (reading the weights and launching the kernels remain), so the
gain is an upper bound.

## Why is this slow

The keys and values of earlier tokens do not change, and are computed again for each new token. The work for
`n` tokens grows with `n * n` instead of `n`, in attention even with `n * n * n`.

## Example

```python
import torch

@torch.inference_mode()
def write(model, ids, count):
    for _ in range(count):
        scores = model(ids)[:, -1]
        #^ found; cost step_ms=30 device_ms=30
        #^ op aten::linear shapes=[[8,400,512],[512,512]] count=0.2 device_ms=9
        #^ op aten::linear shapes=[[8,401,512],[512,512]] count=0.2 device_ms=9
        #^ op aten::linear shapes=[[8,402,512],[512,512]] count=0.2 device_ms=9
        #^ op aten::scaled_dot_product_attention shapes=[[8,8,400,64],[8,8,400,64]] count=0.2 device_ms=1
        #^ op aten::scaled_dot_product_attention shapes=[[8,8,401,64],[8,8,401,64]] count=0.2 device_ms=1
        #^ op aten::scaled_dot_product_attention shapes=[[8,8,402,64],[8,8,402,64]] count=0.2 device_ms=1
        ids = torch.cat([ids, scores.argmax(-1, keepdim=True)], dim=1)
    return ids
```

## Use instead

Keep each layer's keys and values, and give the model only the new token: `use_cache=True` and
`past_key_values` in Transformers; in your own model, tensors of the final length (`keys[:, :, at : at + 1] =
k`); the new token's query attends to their filled part.

## Fix safety

No edit but of transformers' `use_cache`: the model has to take and return the cache. The values are the same
up to rounding. With a cache of one size (`cache_implementation="static"`) transformers compiles decoding on a
GPU: once, and again for another batch size and for each prompt that is longer than all before.

## References

- [Caching in Transformers](https://huggingface.co/docs/transformers/cache_explanation)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from warpline.model.profile import MOST_OPS_A_LINE, LineCost
from warpline.rulekit import Context, Draft, Rule, count
from warpline.rulekit.decoding import Growing, growing, loop_call
from warpline.rulekit.growing import LEAST_LENGTHS
from warpline.rulekit.saving import Spent


class GenerationWithoutCache(Rule):
    area = "fusion"

    def find(self, context: Context) -> Iterator[Draft]:
        found = growing(context)
        if found is None:
            return
        spent = Spent(context.profile.lines, partial(_growing_ms, found))
        whole = spent.total
        if not context.matters(whole):
            return
        again = 1 - found.piece / found.mean
        cause = spent.hottest.place
        yield context.draft(
            loop_call(context, found.places) or cause,
            "Each call of the model computes the whole sequence again, {length} positions on average, to add "
            "{piece}. What grows with the sequence takes {spent} a step ({share}).",
            {
                "length": count("positions", round(found.mean)),
                "piece": count("new positions", found.piece),
                **context.spent("growing sequence", whole),
            },
            cause=cause,
            cost_ms=whole,
            saving_ms=whole * again,
            change=spent.without(context, again),
            fixes=["keep the keys and values of each layer, and give the model only the new positions"],
        )


def _growing_ms(found: Growing, cost: LineCost) -> float:
    """Device time of the line's operators that ran with other sizes for each length."""
    sizes: dict[str, set[tuple[tuple[int, ...], ...]]] = {}
    for op in cost.ops:
        sizes.setdefault(op.name, set()).add(op.shapes)
    # Of many shapes only the costliest are kept, some of each operator: they stand for the others.
    whole = len(cost.ops) < MOST_OPS_A_LINE
    least = len(found.lengths) if whole else LEAST_LENGTHS
    own = sum(op.device_ms for op in cost.ops if op.phase == "forward" and len(sizes[op.name]) >= least)
    kept = sum(op.device_ms for op in cost.ops)
    return min(own, cost.device_ms) if whole or not kept else cost.device_ms * own / kept
