"""In processes that tests start: torch without its compiler for as long as nothing asks for it.

``torch.optim`` imports ``torch._dynamo`` for two functions, which do nothing where nothing is compiled:
``disable`` and ``graph_break``. That import is half of the CPU time of a short script. Here the first import
of it gives a module with those two, and the real one takes its place when anything else is asked of it.
``torch.profiler`` imports ``torch._inductor``, and with it all of the compiler, to read one of its settings:
until the compiler is there, it is told that there is no such module.

The fixture ``lean_torch`` puts this folder on ``PYTHONPATH`` for all tests; modules that use ``whole_torch``
do without. The script's interpreter reads this file: Python 3.9, standard library only.
"""

import functools
import importlib
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

NAME, INDUCTOR = "torch._dynamo", "torch._inductor"


def real():
    """The real ``torch._dynamo``, imported now if it was not yet."""
    if isinstance(sys.modules.get(NAME), Lean):
        del sys.modules[NAME]
    return importlib.import_module(NAME)


class Lean(ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):  # others ask every module for its __file__ and the like
            raise AttributeError(name)
        return getattr(real(), name)

    def graph_break(self, *_, **__):
        pass

    def disable(self, function, *words, **options):
        @functools.lru_cache(None)
        def disabled():
            return real().disable(function, *words, **options)

        @functools.wraps(function)
        def undisturbed(*args, **kwargs):
            if isinstance(sys.modules.get(NAME), Lean):
                return function(*args, **kwargs)
            return disabled()(*args, **kwargs)

        undisturbed.__code__ = as_torch(undisturbed.__code__)
        return undisturbed


def as_torch(code):
    """For the runner these are torch's functions, not lines of the user's."""
    return code.replace(co_filename=sys.modules["torch"].__path__[0] + "/_dynamo/eval_frame.py")


def asked_by_the_profiler():
    frame = sys._getframe()
    while frame is not None and frame.f_code.co_name != "prepare_trace":
        frame = frame.f_back
    return frame is not None


class Finder:
    """Finds the lean module first, and the real one when a module within it is imported."""

    def __init__(self):
        self.given = False
        self.known = None

    def find_spec(self, name, path=None, target=None):
        if name == INDUCTOR and isinstance(sys.modules.get(NAME), Lean) and asked_by_the_profiler():
            raise AttributeError(name)  # what its `hasattr(torch, "_inductor")` expects
        if name == NAME and not self.given:
            self.given = True
            return ModuleSpec(name, self, is_package=True)
        if not name.startswith(NAME + ".") or path:
            return None
        path = real().__path__
        if name not in sys.modules:
            return PathFinder.find_spec(name, path)
        self.known = sys.modules[name].__spec__  # the real one brought it along
        return ModuleSpec(name, self)

    def create_module(self, spec):
        if spec.name != NAME:
            return sys.modules[spec.name]
        Lean.graph_break.__code__ = as_torch(Lean.graph_break.__code__)
        return Lean(NAME)

    def exec_module(self, module):
        if not isinstance(module, Lean):
            module.__spec__ = self.known


sys.meta_path.insert(0, Finder())
