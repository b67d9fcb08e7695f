"""What this process would show of a hook: every function and class that a loaded module or class names."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any


def hooks(packages: tuple[str, ...] = ()) -> dict[str, Any]:
    """Name -> what stands there, in all modules or those of ``packages``. Two of them are equal if nothing
    was replaced, added or removed between them; modules that were imported since are left out by ``left``."""
    return {**dict(_named(packages)), **dict(_global())}


def left(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Names that no longer stand for what they stood for."""
    return sorted(name for name, thing in before.items() if after.get(name) != thing)


def _named(packages: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for name, module in list(sys.modules.items()):
        package = name.partition(".")[0]
        if not isinstance(module, ModuleType) or package in ("warpline", "__main__"):
            continue
        if packages and package not in packages:
            continue
        for key, thing in list(vars(module).items()):
            if isinstance(thing, type):
                for attribute, inner in list(vars(thing).items()):
                    if callable(getattr(inner, "__func__", inner)):
                        yield f"{name}.{key}.{attribute}", id(getattr(inner, "__func__", inner))
            elif callable(thing):
                yield f"{name}.{key}", id(thing)


def _global() -> Iterator[tuple[str, Any]]:
    yield "sys.meta_path", [id(finder) for finder in sys.meta_path]
    yield "sys.gettrace", sys.gettrace()
    yield "sys.getprofile", sys.getprofile()
    yield "threading.gettrace", threading._trace_hook  # type: ignore[attr-defined]  # what gettrace() returns from 3.10 on
    yield "gc.callbacks", [id(callback) for callback in gc.callbacks]
    yield "threads", sorted(thread.name for thread in threading.enumerate())
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring is not None:
        yield "sys.monitoring", [(tool, monitoring.get_tool(tool)) for tool in range(6)]
    for name in ("torch.nn.modules.module", "torch.optim.optimizer"):
        for key, hooked in vars(sys.modules[name]).items():
            if key.startswith("_global") and isinstance(hooked, dict):
                yield f"{name}.{key}", list(hooked)
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        yield f"f_trace of {frame.f_code.co_name}", frame.f_trace
