"""Finds the module of the model that a frame runs for, by its path in the model."""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType
from typing import Any

NO_MODULE = -1
MOST_MODULES = 100_000
#: Most frames to walk from a library function out to its module's call: each costs time.
MOST_FRAMES = 24
#: Wrappers with the model as their only child: the child's name is left out of paths.
WRAPPERS = {
    "DistributedDataParallel": "module", "DataParallel": "module", "FullyShardedDataParallel": "module",
    "OptimizedModule": "_orig_mod",
}  # fmt: skip


class ModulePaths:
    """``of(frame)`` -> index into ``paths``; ``NO_MODULE`` where no module's call is around the frame."""

    def __init__(self, module_type: Any) -> None:
        self.module_type = module_type
        calls = [vars(module_type).get(name) for name in ("_wrapped_call_impl", "_call_impl", "__call__")]
        #: Their ids: Python 3.12 and newer hash code by all its instructions
        self.calls = {id(call.__code__) for call in calls if hasattr(call, "__code__")}
        #: Their module's names: quicker to ask a frame for than its code
        self.names = next((call.__globals__ for call in calls if hasattr(call, "__globals__")), None)
        self.paths: dict[str, int] = {}
        self.of_module: dict[int, int] = {}  # id(module) -> index
        self.kept: list[Any] = []  # so that no id is given away again

    def of(self, frame: FrameType | None, outer: int = 0, outer_module: int = NO_MODULE) -> int:
        """The innermost call of a module at or outside ``frame``.

        ``outer``: the hash of a frame outside of it that is known to run for ``outer_module``.
        """
        inner, left = frame, MOST_FRAMES
        while frame is not None and left:
            left -= 1
            if outer and hash(frame) == outer and frame is not inner:
                return outer_module
            if frame.f_globals is self.names and id(frame.f_code) in self.calls:
                module = frame.f_locals.get("self")
                known = self.of_module.get(id(module))
                return known if known is not None else self._found(module, frame)
            traced = getattr(frame.f_trace, "inside", None)
            if traced is not None and frame is not inner:
                return int(traced.module)
            frame = frame.f_back
        return NO_MODULE

    def _found(self, module: Any, frame: FrameType | None) -> int:
        """The index of ``module``, all modules of the outermost model around ``frame`` being named."""
        root = module
        while frame is not None:
            names = frame.f_code.co_varnames
            if names and names[0] == "self":
                owner = frame.f_locals.get("self")
                if isinstance(owner, self.module_type):
                    root = owner
            frame = frame.f_back
        for path, each in named(root):
            self._keep(each, path)
        self._keep(module, type(module).__name__)  # where the model does not have it: made within the step
        return self.of_module.get(id(module), NO_MODULE)

    def _keep(self, module: Any, path: str) -> None:
        if len(self.kept) < MOST_MODULES and id(module) not in self.of_module:
            self.of_module[id(module)] = self.paths.setdefault(path, len(self.paths))
            self.kept.append(module)


def named(root: Any) -> Iterator[tuple[str, Any]]:
    """``(path, module)`` of all modules of ``root``, with ``*`` for the number of one of several equals."""
    seen = set()
    waiting = [("", root)]
    while waiting:
        path, module = waiting.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        yield path, module
        children = {name: child for name, child in module._modules.items() if child is not None}
        equal = len(children) > 1 and len({type(child) for child in children.values()}) == 1
        hidden = WRAPPERS.get(type(module).__name__)
        for name, child in children.items():
            part = "*" if equal and name.isdigit() else name
            waiting.append((path if name == hidden else path + "." * bool(path) + part, child))
