"""Run folder (or a trace of another tool) -> Trace: linked columns of what happened, without attribution."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpline.trace.ahead import Ahead
    from warpline.trace.columns import Trace
    from warpline.trace.linked import read

#: Imported when first asked for: the reading of a large trace begins before the rest is imported.
_MODULES = {
    "Ahead": "warpline.trace.ahead",
    "Trace": "warpline.trace.columns",
    "read": "warpline.trace.linked",
}

__all__ = ["Ahead", "Trace", "read"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)
