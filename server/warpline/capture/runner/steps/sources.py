"""The sources of signals that can mark steps.

Each source can be installed in two ways. ``install(torch, heard)`` calls ``heard(kind, key)`` for every
signal. ``install_tick(torch, anchor, steps)`` calls ``steps.tick()`` for the key ``anchor`` and does little
else, since it runs while steps are timed. ``RANK`` orders the sources: explicit marks rank above guesses.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from ..patches import Patches
from .numbers import Numbers
from .signals import nothing

if TYPE_CHECKING:
    from ..observers import Observers
    from ..patches import Function
    from .beat import Steps

RANK = {
    "forward": 1, "loader": 2, "backward": 3, "optimizer": 4, "replay": 5, "mark": 6, "profiler": 7,
    "loop": 8,  # asked for
}  # fmt: skip
STEP_MARKS = ("step", "train_step", "training_step")


def unheard() -> None:
    """Does nothing: the default listener."""


#: Called with the kind of a source and the key that it was heard with.
Heard = Callable[[str, int], None]


class Source(Protocol):
    kind: str

    def install(self, torch: ModuleType, heard: Heard) -> None:
        """Call ``heard(kind, key)`` at each signal, until a source has been chosen."""

    def install_tick(self, torch: ModuleType, anchor: int | None, steps: Steps) -> None:
        """Instead call ``steps.tick()`` at each signal with the key ``anchor``, as cheaply as possible."""

    def remove(self) -> None:
        """Stop listening."""


class Patched:
    """A source that listens by replacing a method for a while."""

    def __init__(self) -> None:
        self.patches = Patches()

    def remove(self) -> None:
        self.patches.restore()


def _unheard_step(optimizer: Any, arguments: Any, named: Any) -> None:
    """Does nothing: the hook while no step is awaited."""


def _after_step(optimizer: Any, arguments: Any, named: Any) -> None:
    Optimizers.hook(optimizer, arguments, named)


class Optimizers(Patched):
    """Signals after each ``optimizer.step()``, by torch's global hook; ``key`` is the optimizer's number.

    The hook stays registered: who listens changes while torch iterates over the hooks, which fails if their
    number changes and the script has a hook too.

    If gradients have overflowed, ``GradScaler.step`` skips the optimizer; that counts as a step too.
    """

    kind = "optimizer"
    hook: Function = staticmethod(_unheard_step)
    registered = False

    def __init__(self, observers: Observers) -> None:
        super().__init__()
        self.observers = observers
        self.last: int | None = None
        self.numbers = Numbers()

    def install(self, torch: ModuleType, heard: Heard) -> None:
        """Hear the end of each ``optimizer.step()``, also of optimizers without torch's hooks."""
        stepped = self.observers.stepped

        def hook(optimizer: Any, arguments: Any, named: Any) -> None:
            self.last = id(optimizer)
            stepped(optimizer, sys._getframe(2))
            heard("optimizer", self.numbers.of(optimizer))

        self._listen(torch, hook, lambda key: heard("optimizer", key))

    def install_tick(self, torch: ModuleType, anchor: int | None, steps: Steps) -> None:
        """A step ends with the chosen optimizer's; one that was never heard before may change the choice."""
        known = set(steps.cycles["optimizer"].counts)

        def hook(optimizer: Any, arguments: Any, named: Any) -> None:
            self.last = id(optimizer)
            key = self.numbers.of(optimizer)
            if key == anchor:
                steps.tick()
            elif key not in known:
                steps.unknown()

        self._listen(torch, hook, lambda key: steps.tick() if key == anchor else None)

    def _listen(self, torch: ModuleType, hook: Function, left_out: Callable[[int], None]) -> None:
        from torch.amp.grad_scaler import GradScaler
        from torch.optim.optimizer import register_optimizer_step_post_hook

        Optimizers.hook = staticmethod(hook)
        if not Optimizers.registered:
            Optimizers.registered = True
            register_optimizer_step_post_hook(_after_step)

        def make(original: Function) -> Function:
            def step(scaler: Any, optimizer: Any, *arguments: Any, **named: Any) -> Any:
                self.last = None
                result = original(scaler, optimizer, *arguments, **named)
                if self.last != id(optimizer):
                    left_out(self.numbers.of(optimizer))
                return result

            return step

        self.patches.replace(GradScaler, "step", make)

    def remove(self) -> None:
        Optimizers.hook = staticmethod(_unheard_step)
        super().remove()


