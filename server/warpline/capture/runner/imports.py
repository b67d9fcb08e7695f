"""The runner's import hooks: call back when torch is imported, and let the script's own modules win."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_OLDEST = (2, 4)
_AT_START = frozenset(sys.builtin_module_names) | {
    "site", "os", "posixpath", "genericpath", "stat", "_stat", "codecs", "encodings", "io", "abc",
    "_abc", "sys", "_collections_abc", "_sitebuiltins", "zipimport", "importlib", "runpy", "pkgutil",
}  # fmt: skip


def torch_problem() -> str | None:
    """One line about a missing or too old torch, else None. Does not import it."""
    try:
        spec = importlib.util.find_spec("torch")
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        return "%s has no torch: name the interpreter that has it with --python" % sys.executable
    version = _version(spec.submodule_search_locations[0])
    if version is not None and version[0] < _OLDEST:
        wanted = ".".join(map(str, _OLDEST))
        return "%s has torch %s; Warpline needs %s or newer" % (sys.executable, version[1], wanted)
    return None


def _version(folder: str) -> tuple[tuple[int, int], str] | None:
    try:
        with open(os.path.join(folder, "version.py"), encoding="utf-8") as file:
            found = re.search(r"__version__\s*=\s*['\"]((\d+)\.(\d+)[^'\"]*)", file.read())
    except OSError:
        return None
    return ((int(found[2]), int(found[3])), found[1]) if found else None


def give_way(folder: str) -> None:
    """Forget standard-library modules that we imported if ``folder`` has modules of the same name.

    ``python script.py`` would let the script's own ``queue.py`` win; ours are kept by reference.
    """
    try:
        names = {name[:-3] if name.endswith(".py") else name for name in os.listdir(folder)}
    except (OSError, NotADirectoryError):
        return
    for module in list(sys.modules):
        top = module.partition(".")[0]
        if top in names and top not in _AT_START and top != "__main__":
            del sys.modules[module]


_waiting: dict[str, list[Callable[[Any], object]]] = {}
_ran: set[str] = set()  # modules that were waited for and whose code has run


class _Unfinished(ModuleSpec):
    """The class of a module's spec while its code runs: Python says at the end of an import that it is over,
    and nothing else does."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name == "_initializing" and not value:
            self.__class__ = ModuleSpec  # type: ignore[assignment]  # mypy knows no other class of an object
            module = sys.modules.get(self.name)
            for act in _waiting.pop(self.name, ()) if module is not None else ():
                act(module)


def when_imported(name: str, act: Callable[[Any], object]) -> None:
    """Call ``act(module)`` once, right after module ``name`` has been imported (now, if it is).

    A module whose code still runs, because it is what imports torch, is not imported yet."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    if type(spec) is ModuleSpec and getattr(spec, "_initializing", False) and name not in _ran:
        spec.__class__ = _Unfinished
    if module is not None and not isinstance(spec, _Unfinished):
        act(module)
        return
    _waiting.setdefault(name, []).append(act)
    if module is None and _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def stop_waiting() -> None:
    """Take our finder out of the import system."""
    _waiting.clear()
    _ran.clear()
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)


class _Finder:
    """Finds nothing itself: asks the other finders and wraps the loader of a module that is waited for."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in _waiting:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    # Many only ask whether the module is there: what waits stays until it runs.
                    spec.loader = _Loader(spec.loader, name)  # type: ignore[assignment]
                return spec
        return None


class _Loader:
    def __init__(self, loader: Any, name: str) -> None:
        self.loader = loader
        self.name = name

    def __getattr__(self, name: str) -> Any:
        """Whatever else a loader has, such as ``get_source``."""
        if name == "loader":  # it is being copied
            raise AttributeError(name)
        return getattr(self.loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self.loader.create_module(spec)
        return made

    def exec_module(self, module: Any) -> None:
        module.__loader__ = self.loader
        module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        _ran.add(self.name)
        # Another finder may have imported the module while it looked for it: then nothing waits any more.
        for act in _waiting.pop(self.name, ()):
            act(module)


_finder = _Finder()
