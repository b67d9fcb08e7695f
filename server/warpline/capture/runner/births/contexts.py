"""Where autocast and gradient contexts were made, and where their arguments are written.

They are made again in every step, so each place is examined only once. From the timing window on nothing is
watched: contexts that are first made later are not known.
"""

from __future__ import annotations

import sys
from types import CodeType, FrameType, ModuleType
from typing import TYPE_CHECKING, Any, Dict, Optional, Set, Tuple

from ....wire.sites import Autocast, GradMode
from ..patches import Function, Patches

if TYPE_CHECKING:
    from .sites import Sites

#: Not ``enable_grad``, which has no constructor of its own to watch.
GRAD_MODES = ("no_grad", "set_grad_enabled", "inference_mode")


class Contexts:
    def __init__(self, sites: Sites) -> None:
        self.sites = sites
        self.patches = Patches()
        self.seen: Set[Tuple[CodeType, int]] = set()

    def install(self, torch: ModuleType) -> None:
        """Watch where ``autocast`` and the gradient modes are made."""
        self._watch(torch.autocast, Autocast.KIND)
        for name in GRAD_MODES:
            self._watch(getattr(torch, name), GradMode.KIND)

    def remove(self) -> None:
        """Put torch's own back."""
        self.patches.restore()

    def _watch(self, owner: Any, kind: str) -> None:
        user_files, seen = self.sites.user_files, self.seen

        def make(original: Function) -> Function:
            def __init__(self_: Any, *arguments: Any, **named: Any) -> None:
                original(self_, *arguments, **named)
                frame: Optional[FrameType] = sys._getframe(1)
                while frame is not None and frame.f_code.co_name == "__init__" and _makes(frame, self_):
                    frame = frame.f_back  # torch.cuda.amp.autocast, a subclass
                if frame is None or user_files[frame.f_code.co_filename] is None:
                    return  # made by torch, or by the call of a decorated function
                place = frame.f_code, frame.f_lasti
                if place not in seen:
                    seen.add(place)
                    self._made(kind, self_, frame, original, arguments, named)

            return __init__

        self.patches.replace(owner, "__init__", make)

    def _made(
        self,
        kind: str,
        made: Any,
        frame: FrameType,
        original: Function,
        arguments: Tuple[Any, ...],
        named: Dict[str, Any],
    ) -> None:
        place = self.sites.place(frame)
        if place is not None:
            birth = self.sites.birth(kind, sys._getframe(2), made, original, arguments, named)
            self.sites.add(kind, place, None, _facts(kind, made), birth)


def _makes(frame: FrameType, made: Any) -> bool:
    names = frame.f_code.co_varnames
    return bool(names) and frame.f_locals.get(names[0]) is made


def _facts(kind: str, made: Any) -> Dict[str, Any]:
    if kind == GradMode.KIND:
        return {"type": type(made).__name__, "mode": getattr(made, "mode", None)}
    dtype = getattr(made, "fast_dtype", None)
    return {
        "device": getattr(made, "device", None),
        "dtype": str(dtype).replace("torch.", "") if dtype is not None else None,
        "enabled": getattr(made, "_enabled", None),
    }
