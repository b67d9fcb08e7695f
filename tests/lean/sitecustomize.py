"""In processes that tests start: torch without its compiler and other large parts, until they are used.

``torch.optim`` imports ``torch._dynamo`` for two functions, which do nothing where nothing is compiled:
``disable`` and ``graph_break``. That import is half of the CPU time of a short script. Here the first import
of it gives a module with those two, and the real one takes its place when anything else is asked of it.
``torch.profiler`` imports ``torch._inductor``, and with it all of the compiler, to read one of its settings:
until the compiler is there, it is told that there is no such module. ``LATER`` is half of what is left of
``import torch``. A training script does not use it, and it is executed when something needs it.

The fixture ``lean_torch`` puts this folder on ``PYTHONPATH`` for all tests; modules that use ``whole_torch``
do without. The script's interpreter reads this file: Python 3.9, standard library only.
"""

import atexit
import functools
import gc
import importlib
import re
import sys
import threading
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

import _short_waits  # noqa: F401  # ours, beside this file

NAME, INDUCTOR = "torch._dynamo", "torch._inductor"
#: What `import torch` executes and a training script does not use.
LATER = (
    "torch._higher_order_ops",
    "torch._higher_order_ops.invoke_subgraph",
    "torch._meta_registrations",
    "torch.distributed._meta_registrations",
    "torch.distributions",
    "torch.export",
    "torch.func",
    "torch.masked",
    "torch.nn.intrinsic",
    "torch.nn.qat",
    "torch.nn.quantizable",
    "torch.nn.quantized",
    "torch.quantization",
)
#: What it reads of them, and does not use.
PROMISED = {
    "torch.func": ("vmap",),
    "torch._higher_order_ops": ("cond", "while_loop"),
    "torch._higher_order_ops.invoke_subgraph": ("NestedCompileRegionOptions",),
}
#: What needs some of them, also where it does not import them.
NEEDING = (
    "torch._decomp",
    "torch._export",
    "torch._functorch",
    "torch._higher_order_ops",
    "torch._inductor",
    "torch._prims",
    "torch._refs",
    "torch._subclasses",
    "torch.export",
    "torch.func",
    "torch.fx",
    "torch.utils.checkpoint",
)


def real():
    """The real ``torch._dynamo``, imported now if it was not yet."""
    execute()
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


class Later(ModuleType):
    """A module that is executed when something first reads an attribute that only executing gives it."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name in PROMISED.get(self.__name__, ()) and initializing():
            return type(name, (Promised,), {"module": self})
        execute(self)
        return ModuleType.__getattribute__(self, name)


class Promised:
    """Stands for something of a module that is not executed yet: calling it calls that."""

    def __new__(cls, *args, **kwargs):
        execute()
        return getattr(cls.module, cls.__name__)(*args, **kwargs)


WAITING = []  # modules, in the order of their imports
EXECUTING = threading.RLock()


def execute(asked=None):
    """Execute all modules that wait. They import each other in circles, which work in torch's own order only.

    ``asked``: one that another of them needs before its turn.
    """
    with EXECUTING:
        if execute.running:
            if asked in WAITING:
                start(asked)
            return
        execute.running = True
        try:
            while WAITING:
                start(WAITING[0])
        finally:
            execute.running = False


execute.running = False


def start(module):
    WAITING.remove(module)
    module.__class__ = ModuleType
    module.__loader__.real.exec_module(module)


def initializing():
    """Whether torch is being executed. Its spec says so for longer, while others hook into its import."""
    spec = getattr(sys.modules.get("torch"), "__spec__", None)
    return not TorchLoader.done and getattr(spec, "_initializing", False)


class LaterLoader:
    def __init__(self, real):
        self.real = real

    def create_module(self, spec):
        return Later(spec.name)

    def exec_module(self, module):
        WAITING.append(module)


class Imported:
    """Gives the module that another import has brought along."""

    def __init__(self, module):
        self.module = module
        self.spec = module.__spec__

    def create_module(self, spec):
        return self.module

    def exec_module(self, module):
        vars(module)["__spec__"] = self.spec


def imported(module):
    """A spec that only hands over ``module``; it must be the module's own, or Python takes that one."""
    spec = ModuleSpec(module.__name__, Imported(module))
    vars(module)["__spec__"] = spec
    return spec


