"""The kinds of device: one module each, with one class ``Device``. A new module is found by itself."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType
from typing import List, Type

from ..kind import Host, Kind

_found: List[Type[Kind]] = []


def used(torch: ModuleType) -> Kind:
    """The device that the script uses; the processors, as long as it uses no other."""
    if not _found:
        for entry in pkgutil.iter_modules(__path__):
            _found.append(importlib.import_module("." + entry.name, __name__).Device)
    for kind in _found:
        device = kind(torch)
        if kind.accelerated and device.used():
            return device
    return Host(torch)
