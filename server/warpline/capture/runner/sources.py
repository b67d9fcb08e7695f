"""Where the beat of the steps can be heard. Each source calls ``heard(kind, key)`` once a step.

``RANK`` orders them: the explicit ones come before the ones that are guessed from.
"""

import sys
from time import perf_counter_ns

from .patches import Patches

RANK = {"forward": 1, "loader": 2, "optimizer": 3, "mark": 4, "profiler": 5}
STEP_MARKS = ("step", "train_step", "training_step")


class Optimizers:
    """After each ``optimizer.step()``, by torch's global hook; ``key`` is the optimizer's id."""

    kind = "optimizer"

    def __init__(self, observers):
        self.observers = observers

    def install(self, torch, heard):
        from torch.optim.optimizer import register_optimizer_step_post_hook

        stepped = self.observers.stepped

        def hook(optimizer, arguments, named):
            stepped(optimizer, sys._getframe(1))
            heard("optimizer", id(optimizer))

        self.handle = register_optimizer_step_post_hook(hook)

    def remove(self):
        self.handle.remove()


class Loaders:
    """Before each batch is fetched; ``key`` is the iterator's loader."""

    kind = "loader"

    def __init__(self, observers):
        self.observers = observers
        self.patches = Patches()

    def install(self, torch, heard):
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        took = self.observers.loader_ns

        def make(original):
            def __next__(self):
                heard("loader", 0)
                begin = perf_counter_ns()
                batch = original(self)
                took.append(perf_counter_ns() - begin)
                return batch

            return __next__

        self.patches.replace(_BaseDataLoaderIter, "__next__", make)

    def remove(self):
        self.patches.restore()


class Forwards:
    """Before each forward of an outermost module; ``key`` is the module's id."""

    kind = "forward"

    def install(self, torch, heard):
        from torch.nn.modules.module import Module, register_module_forward_pre_hook

        inner = Module._call_impl.__code__

        def hook(module, args):
            frame, calls = sys._getframe(1), 0
            while frame is not None:
                if frame.f_code is inner:
                    calls += 1
                    if calls > 1:
                        return
                frame = frame.f_back
            heard("forward", id(module))

        self.handle = register_module_forward_pre_hook(hook)

    def remove(self):
        self.handle.remove()


class Marks:
    """At the end of each ``record_function("step")``."""

    kind = "mark"

    def __init__(self):
        self.patches = Patches()

    def install(self, torch, heard):
        from torch.autograd.profiler import record_function

        def make(original):
            def __exit__(self, *error):
                result = original(self, *error)
                if self.name in STEP_MARKS and error[0] is None:
                    heard("mark", 0)
                return result

            return __exit__

        self.patches.replace(record_function, "__exit__", make)

    def remove(self):
        self.patches.restore()


class ProfilerSteps:
    """After each ``step()`` of the script's own torch.profiler."""

    kind = "profiler"

    def __init__(self):
        self.patches = Patches()

    def install(self, torch, heard):
        from torch.profiler import profile

        def make(original):
            def step(self):
                result = original(self)
                heard("profiler", 0)
                return result

            return step

        self.patches.replace(profile, "step", make)

    def remove(self):
        self.patches.restore()