class TorchLoader:
    """Torch, without the garbage collector's looks at 400,000 new objects that all stay, but for the last.

    Without that, the first look at all of them would come in a step of the script's: Python puts it off until
    there are a quarter more objects only where there has been one.
    """

    done = False

    def __init__(self, real):
        self.real = real

    def create_module(self, spec):
        return self.real.create_module(spec)

    def exec_module(self, module):
        enabled = gc.isenabled()
        gc.disable()
        try:
            self.real.exec_module(module)
        finally:
            if enabled:
                gc.enable()
                gc.collect()
        TorchLoader.done = True
        core = getattr(module, "_C", None)  # a test's stand-in for torch has none
        if hasattr(core, "_set_generator_metaclass"):  # torch._prims does this otherwise
            base = importlib.import_module("torch._opaque_base")
            core._set_generator_metaclass(base.OpaqueBaseMeta)
        for name, package in list(sys.modules.items()):
            if name.partition(".")[0] == "torch" and hasattr(package, "__path__") and package not in WAITING:
                complete(package)


def is_module(package, name):
    full = f"{package.__name__}.{name}"
    return not name.startswith("__") and PathFinder.find_spec(full, package.__path__) is not None


def complete(package):
    """Give a package the modules in it that are imported by what waits, such as ``torch._subclasses``."""
    missing = vars(package).get("__getattr__")

    def __getattr__(name):
        try:
            if missing is not None:
                return missing(name)
        except AttributeError:
            pass
        importing = sys._getframe(1).f_code.co_name == "_handle_fromlist"  # it looks for a module's file next
        if WAITING and not importing and not asked_by_the_profiler() and is_module(package, name):
            execute()
            if name in vars(package):
                return vars(package)[name]
        raise AttributeError(f"module {package.__name__!r} has no attribute {name!r}")

    package.__getattr__ = __getattr__


def loaded_by(loader, spec):
    if spec is not None and spec.loader is not None:
        spec.loader = loader(spec.loader)
    return spec


class Finder:
    """Finds the lean module first, and the real one when a module within it is imported."""

    def __init__(self):
        self.given = False

    def find_spec(self, name, path=None, target=None):
        if name in LATER and initializing():
            return loaded_by(LaterLoader, PathFinder.find_spec(name, path))
        if WAITING and name.startswith(NEEDING) and not initializing() and not asked_by_the_profiler():
            parent = sys.modules.get(name.rpartition(".")[0])
            execute(parent if execute.running else None)
            if name in sys.modules:
                return imported(sys.modules[name])
        if name == "torch":
            return loaded_by(TorchLoader, PathFinder.find_spec(name, path))
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
        return imported(sys.modules[name])

    def create_module(self, spec):
        Lean.graph_break.__code__ = as_torch(Lean.graph_break.__code__)
        return Lean(NAME)

    def exec_module(self, module):
        pass


def knows_torch():
    """Whether this file knows the torch of this interpreter. In 2.14 those of ``LATER`` need one another."""
    spec = PathFinder.find_spec("torch")
    if spec is None or spec.origin is None:
        return True  # a test's stand-in comes from elsewhere
    version = Path(spec.origin).with_name("version.py")
    found = re.search(r"__version__ = '(\d+)\.(\d+)", version.read_text()) if version.exists() else None
    return found is None or (2, 11) <= tuple(map(int, found.groups())) < (2, 14)


if knows_torch():
    sys.meta_path.insert(0, Finder())
atexit.register(gc.freeze)  # runs last: no collection looks at all objects of torch at the end
