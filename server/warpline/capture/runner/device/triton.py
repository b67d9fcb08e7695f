"""The arguments of the user's Triton kernels, which torch's profiler does not record."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import TYPE_CHECKING, Any

from ..patches import Patches

if TYPE_CHECKING:
    from ..lines.userfiles import Location
    from ..patches import Function


class TritonLaunches:
    """Watches launches from ``start()`` to ``stop()``: sites of kind "triton" in ``sites``."""

    def __init__(self, place: Callable[[FrameType | None], Location | None]) -> None:
        self.place = place
        self.patches = Patches()
        self.sites: dict[tuple[Location, str], dict[str, Any]] = {}  # (place, kernel) -> facts

    def start(self) -> None:
        """Watch launches, if the script has imported Triton."""
        module = sys.modules.get("triton.runtime.jit")
        if module is not None and hasattr(module, "JITFunction"):
            self.patches.replace(module.JITFunction, "run", self._watched)

    def stop(self) -> None:
        """Put Triton's own back."""
        self.patches.restore()

    def _watched(self, original: Function) -> Function:
        def run(kernel: Any, *arguments: Any, **named: Any) -> Any:
            try:
                if not named.get("warmup"):
                    self._note(kernel, arguments, named)
            except Exception:  # whatever is not as in the Triton that this was written for
                pass
            return original(kernel, *arguments, **named)

        return run

    def _note(self, kernel: Any, arguments: Iterable[Any], named: dict[str, Any]) -> None:
        place = self.place(sys._getframe(2))
        if place is None:
            return
        # A tensor that is given twice is one piece of memory.
        sizes = {
            one.data_ptr(): one.numel() * one.element_size()
            for one in (*arguments, *named.values())
            if hasattr(one, "data_ptr") and hasattr(one, "element_size")
        }
        name = getattr(getattr(kernel, "fn", None), "__name__", "")
        fresh: dict[str, Any] = {"kernel": name, "calls": 0, "bytes": 0, "numbers": {}, "floats": []}
        facts = self.sites.setdefault((place, name), fresh)
        facts["calls"] += 1
        facts["bytes"] += sum(sizes.values())
        numbers, floats = facts["numbers"], facts["floats"]
        for parameter, one in (*zip(getattr(kernel, "arg_names", ()), arguments), *named.items()):
            if type(one) is int:
                numbers[parameter] = min(one, numbers.get(parameter, one))
            elif isinstance(one, float) and parameter not in floats:
                floats.append(parameter)

    def found(self) -> list[dict[str, Any]]:
        """One site for each kernel and set of arguments that was launched."""
        return [
            {"kind": "triton", "file": file, "line": line, "function": function, "facts": facts, "uses": []}
            for ((file, line, function), _), facts in self.sites.items()
        ]
