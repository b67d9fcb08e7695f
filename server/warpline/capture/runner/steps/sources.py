"""Where the beat of the steps can be heard.

Each source has two ways to listen: ``install(torch, heard)`` calls ``heard(kind, key)`` for whatever
it hears; ``install_tick(torch, anchor, steps)`` calls ``steps.tick()`` for the one key that is the
beat and little else, since it runs while steps are timed. ``RANK`` orders the sources: the
explicit ones come before those that are guessed from.
"""

import sys
import threading
import weakref
from time import perf_counter_ns

from ..patches import Patches

RANK = {"forward": 1, "loader": 2, "optimizer": 3, "replay": 4, "mark": 5, "profiler": 6}
STEP_MARKS = ("step", "train_step", "training_step")


class Patched:
    """A source that listens by replacing a method for a while."""

    def __init__(self):
        self.patches = Patches()

    def remove(self):
        self.patches.restore()


class Optimizers(Patched):
    """After each ``optimizer.step()``, by torch's global hook; ``key`` is the optimizer's id.

    ``GradScaler.step`` leaves a step out when the gradients have overflowed; that is a step too.
    """

    kind = "optimizer"

    def __init__(self, observers):
        super().__init__()
        self.observers = observers
        self.last = None

    def install(self, torch, heard):
        stepped = self.observers.stepped

        def hook(optimizer, arguments, named):
            self.last = id(optimizer)
            stepped(optimizer, sys._getframe(1))
            heard("optimizer", id(optimizer))

        self._listen(torch, hook, lambda key: heard("optimizer", key))

    def install_tick(self, torch, anchor, steps):
        known = set(steps.cycles["optimizer"].counts)

        def hook(optimizer, arguments, named):
            self.last = key = id(optimizer)
            if key == anchor:
                steps.tick()
            elif key not in known:
                steps.unknown()

        self._listen(torch, hook, lambda key: steps.tick() if key == anchor else None)

    def _listen(self, torch, hook, left_out):
        from torch.amp.grad_scaler import GradScaler
        from torch.optim.optimizer import register_optimizer_step_post_hook

        self.handle = register_optimizer_step_post_hook(hook)

        def make(original):
            def step(scaler, optimizer, *arguments, **named):
                self.last = None
                result = original(scaler, optimizer, *arguments, **named)
                if self.last != id(optimizer):
                    left_out(id(optimizer))
                return result

            return step

        self.patches.replace(GradScaler, "step", make)

    def remove(self):
        self.handle.remove()
        super().remove()


class Loaders(Patched):
    """Before each batch is fetched. All loaders are one: a step may draw from several."""

    kind = "loader"

    def __init__(self, observers):
        super().__init__()
        self.observers = observers

    def install(self, torch, heard):
        took = self.observers.loader_ns

        def make(original):
            def __next__(iterator):
                heard("loader", id(getattr(iterator, "_dataset", None)))
                begin = perf_counter_ns()
                batch = original(iterator)
                took.append(perf_counter_ns() - begin)
                return batch

            return __next__

        self._listen(make)

    def install_tick(self, torch, anchor, steps):
        def make(original):
            def __next__(iterator):
                if id(getattr(iterator, "_dataset", None)) == anchor:
                    steps.tick()
                return original(iterator)

            return __next__

        self._listen(make)

    def _listen(self, make):
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        self.patches.replace(_BaseDataLoaderIter, "__next__", make)


class Forwards:
    """Before each forward of an outermost module; ``key`` is the module's id."""

    kind = "forward"

    def __init__(self):
        self.modules = {}  # id -> weak reference

    def install(self, torch, heard):
        from torch.nn.modules.module import Module, register_module_forward_pre_hook

        inner = Module._call_impl.__code__

        def hook(module, arguments):
            frame, calls = sys._getframe(1), 0
            while frame is not None:
                if frame.f_code is inner:
                    calls += 1
                    if calls > 1:
                        return
                frame = frame.f_back
            self.modules[id(module)] = weakref.ref(module)
            heard("forward", id(module))

        self.handle = register_module_forward_pre_hook(hook)

    def install_tick(self, torch, anchor, steps):
        """A hook on that one module: a global one would slow every module's call."""
        thread = threading.get_ident()

        def hook(module, arguments):
            if threading.get_ident() == thread:
                steps.tick()

        module = self.modules[anchor]()
        if module is not None:
            self.handle = module.register_forward_pre_hook(hook)

    def remove(self):
        self.handle.remove()


class CompiledForwards(Patched):
    """Before each call of a module made by ``torch.compile``: no hook that would be compiled in."""

    kind = "forward"

    def install(self, torch, heard):
        self._listen(lambda module: heard("forward", id(module)))

    def install_tick(self, torch, anchor, steps):
        self._listen(lambda module: steps.tick() if id(module) == anchor else None)

    def _listen(self, before):
        from torch._dynamo.eval_frame import OptimizedModule

        def make(original):
            def __call__(module, *arguments, **named):
                before(module)
                return original(module, *arguments, **named)

            return __call__

        self.patches.replace(OptimizedModule, "__call__", make, inherited=True)


class Replays(Patched):
    """After each replay of a CUDA graph; heard of once a graph holds an optimizer's step."""

    kind = "replay"

    def install(self, torch, heard):
        self._listen(torch, lambda graph: heard("replay", id(graph)))

    def install_tick(self, torch, anchor, steps):
        self._listen(torch, lambda graph: steps.tick() if id(graph) == anchor else None)

    def _listen(self, torch, after):
        def make(original):
            def replay(graph):
                original(graph)
                after(graph)

            return replay

        self.patches.replace(torch.cuda.CUDAGraph, "replay", make)


class Marks(Patched):
    """At the end of each ``record_function("step")``."""

    kind = "mark"

    def install(self, torch, heard):
        self._listen(lambda: heard("mark", 0))

    def install_tick(self, torch, anchor, steps):
        self._listen(steps.tick)

    def _listen(self, after):
        from torch.autograd.profiler import record_function

        def make(original):
            def __exit__(mark, *error):
                result = original(mark, *error)
                if mark.name in STEP_MARKS and error[0] is None:
                    after()
                return result

            return __exit__

        self.patches.replace(record_function, "__exit__", make)


class ProfilerSteps(Patched):
    """After each ``step()`` of the script's own torch.profiler."""

    kind = "profiler"

    def install(self, torch, heard):
        self._listen(lambda: heard("profiler", 0))

    def install_tick(self, torch, anchor, steps):
        self._listen(steps.tick)

    def _listen(self, after):
        from torch.profiler import profile

        def make(original):
            def step(profiler):
                result = original(profiler)
                after()
                return result

            return step

        self.patches.replace(profile, "step", make)
