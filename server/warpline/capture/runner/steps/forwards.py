"""Steps by forward passes, for scripts that only run inference."""

from __future__ import annotations

import sys
import weakref
from types import CodeType, FrameType, ModuleType
from typing import TYPE_CHECKING, Any

from .numbers import Numbers
from .sources import Heard, Patched

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..patches import Function
    from .beat import Steps


class Forwards(Patched):
    """Signals before each forward of an outermost module; ``key`` is the module's number."""

    kind = "forward"

    def __init__(self) -> None:
        super().__init__()
        self.numbers = Numbers()
        self.handle: Any = None
        self.followed: Any = None  # a weak reference to the module with the hook

    def install(self, torch: ModuleType, heard: Heard) -> None:
        """Hear the outermost module's forward. Modules called inside another's forward are not steps, nor is
        what checkpointing computes again in the backward pass, with a GPU on autograd's own thread."""
        from torch.nn.modules.module import Module, register_module_forward_pre_hook

        inner = Module._call_impl.__code__

        def hook(module: Any, arguments: Any) -> None:
            if _calls(sys._getframe(1), inner) == 1 and torch._C._current_graph_task_id() == -1:
                heard("forward", self.numbers.of(module))

        self.handle = register_module_forward_pre_hook(hook)

    def install_tick(self, torch: ModuleType, anchor: int | None, steps: Steps) -> None:
        """Hook only the chosen module: a global hook would slow the calls of all modules. Where others take
        its place, all calls are heard, but by less than a hook."""
        from torch.nn.modules.module import Module

        module = self.numbers.holder(anchor)
        if module is None or self.numbers.left:
            self._hear_all(Module, anchor, steps)
            return
        self.handle = module.register_forward_pre_hook(lambda module, arguments: steps.tick())
        self.followed = weakref.ref(module, lambda gone: self._hear_all(Module, anchor, steps))

    def _hear_all(self, modules: Any, anchor: int | None, steps: Steps) -> None:
        inner, numbers = modules._call_impl.__code__, self.numbers

        def make(original: Function) -> Function:
            def __call__(module: Any, *arguments: Any, **named: Any) -> Any:
                number = numbers.known(module)
                if number is None and not _calls(sys._getframe(1), inner):
                    number = numbers.of(module)
                if number is not None and number == anchor:
                    steps.tick()
                return original(module, *arguments, **named)

            return __call__

        self.patches.replace(modules, "__call__", make)

    def remove(self) -> None:
        """Remove the hook."""
        super().remove()
        self.followed = None
        if self.handle is not None:
            self.handle.remove()
            self.handle = None


def _calls(frame: FrameType | None, inner: CodeType) -> int:
    """How many modules are being called at ``frame``; at most two are counted."""
    calls = 0
    while frame is not None and calls < 2:
        calls += frame.f_code is inner
        frame = frame.f_back
    return calls


class CompiledForwards(Patched):
    """Signals before each call of a ``torch.compile`` module, without a hook that would be compiled in."""

    kind = "forward"

    def __init__(self, numbers: Numbers) -> None:
        super().__init__()
        self.numbers = numbers

    def install(self, torch: ModuleType, heard: Heard) -> None:
        """Hear each call of a compiled module."""
        self._listen(lambda module: heard("forward", self.numbers.of(module)))

    def install_tick(self, torch: ModuleType, anchor: int | None, steps: Steps) -> None:
        """A step begins with the call of the module that was chosen."""
        self._listen(lambda module: steps.tick() if self.numbers.of(module) == anchor else None)

    def _listen(self, before: Callable[[Any], None]) -> None:
        from torch._dynamo.eval_frame import OptimizedModule

        def make(original: Function) -> Function:
            def __call__(module: Any, *arguments: Any, **named: Any) -> Any:
                before(module)
                return original(module, *arguments, **named)

            return __call__

        self.patches.replace(OptimizedModule, "__call__", make, inherited=True)
