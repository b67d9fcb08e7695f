"""The kinds of device: one module per kind, with its ``CAPABILITIES``.

Rules and stages ask what a device can do, never what it is called. A new module is found by itself; the
runner's side of a kind is in ``capture/runner/device/kinds``.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from warpline.devices.capability import Capability

__all__ = ["Capability", "can", "capabilities", "kinds"]


@cache
def kinds() -> tuple[str, ...]:
    """The kinds there are, as the contract names them."""
    return tuple(entry.name for entry in pkgutil.iter_modules(__path__) if entry.name != "capability")


@cache
def capabilities(kind: str) -> frozenset[Capability]:
    """What devices of ``kind`` can do; nothing for a kind that is not known."""
    if kind not in kinds():
        return frozenset()
    found: frozenset[Capability] = importlib.import_module(f"{__name__}.{kind}").CAPABILITIES
    return found


def can(kind: str, capability: Capability) -> bool:
    """Whether devices of ``kind`` have ``capability``."""
    return capability in capabilities(kind)
