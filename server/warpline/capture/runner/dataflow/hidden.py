"""Counts the positions of a batch that masks hide, of attention and of losses, after the step.

Batches of numbers (speech, time series, features) have no token for padding, but a mask of it.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from ....wire.dataflow import TENSOR, Padding
from .masks import GONE, OPERATORS
from .padding import SHORTEST, runs_at_end

#: Largest number of masks kept until the end of the step. Chosen, not fitted.
MOST = 16
#: Largest number of entries of a loss whose mask is looked at. Chosen, not fitted: larger tensors, such as
#: products of logits, are no positions of sequences, and flags of them would take much of the memory.
LARGEST = 1 << 24
_FUSED, _FILLED, _FACTOR, _ADDED, _CHOSEN = "attention", "masked_fill", "mul", "add", "where"
_TARGETS = {"nll_loss_forward": 4, "nll_loss2d_forward": 4}  # the place of the class to ignore


class Hidden:
    """Keeps for each mask the positions that count for nothing, as flags of (rows, columns). They are made on
    the device at once, and read when the step is over, since reading waits for the device."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        named = {name: (_FUSED, at) for name, at in OPERATORS.items()}
        named.update({one: (kind, 1) for kind in (_FILLED, _FACTOR, _ADDED) for one in (kind, kind + "_")})
        named.update({name: (name, 1) for name in _TARGETS})
        named[_CHOSEN] = (_CHOSEN, 0)
        self.readers: Dict[Any, Tuple[str, int]] = {}  # operators, and where among their arguments a mask is
        for name, found in named.items():
            for overload in ("default", "Tensor", "Scalar", "self"):
                one = getattr(getattr(torch.ops.aten, name, None), overload, None)
                if one is not None:
                    self.readers[one] = found
        self._kept: List[Tuple[Any, bool, int, int]] = []  # flags, of a loss's entries, value, site

    def add(
        self,
        function: Any,
        arguments: Tuple[Any, ...],
        named: Dict[str, Any],
        given: List[Any],
        site: int,
        rows: Any,
    ) -> None:
        """Note a call of one of ``readers``. ``given``: its arguments as recorded; ``rows(tensor)``: the
        shape of two dimensions that a flat tensor had."""
        kind, at = self.readers[function]
        if len(self._kept) >= MOST or len(arguments) < 2:
            return
        whole = arguments[0]
        if kind == _FACTOR and _size(arguments[1]) > _size(whole):
            at, whole = 0, arguments[1]
        elif kind == _CHOSEN:
            whole = arguments[1]
        if len(arguments) > at:
            mask, text = arguments[at], given[at]
        else:
            by_name = given[-1] if named else {}
            name = next((one for one in ("attn_mask", "attn_bias") if one in named), "")
            mask, text = named.get(name), by_name.get(name)
        if not isinstance(mask, self._torch.Tensor) or mask.dim() == 0:
            return
        if mask.is_cuda and self._torch.cuda.is_current_stream_capturing():
            return  # what is computed while a graph is captured becomes a part of the graph
        value = int(text[len(TENSOR) :])
        if any(known == value for _, _, known, _ in self._kept):
            return
        if kind in _TARGETS:
            # In two dimensions it is of pictures, or of one line each.
            shape = rows(mask) if mask.dim() == 1 else mask.shape[::2] if mask.shape[1] == 1 else None
            if shape is not None and len(arguments) > _TARGETS[kind]:
                self._keep((mask == arguments[_TARGETS[kind]]).reshape(shape), True, value, site)
            return
        if (kind == _FILLED and not _hides(arguments[2])) or (kind == _CHOSEN and _size(arguments[2]) != 1):
            return
        of_loss = mask.shape == whole.shape
        if of_loss and kind != _FUSED and (kind == _ADDED or mask.dim() != 2 or mask.numel() > LARGEST):
            return
        if mask.dim() == whole.dim() and mask.shape[0] == whole.shape[0]:
            gone = self._gone(mask, kind)
            if gone is not None and kind == _CHOSEN:
                gone = gone & ((arguments[2] <= GONE) | (arguments[2] == 0))
            self._keep(gone, of_loss and kind == _FACTOR, value, site)

    def _gone(self, mask: Any, kind: str) -> Optional[Any]:
        """Flags of (rows, columns): what is hidden from all queries, heads and channels of a row."""
        if mask.dtype == self._torch.bool and kind == _ADDED:
            return None
        own = [dim for dim in range(1, mask.dim()) if mask.shape[dim] > 1 and mask.stride(dim) != 0]
        if not own or not mask.stride(0):
            return None
        for dim in range(1, mask.dim()):
            if mask.stride(dim) == 0:
                mask = mask.narrow(dim, 0, 1)
        if mask.dtype == self._torch.bool:
            gone, plain = mask if kind == _FILLED else ~mask, None
        elif kind == _FACTOR:
            gone, plain = mask == 0, mask == 1
        else:
            gone, plain = mask <= GONE, mask == 0
        if plain is not None:  # other numbers: no mask
            gone = gone & (gone | plain).all()
        for dim in own[:-1]:
            gone = gone.all(dim, keepdim=True)
        return gone.reshape(mask.shape[0], -1)

    def _keep(self, gone: Optional[Any], of_loss: bool, value: int, site: int) -> None:
        if gone is not None and gone.shape[0] > 1 and gone.shape[1] >= SHORTEST:
            self._kept.append((gone, of_loss, value, site))

    def padding(self) -> Tuple[Padding, ...]:
        """The padding that each mask shows. Waits for the device."""
        found = []
        for gone, of_loss, value, site in self._kept:
            # What a loss leaves out at the beginning may be what the rest is predicted from.
            ends = [runs_at_end(rows) for rows in ((gone,) if of_loss else (gone, gone.flip(1)))]
            best = max((one for one in ends if one is not None and one.rows_differ), default=None)
            if best is not None:
                rows, columns = gone.shape
                found.append(Padding(value, site, rows, columns, best.padded, best.shared, mask=True))
        self._kept.clear()
        return tuple(found)


def _hides(number: Any) -> bool:
    return isinstance(number, (int, float)) and (number == 0 or number <= GONE)


def _size(value: Any) -> int:
    return int(value.numel()) if hasattr(value, "numel") else 1
