"""The losses of the first steps: the tensors that ``backward()`` was called on, read at the end."""

from __future__ import annotations

import math
from time import time_ns
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..patches import Patches

if TYPE_CHECKING:
    from ..patches import Function

MOST = 200
#: So many losses, the first ones, are copied right away. Compiled code with CUDA graphs overwrites the loss
#: of the last step, and torch then refuses to read the old one. A copy is a small kernel, in the warm-up
#: only.
COPIED = 20


class Losses:
    """Keeps detached tensors. Values are read only by ``values()``, so nothing synchronizes before."""

    def __init__(self) -> None:
        self.patches = Patches()
        self.kept: list[Any] = []
        self.backwards = 0
        self.first_ns: int | None = None  # when it was called first since this was None
        self.not_finite_at: int | None = None  # known after ``values()``

    def install(self, torch: ModuleType) -> None:
        """Keep the scalar losses of the first backward passes, detached from their graphs."""
        keep = self.kept.append
        initialized, capturing = torch.cuda.is_initialized, torch.cuda.is_current_stream_capturing

        def make(original: Function) -> Function:
            def backward(tensors: Any, *arguments: Any, **named: Any) -> Any:
                self.backwards += 1
                if self.first_ns is None:
                    self.first_ns = time_ns()
                one = isinstance(tensors, torch.Tensor) and tensors.numel() == 1
                # In a graph's capture nothing is computed yet, and a copy would become part of the graph.
                if one and len(self.kept) < MOST and not (initialized() and capturing()):
                    keep(tensors.detach().clone() if len(self.kept) < COPIED else tensors.detach())
                return original(tensors, *arguments, **named)

            return backward

        self.patches.replace(torch.autograd, "backward", make)

    def remove(self) -> None:
        """Put torch's own back."""
        self.patches.restore()

    def values(self) -> list[float]:
        """The losses before the first that was overwritten or is not finite (JSON cannot hold those)."""
        values = []
        for tensor in self.kept:
            try:
                values.append(float(tensor))
            except RuntimeError:
                break
        self.not_finite_at = next((at for at, value in enumerate(values) if not math.isfinite(value)), None)
        return values[: self.not_finite_at]
