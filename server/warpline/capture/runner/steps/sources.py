"""Where the beat of the steps can be heard.

Each source has two ways to listen: ``install(torch, heard)`` calls ``heard(kind, key)`` for whatever
it hears; ``install_tick(torch, anchor, steps)`` calls ``steps.tick()`` for the one key that is the
beat and little else, since it runs while steps are timed. ``RANK`` orders the sources: the
explicit ones come before those that are guessed from.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from time import perf_counter_ns
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from ..patches import Patches

if TYPE_CHECKING:
    from ..observers import Observers
    from ..patches import Function
    from .beat import Steps

RANK = {"forward": 1, "loader": 2, "optimizer": 3, "replay": 4, "mark": 5, "profiler": 6}
STEP_MARKS = ("step", "train_step", "training_step")

#: Called with the kind of a source and the key that it was heard with.
Heard = Callable[[str, int], None]


class Source(Protocol):
    kind: str

    def install(self, torch: ModuleType, heard: Heard) -> None: ...

    def install_tick(self, torch: ModuleType, anchor: int | None, steps: Steps) -> None: ...

    def remove(self) -> None: ...


class Patched:
    """A source that listens by replacing a method for a while."""

    def __init__(self) -> None:
        self.patches = Patches()

    def remove(self) -> None:
        self.patches.restore()


class Optimizers(Patched):
    """After each ``optimizer.step()``, by torch's global hook; ``key`` is the optimizer's id.

    ``GradScaler.step`` leaves a step out when the gradients have overflowed; that is a step too.
    """

    kind = "optimizer"

    def __init__(self, observers: Observers) -> None:
        super().__init__()
        self.observers = observers
        self.last: int | None = None

    def install(self, torch: ModuleType, heard: Heard) -> None:
        stepped = self.observers.stepped

        def hook(optimizer: Any, arguments: Any, named: Any) -> None:
            self.last = id(optimizer)
            stepped(optimizer, sys._getframe(1))
            heard("optimizer", id(optimizer))

        self._listen(torch, hook, lambda key: heard("optimizer", key))

    def install_tick(self, torch: ModuleType, anchor: int | None, steps: Steps) -> None:
        known = set(steps.cycles["optimizer"].counts)

        def hook(optimizer: Any, arguments: Any, named: Any) -> None:
            self.last = key = id(optimizer)
            if key == anchor:
                steps.tick()
            elif key not in known:
                steps.unknown()

        self._listen(torch, hook, lambda key: steps.tick() if key == anchor else None)

    def _listen(self, torch: ModuleType, hook: Function, left_out: Callable[[int], None]) -> None:
        from torch.amp.grad_scaler import GradScaler
        from torch.optim.optimizer import register_optimizer_step_post_hook

        self.handle = register_optimizer_step_post_hook(hook)

        def make(original: Function) -> Function:
            def step(scaler: Any, optimizer: Any, *arguments: Any, **named: Any) -> Any:
                self.last = None
                result = original(scaler, optimizer, *arguments, **named)
                if self.last != id(optimizer):
                    left_out(id(optimizer))
                return result

            return step

        self.patches.replace(GradScaler, "step", make)

    def remove(self) -> None:
        self.handle.remove()
        super().remove()


class Loaders(Patched):
    """Before each batch is fetched. All loaders are one: a step may draw from several."""

    kind = "loader"

    def __init__(self, observers: Observers) -> None:
        super().__init__()
        self.observers = observers

    def install(self, torch: ModuleType, heard: Heard) -> None:
        took = self.observers.loader_ns

        def make(original: Function) -> Function:
            def __next__(iterator: Any) -> Any:
                heard("loader", id(getattr(iterator, "_dataset", None)))
                begin = perf_counter_ns()
                batch = original(iterator)
                took.append(perf_counter_ns() - begin)
                return batch

            return __next__

        self._listen(make)

    def install_tick(self, torch: ModuleType, anchor: int | None, steps: Steps) -> None:
        def make(original: Function) -> Function:
            def __next__(iterator: Any) -> Any:
                if id(getattr(iterator, "_dataset", None)) == anchor:
                    steps.tick()
                return original(iterator)

            return __next__

        self._listen(make)

    def _listen(self, make: Callable[[Function], Function]) -> None:
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        self.patches.replace(_BaseDataLoaderIter, "__next__", make)


class Forwards:
    """Before each forward of an outermost module; ``key`` is the module's id."""

    kind = "forward"

    def __init__(self) -> None:
        self.modules: dict[int, weakref.ref[Any]] = {}  # id -> weak reference

    def install(self, torch: ModuleType, heard: Heard) -> None:
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
            self.modules[id(module)] = weakref.ref(module)
            heard("forward", id(module))

        self.handle = register_module_forward_pre_hook(hook)

    def install_tick(self, torch: ModuleType, anchor: int | None, steps: Steps) -> None:
        """A hook on that one module: a global one would slow every module's call."""
        thread = threading.get_ident()

        def hook(module: Any, arguments: Any) -> None:
            if threading.get_ident() == thread:
                steps.tick()

        module = self.modules[anchor]() if anchor is not None else None
        if module is not None:
            self.handle = module.register_forward_pre_hook(hook)

    def remove(self) -> None:
        self.handle.remove()


