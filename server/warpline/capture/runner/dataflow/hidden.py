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
#: Products that sum the columns of each row. In inference mode einsum and matmul are not taken apart.
_SUMMED = ("bmm", "matmul", "einsum")
_TARGETS = {"nll_loss_forward": 4, "nll_loss2d_forward": 4}  # the place of the class to ignore


class Hidden:
    """Keeps for each mask the positions that count for nothing, as flags of (rows, columns). They are made on
    the device at once, and read when the step is over, since reading waits for the device."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        named = {name: (_FUSED, at) for name, at in OPERATORS.items()}
        named.update({one: (kind, 1) for kind in (_FILLED, _FACTOR, _ADDED) for one in (kind, kind + "_")})
        named.update({name: (name, 1) for name in (*_TARGETS, *_SUMMED)})
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
        if kind in _SUMMED:
            self._add_sum(kind, arguments, given, site)
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
        if self._knows(value):
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

    def _knows(self, value: int) -> bool:
        return any(known == value for _, _, known, _ in self._kept)

    def _add_sum(self, kind: str, arguments: Tuple[Any, ...], given: List[Any], site: int) -> None:
        """Note a product of weights with each row's columns, if the weights are those of a sum or a mean: 0
        and one other number in each row."""
        pair, texts = (arguments[1], given[1]) if kind == "einsum" else (arguments[:2], given)
        if not all(isinstance(one, self._torch.Tensor) for one in pair):
            return
        at = _weighing(*pair) if kind != "einsum" else _of_einsum(*arguments)
        if at is None or self._knows(value := int(texts[at][len(TENSOR) :])):
            return
        weights = pair[at]
        if not weights.is_cuda or not self._torch.cuda.is_current_stream_capturing():
            weights = weights.reshape(weights.shape[0], -1)
            most, gone = weights.amax(1, keepdim=True), weights == 0
            self._keep(gone & (gone | ((weights == most) & (most > 0))).all(), False, value, site)

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
            if best is not None and not _is_causal(gone):
                rows, columns = gone.shape
                found.append(Padding(value, site, rows, columns, best.padded, best.shared, mask=True))
        self._kept.clear()
        return tuple(found)


def _is_causal(gone: Any) -> bool:
    """Whether each row hides one column less than the row before, or one more: its rows are the positions of
    queries then, as in a causal mask that attention makes numbers of, and no rows of a batch."""
    steps = gone.long().sum(1).diff()
    return len(steps) >= SHORTEST - 1 and bool((steps == steps[0]).all()) and abs(int(steps[0])) == 1


def _weighing(first: Any, second: Any) -> Optional[int]:
    """Which of two factors has one weight for each row and column of the other: (rows, 1, columns) times
    (rows, columns, features), or the other way round."""
    if not first.dim() == second.dim() == 3 or first.shape[0] != second.shape[0]:
        return None
    if first.shape[1] == 1 < second.shape[2]:
        return 0
    return 1 if second.shape[2] == 1 < first.shape[1] else None


def _of_einsum(equation: Any, tensors: Any) -> Optional[int]:
    """The same of ``einsum("rc,rcf->rf", weights, whole)``."""
    read, _, left = str(equation).replace(" ", "").partition("->")
    names = read.split(",")
    for at in (0, 1) if len(names) == len(tensors) == 2 else ():
        weights, whole = names[at], names[1 - at]
        if len(weights) == 2 and whole[:2] == weights and left == weights[0] + whole[2:] != weights[0]:
            return at
    return None


def _hides(number: Any) -> bool:
    return isinstance(number, (int, float)) and (number == 0 or number <= GONE)


def _size(value: Any) -> int:
    return int(value.numel()) if hasattr(value, "numel") else 1
