"""Sees that a script computes with tensors in a loop, and does nothing that could mark a step.

Such a script shows its steps only where its loops are watched. If it runs for long, that must not wait for
its end.
"""

from __future__ import annotations

from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..observers import Observers
    from .nested import Nested

#: Times in a row that it has to be seen so, a second apart. Chosen.
OFTEN = 5


class Unmarked:
    def __init__(self, tensor: type, observers: Observers, nested: Nested) -> None:
        self.tensor = tensor
        self.observers = observers
        self.nested = nested
        self.times = 0

    def found(self, frame: FrameType | None) -> bool:
        """Whether the script was seen so ``OFTEN`` times in a row, now at ``frame``."""
        self.times = self.times + 1 if self._computes(frame) and not self._has_steps() else 0
        return self.times >= OFTEN

    def _has_steps(self) -> bool:
        """Whether it has something that is going to mark steps: what it computes now only prepares them."""
        made = any(self.observers.sites.has(kind) for kind in ("optimizer", "loader", "module"))
        return made or self.observers.trains_by_text()

    def _computes(self, frame: FrameType | None) -> bool:
        """Whether the user's innermost function has a tensor, and a loop of the user's is around."""
        inner: FrameType | None = None
        while frame is not None:
            if inner is None and self.nested.user_files[frame.f_code.co_filename] is not None:
                inner = frame
                if not self._has_tensor(inner):
                    return False
            if inner is not None and self.nested.around(frame):
                return True
            frame = frame.f_back
        return False

    def _has_tensor(self, frame: FrameType) -> bool:
        """Whether one of a function's variables is a tensor, or an object with one; of a module's variables,
        those that the running line names."""
        names, values = self.nested.names_at(frame), frame.f_locals
        inside = values is not frame.f_globals
        return any(self._is_or_has(value) for name, value in values.items() if inside or name in names)

    def _is_or_has(self, value: Any) -> bool:
        if isinstance(value, self.tensor):
            return True
        try:
            parts = () if isinstance(value, (ModuleType, type)) else list(vars(value).values())
        except TypeError:  # it has no ``__dict__``
            return False
        return any(isinstance(part, self.tensor) for part in parts)