class CompiledForwards(Patched):
    """Before each call of a module made by ``torch.compile``: no hook that would be compiled in."""

    kind = "forward"

    def install(self, torch: ModuleType, heard: Heard) -> None:
        self._listen(lambda module: heard("forward", id(module)))

    def install_tick(self, torch: ModuleType, anchor: int | None, steps: Steps) -> None:
        self._listen(lambda module: steps.tick() if id(module) == anchor else None)

    def _listen(self, before: Callable[[Any], None]) -> None:
        from torch._dynamo.eval_frame import OptimizedModule

        def make(original: Function) -> Function:
            def __call__(module: Any, *arguments: Any, **named: Any) -> Any:
                before(module)
                return original(module, *arguments, **named)

            return __call__

        self.patches.replace(OptimizedModule, "__call__", make, inherited=True)


class Replays(Patched):
    """After each replay of a CUDA graph; heard of once a graph holds an optimizer's step."""

    kind = "replay"

    def install(self, torch: ModuleType, heard: Heard) -> None:
        self._listen(torch, lambda graph: heard("replay", id(graph)))

    def install_tick(self, torch: ModuleType, anchor: int | None, steps: Steps) -> None:
        self._listen(torch, lambda graph: steps.tick() if id(graph) == anchor else None)

    def _listen(self, torch: ModuleType, after: Function) -> None:
        def make(original: Function) -> Function:
            def replay(graph: Any) -> None:
                original(graph)
                after(graph)

            return replay

        self.patches.replace(torch.cuda.CUDAGraph, "replay", make)


class Marks(Patched):
    """At the end of each ``record_function("step")``."""

    kind = "mark"

    def install(self, torch: ModuleType, heard: Heard) -> None:
        self._listen(lambda: heard("mark", 0))

    def install_tick(self, torch: ModuleType, anchor: int | None, steps: Steps) -> None:
        self._listen(steps.tick)

    def _listen(self, after: Function) -> None:
        from torch.autograd.profiler import record_function

        def make(original: Function) -> Function:
            def __exit__(mark: Any, *error: Any) -> Any:
                result = original(mark, *error)
                if mark.name in STEP_MARKS and error[0] is None:
                    after()
                return result

            return __exit__

        self.patches.replace(record_function, "__exit__", make)


class ProfilerSteps(Patched):
    """After each ``step()`` of the script's own torch.profiler."""

    kind = "profiler"

    def install(self, torch: ModuleType, heard: Heard) -> None:
        self._listen(lambda: heard("profiler", 0))

    def install_tick(self, torch: ModuleType, anchor: int | None, steps: Steps) -> None:
        self._listen(steps.tick)

    def _listen(self, after: Function) -> None:
        from torch.profiler import profile

        def make(original: Function) -> Function:
            def step(profiler: Any) -> Any:
                result = original(profiler)
                after()
                return result

            return step

        self.patches.replace(profile, "step", make)
