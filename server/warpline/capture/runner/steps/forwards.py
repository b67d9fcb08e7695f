"""Steps by forward passes, for scripts that only run inference."""

from __future__ import annotations

import sys
import threading
import weakref
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

from .sources import Heard, Patched

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..patches import Function
    from .beat import Steps


class Forwards:
    """Signals before each forward of an outermost module; ``key`` is the module's id."""

    kind = "forward"

    def __init__(self) -> None:
        self.modules: dict[int, weakref.ref[Any]] = {}  # id -> weak reference

    def install(self, torch: ModuleType, heard: Heard) -> None:
        """Hear the outermost module's forward. Modules called inside another's forward are not steps, nor is
        what checkpointing computes again in the backward pass, with a GPU on autograd's own thread."""
        from torch.nn.modules.module import Module, register_module_forward_pre_hook

        inner = Module._call_impl.__code__

        def hook(module: Any, arguments: Any) -> None:
            frame: FrameType | None = sys._getframe(1)
            calls = 0
            while frame is not None:
                if frame.f_code is inner:
                    calls += 1
                    if calls > 1:
                        return
                frame = frame.f_back
            if torch._C._current_graph_task_id() != -1:
                return
            self.modules[id(module)] = weakref.ref(module)
            heard("forward", id(module))

        self.handle = register_module_forward_pre_hook(hook)

    def install_tick(self, torch: ModuleType, anchor: int | None, steps: Steps) -> None:
        """Hook only the chosen module: a global hook would slow the calls of all modules."""
        thread = threading.get_ident()

        def hook(module: Any, arguments: Any) -> None:
            if threading.get_ident() == thread:
                steps.tick()

        module = self.modules[anchor]() if anchor is not None else None
        if module is not None:
            self.handle = module.register_forward_pre_hook(hook)

    def remove(self) -> None:
        """Remove the hook."""
        self.handle.remove()


class CompiledForwards(Patched):
    """Signals before each call of a ``torch.compile`` module, without a hook that would be compiled in."""

    kind = "forward"

    def install(self, torch: ModuleType, heard: Heard) -> None:
        """Hear each call of a compiled module."""
        self._listen(lambda module: heard("forward", id(module)))

    def install_tick(self, torch: ModuleType, anchor: int | None, steps: Steps) -> None:
        """A step begins with the call of the module that was chosen."""
        self._listen(lambda module: steps.tick() if id(module) == anchor else None)

    def _listen(self, before: Callable[[Any], None]) -> None:
        from torch._dynamo.eval_frame import OptimizedModule

        def make(original: Function) -> Function:
            def __call__(module: Any, *arguments: Any, **named: Any) -> Any:
                before(module)
                return original(module, *arguments, **named)

            return __call__

        self.patches.replace(OptimizedModule, "__call__", make, inherited=True)
