"""What ``torch.vmap`` cannot do at once for all rounds: fused attention on a CPU. Rounds become samples."""

from __future__ import annotations

from typing import Any, List

import torch

_NAME = "_scaled_dot_product_flash_attention_for_cpu"
_SAMPLES = 4  # dimensions of a mask for each sample
_kept: List[Any] = []  # a library's functions go with it


def batch_attention() -> None:
    """Tell ``vmap`` how to compute the attention of several rounds, once in a process."""
    operator = getattr(torch.ops.aten, _NAME, None)
    if operator is None or _kept:
        return
    functorch = torch._C._functorch
    batched = torch._C.DispatchKeySet(torch._C.DispatchKey.FuncTorchBatched)

    def attention(query: Any, key: Any, value: Any, *more: Any, attn_mask: Any = None, **named: Any) -> Any:
        level, size = functorch.maybe_current_level(), query.shape[0]
        given = [functorch._unwrap_batched(one, level) for one in (query, key, value)]
        mask, of_rounds = attn_mask, None
        if attn_mask is not None:
            mask, of_rounds = functorch._unwrap_batched(attn_mask, level)
        rounds = next(one.shape[at] for one, at in [*given, (mask, of_rounds)] if at is not None)

        def every(one: Any, at: Any) -> Any:
            return one.expand(rounds, *one.shape) if at is None else one.movedim(at, 0)

        if mask is not None and (of_rounds is not None or (mask.dim() == _SAMPLES and len(mask) > 1)):
            mask = every(mask, of_rounds)
            mask = mask if mask.dim() > _SAMPLES else mask[:, None, None]
            mask = mask.expand(rounds, size, *mask.shape[2:]).flatten(0, 1)
        with torch._C._ExcludeDispatchKeyGuard(batched):
            inputs = [every(*one).flatten(0, 1) for one in given]
            found = operator(*inputs, *more, attn_mask=mask, **named)
            return tuple(functorch._add_batch_dim(one.unflatten(0, (rounds, -1)), 0, level) for one in found)

    library = torch.library.Library("aten", "IMPL")
    library.impl(_NAME, attention, "FuncTorchBatched")
    _kept.append(library)
