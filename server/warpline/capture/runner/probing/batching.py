"""What ``torch.vmap`` cannot do at once for all rounds, on a CPU: fused attention, and layers of an LSTM.
Rounds become samples."""

from __future__ import annotations

from typing import Any, Callable, Dict, List

import torch

_ATTENTION = "_scaled_dot_product_flash_attention_for_cpu"
_LAYER = "mkldnn_rnn_layer"
_SAMPLES = 4  # dimensions of a mask for each sample
_kept: List[Any] = []  # a library's functions go with it


def batch_on_cpu() -> None:
    """Tell ``vmap`` how to compute these for several rounds, once in a process."""
    if _kept:
        return
    library = torch.library.Library("aten", "IMPL")
    for name, batched in _BATCHED.items():
        operator = getattr(torch.ops.aten, name, None)
        if operator is not None:
            library.impl(name, batched(operator), "FuncTorchBatched")
    _kept.append(library)


def _unwrapped(*tensors: Any) -> List[Any]:
    """Each tensor with the dimension of its rounds, None where all rounds have it in common."""
    level = torch._C._functorch.maybe_current_level()
    return [torch._C._functorch._unwrap_batched(one, level) for one in tensors]


def _wrapped(tensor: Any, at: int) -> Any:
    return torch._C._functorch._add_batch_dim(tensor, at, torch._C._functorch.maybe_current_level())


def _rounds(given: List[Any]) -> int:
    return int(next(one.shape[at] for one, at in given if at is not None))


def _every(found: Any, rounds: int) -> Any:
    one, at = found
    return one.expand(rounds, *one.shape) if at is None else one.movedim(at, 0)


def _plainly() -> Any:
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.FuncTorchBatched)
    return torch._C._ExcludeDispatchKeyGuard(keys)


def _attention(operator: Any) -> Callable[..., Any]:
    def attention(query: Any, key: Any, value: Any, *more: Any, attn_mask: Any = None, **named: Any) -> Any:
        size = query.shape[0]
        given = _unwrapped(query, key, value)
        mask, of_rounds = attn_mask, None
        if attn_mask is not None:
            ((mask, of_rounds),) = _unwrapped(attn_mask)
        rounds = _rounds([*given, (mask, of_rounds)])
        if mask is not None and (of_rounds is not None or (mask.dim() == _SAMPLES and len(mask) > 1)):
            mask = _every((mask, of_rounds), rounds)
            mask = mask if mask.dim() > _SAMPLES else mask[:, None, None]
            mask = mask.expand(rounds, size, *mask.shape[2:]).flatten(0, 1)
        with _plainly():
            inputs = [_every(one, rounds).flatten(0, 1) for one in given]
            found = operator(*inputs, *more, attn_mask=mask, **named)
            return tuple(_wrapped(one.unflatten(0, (rounds, -1)), 0) for one in found)

    return attention


def _layer(operator: Any) -> Callable[..., Any]:
    """The samples are the second dimension of what goes in and comes out, the first of the states."""

    def layer(series: Any, *more: Any) -> Any:
        weights, (state, cell), rest = more[:4], more[4:6], more[6:]
        given = _unwrapped(series, state, cell)
        rounds = _rounds(given)
        with _plainly():
            series, *states = (
                _every(one, rounds).movedim(0, dim).flatten(dim, dim + 1)
                for one, dim in zip(given, (1, 0, 0))
            )
            *found, space = operator(series, *weights, *states, *rest)
            results = (one.unflatten(dim, (rounds, -1)) for one, dim in zip(found, (1, 0, 0)))
            return (*(_wrapped(one, dim) for one, dim in zip(results, (1, 0, 0))), space)

    return layer


_BATCHED: Dict[str, Callable[[Any], Callable[..., Any]]] = {_ATTENTION: _attention, _LAYER: _layer}