class Loaders(Patched):
    """Signals before each batch is fetched. All loaders share one key: a step may draw from several."""

    kind = "loader"

    def __init__(self, observers: Observers) -> None:
        super().__init__()
        self.number = observers.signals.datasets.of

    def install(self, torch: ModuleType, heard: Heard) -> None:
        """Hear each batch that is asked for, by its loader."""
        number = self.number

        def make(original: Function) -> Function:
            def __next__(iterator: Any) -> Any:
                heard("loader", number(iterator))
                return original(iterator)

            return __next__

        self._listen(make)

    def install_tick(self, torch: ModuleType, anchor: int | None, steps: Steps) -> None:
        """A step begins with the next batch of the chosen loader."""
        number = self.number

        def make(original: Function) -> Function:
            def __next__(iterator: Any) -> Any:
                if number(iterator) == anchor:
                    steps.tick()
                return original(iterator)

            return __next__

        self._listen(make)

    def _listen(self, make: Callable[[Function], Function]) -> None:
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        self.patches.replace(_BaseDataLoaderIter, "__next__", make)


class Backwards:
    """Signals after each backward pass, for steps without an optimizer; ``key``: the place of the call."""

    kind = "backward"

    def __init__(self, observers: Observers) -> None:
        self.signals = observers.signals

    def install(self, torch: ModuleType, heard: Heard) -> None:
        """Hear backward passes, by the line that calls ``backward()``."""
        place = self.signals.place
        self.signals.on_backward = lambda frame: heard("backward", place(frame))

    def install_tick(self, torch: ModuleType, anchor: int | None, steps: Steps) -> None:
        """A step ends with the backward pass that was chosen."""
        place = self.signals.place

        def ended(frame: FrameType) -> None:
            if place(frame) == anchor:
                steps.tick()

        self.signals.on_backward = ended

    def remove(self) -> None:
        self.signals.on_backward = nothing


class Replays(Patched):
    """Signals after each replay of a CUDA graph; used only if a graph contains an optimizer's step.
    ``key`` is the graph's number."""

    kind = "replay"

    def __init__(self) -> None:
        super().__init__()
        self.numbers = Numbers()

    def install(self, torch: ModuleType, heard: Heard) -> None:
        """Hear each replay of a CUDA graph."""
        self._listen(torch, lambda graph: heard("replay", self.numbers.of(graph)))

    def install_tick(self, torch: ModuleType, anchor: int | None, steps: Steps) -> None:
        """A step begins with the chosen graph's replay."""
        self._listen(torch, lambda graph: steps.tick() if self.numbers.of(graph) == anchor else None)

    def _listen(self, torch: ModuleType, after: Function) -> None:
        def make(original: Function) -> Function:
            def replay(graph: Any) -> None:
                original(graph)
                after(graph)

            return replay

        self.patches.replace(torch.cuda.CUDAGraph, "replay", make)


class Marks(Patched):
    """Hears the end of each ``record_function("step")``, and each call of ``mark`` by the script."""

    kind = "mark"

    def __init__(self) -> None:
        super().__init__()
        self.mark: Callable[[], object] = unheard

    def remove(self) -> None:
        super().remove()
        self.mark = unheard

    def install(self, torch: ModuleType, heard: Heard) -> None:
        self._listen(lambda: heard("mark", 0))

    def install_tick(self, torch: ModuleType, anchor: int | None, steps: Steps) -> None:
        self._listen(steps.tick)

    def _listen(self, after: Function) -> None:
        from torch.autograd.profiler import record_function

        self.mark = after

        def make(original: Function) -> Function:
            def __exit__(mark: Any, *error: Any) -> Any:
                result = original(mark, *error)
                if mark.name in STEP_MARKS and error[0] is None:
                    after()
                return result

            return __exit__

        self.patches.replace(record_function, "__exit__", make)


class ProfilerSteps(Patched):
    """Signals after each ``step()`` of the script's own torch.profiler."""

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
