"""Counts the entries that a loss ignores, in targets and masks, after the step."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from ....wire.dataflow import TENSOR, Unscored

#: Largest number of targets and masks kept until the end of the step. Chosen, not fitted.
MOST = 8
#: Position of ``ignore_index`` among the arguments of ``aten::nll_loss_forward`` and similar operators.
_IGNORE_INDEX = 4


class Scored:
    """Targets of the step's losses, and masks that their entries are multiplied with."""

    def __init__(self, torch: Any) -> None:
        aten = torch.ops.aten
        self._losses = {aten.nll_loss_forward.default, aten.nll_loss2d_forward.default}
        self._product = aten.mul.Tensor
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
        elif function is self._product and self._entries:
            for tensor, text in zip(arguments, given):
                if getattr(made, "numel", int)() == self._entries == getattr(tensor, "numel", int)():
                    self._keep(tensor, None, text)

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
