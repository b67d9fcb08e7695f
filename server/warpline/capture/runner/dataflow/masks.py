"""Finds masks of fused attention that are causal (hide exactly the later positions), from their values."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from ....wire.dataflow import Masked

#: Operators with a mask, and where among their arguments it is. Those of a device take a mask of numbers.
OPERATORS = {
    "scaled_dot_product_attention": 3,  # in inference mode
    "_scaled_dot_product_efficient_attention": 3,
    "_scaled_dot_product_cudnn_attention": 3,
    "_scaled_dot_product_fused_attention_overrideable": 3,
    "_scaled_dot_product_flash_attention_for_cpu": 99,  # by name only
}
#: Most calls to examine (a layer has one), and most entries of a mask. Chosen, not fitted.
MOST, LARGEST = 256, 1 << 26
#: Masks of shorter sequences are not recorded.
SHORTEST = 8
#: A number this low or lower hides a score.
GONE = -1e4


class Masks:
    """The step's calls of fused attention with a mask. Masks are checked on the device at once; the results
    are read after the step, since reading waits for the device."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        overloads = {getattr(torch.ops.aten, name, None): at for name, at in OPERATORS.items()}
        self._where: Dict[Any, int] = {one.default: at for one, at in overloads.items() if one is not None}
        self._kept: List[Tuple[int, Optional[Any]]] = []  # operator, whether its mask is causal

    def add(self, function: Any, arguments: Tuple[Any, ...], named: Dict[str, Any], operator: int) -> None:
        """Note a call, the ``operator``-th of the step."""
        at = self._where.get(function)
        if at is None or len(self._kept) >= MOST:
            return
        mask = arguments[at] if len(arguments) > at else named.get("attn_mask", named.get("attn_bias"))
        if mask is not None:
            try:
                causal = self._causal(mask)
            except Exception:  # such as a device that is out of memory
                causal = None
            self._kept.append((operator, causal))

    def _causal(self, mask: Any) -> Optional[Any]:
        """Whether a mask is causal, as a scalar tensor on its device (reading it here would wait). None if it
        cannot be causal."""
        torch = self._torch
        if mask.dim() < 2 or mask.shape[-1] != mask.shape[-2] or mask.shape[-1] < SHORTEST:
            return None
        for dim in range(mask.dim() - 2):
            if mask.stride(dim) == 0:  # the same for all heads, as a mask of two dimensions comes here
                mask = mask.narrow(dim, 0, 1)
        if mask.numel() > LARGEST or (mask.is_cuda and torch.cuda.is_current_stream_capturing()):
            return None  # what is computed while a graph is captured becomes a part of the graph
        later = torch.ones(mask.shape[-2:], dtype=torch.bool, device=mask.device).triu_(1)
        if mask.dtype == torch.bool:
            return (mask != later).all()
        return torch.where(later, mask <= GONE, mask == 0).all()

    def masked(self) -> Tuple[Masked, ...]:
        """The result for each call. Waits for the device."""
        found = tuple(Masked(at, causal is not None and bool(causal)) for at, causal in self._kept)
        self._kept.clear()
        return found
