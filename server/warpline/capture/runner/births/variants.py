"""How many modules of one class torch.compile would compile apart from each other.

It compiles the code of a class once for all of its modules, and again for what it takes for constants: the
shapes of parameters, and whole numbers, texts and flags that the code reads as attributes of a module. Floats
become variables, and an attribute that no code reads changes nothing. Nor does it change anything to compile
each module by itself: they share what is compiled for their code (all counted with torch 2.13).
"""

from __future__ import annotations

import collections
from types import FunctionType, ModuleType
from typing import Any

from ....wire.sites import RECOMPILE_LIMIT

_CONSTANT = (bool, int, str)


def counted(torch: ModuleType, modules: list[Any]) -> dict[type, int]:
    """The number for each class of ``modules`` that is the script's own, and has more than torch.compile
    compiles in one place."""
    found: dict[type, list[Any]] = collections.defaultdict(list)
    for module in modules:
        if not type(module).__module__.startswith("torch."):
            found[type(module)].append(module)
    names: dict[type, frozenset[str]] = {}
    numbers: dict[type, int] = {}
    for kind, some in found.items():
        try:
            if len(some) > RECOMPILE_LIMIT:
                numbers[kind] = len({_constants(module, names) for module in some})
        except Exception:  # a module without what every module has
            continue
    return numbers


def _constants(module: Any, names: dict[type, frozenset[str]]) -> tuple[Any, ...]:
    """What the code of a module and its parts takes for constants."""
    found: list[Any] = []
    for part in module.modules():
        kind = type(part)
        if kind not in names:
            names[kind] = _read_by(kind)
        given = part.__dict__
        read = names[kind]
        found.append((kind, tuple((name, given[name]) for name in read if _is_constant(given.get(name)))))
        found.extend(tuple(one.shape) for one in part._parameters.values() if one is not None)
    return tuple(found)


def _is_constant(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(type(one) in _CONSTANT for one in value)
    return type(value) in _CONSTANT


def _read_by(kind: type) -> frozenset[str]:
    """Names of the attributes that methods of a class read, but for the one that makes it."""
    if kind.__module__.startswith("torch."):
        return frozenset(getattr(kind, "__constants__", ()))
    own = [value for base in kind.__mro__ for value in _methods(base)]
    return frozenset(name for function in own for name in function.__code__.co_names)


def _methods(base: type) -> list[FunctionType]:
    if base.__module__.startswith("torch."):
        return []
    return [
        one for one in vars(base).values() if isinstance(one, FunctionType) and one.__name__ != "__init__"
    ]
