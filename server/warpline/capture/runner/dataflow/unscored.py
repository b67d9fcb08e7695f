"""Counts the entries that a loss ignores, in targets and masks, after the step."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from ....wire.dataflow import TENSOR, Unscored

#: Largest number of targets and masks kept until the end of the step. Chosen, not fitted.
MOST = 8
#: Position of ``ignore_index`` among the arguments of ``aten::nll_loss_forward`` and similar operators.
_IGNORE_INDEX = 4


class Scored:
    """Targets of the step's losses, and masks over their entries."""

    def __init__(self, torch: Any) -> None:
        aten = torch.ops.aten
        self._losses = {aten.nll_loss_forward.default, aten.nll_loss2d_forward.default}
        self._picks = aten.gather.default  # of the logarithm of each class that is right
        #: Operators that lay a mask over a loss, and where they take it.
        self._masked = {aten.mul.Tensor: (0, 1), aten.where.self: (0,), aten.masked_fill.Scalar: (1,)}
        self._kept: List[
            Tuple[Any, Optional[int], int]
        ] = []  # tensor, the class that counts for nothing, value
        self._entries = 0  # of the last loss with an entry for each target

    def add(self, function: Any, arguments: Tuple[Any, ...], given: List[Any], made: Any) -> None:
        """Note a call; ``given``: its arguments as recorded, ``made``: its result."""
        if function in self._losses:
            if len(arguments) > _IGNORE_INDEX:
                self._keep(arguments[1], arguments[_IGNORE_INDEX], given[1])
            self._entries = made[0].numel() if made[0].dim() else 0
        elif function is self._picks:
            self._entries = made.numel()
        elif function in self._masked and self._entries:
            places = self._masked[function] if made.numel() == self._entries else ()
            for at, tensor in enumerate(arguments):
                if at in places and getattr(tensor, "numel", int)() == self._entries:
                    self._keep(tensor, None, given[at])

    def _keep(self, tensor: Any, ignored: Optional[int], text: Any) -> None:
        value = int(text[len(TENSOR) :])
        if len(self._kept) < MOST and all(known != value for _, _, known in self._kept):
            self._kept.append((tensor.detach(), ignored, value))

    def unscored(self) -> Tuple[Unscored, ...]:
        """The targets with entries that the loss ignores. Waits for the device."""
        found = []
        for tensor, ignored, value in self._kept:
            many = int((tensor == (0 if ignored is None else ignored)).sum())
            if many:
                found.append(Unscored(value, tensor.numel(), many))
        self._kept.clear()
        return tuple(found)
