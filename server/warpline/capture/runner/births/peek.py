"""Evaluates an expression in a running frame without running user code."""

from __future__ import annotations

import ast
import inspect
import sys
from types import FrameType, FunctionType, ModuleType
from typing import Any, Dict, List, Mapping, Optional

from .syntax import literal

_OWN_REFERENCES = 3  # to that copy: the frame's, the one here, and the argument of `getrefcount`


class Unknown:
    """A value that is unknown."""


UNKNOWN = Unknown()


def value_of(node: Optional[ast.AST], local: Optional[Mapping[str, Any]], globals_: Dict[str, Any]) -> Any:
    """The object, or :data:`UNKNOWN`. Reads names, attributes that are not properties, and constant
    subscripts of plain containers. Calls nothing."""
    if isinstance(node, ast.Name):
        if local is not None and node.id in local:
            return local[node.id]
        return globals_.get(node.id, UNKNOWN)
    if isinstance(node, ast.Attribute):
        return attribute(value_of(node.value, local, globals_), node.attr)
    if isinstance(node, ast.Subscript):
        index: Any = node.slice
        if type(index).__name__ == "Index":  # Python 3.8's trees
            index = index.value
        known, key = literal(index)
        if not known:
            key = value_of(index, local, globals_)
        return item(value_of(node.value, local, globals_), key)
    known, value = literal(node)
    return value if known else UNKNOWN


def names_of(frame: FrameType, thing: Any) -> List[str]:
    """The variables of ``frame`` that are ``thing``.

    Before Python 3.13 a frame keeps the copy of its variables that is read here, and with it what they were,
    such as a step's tensors. It is emptied, unless the script has it, too (``locals()``), or a trace function
    would write it back.
    """
    found = frame.f_locals
    names = [name for name, value in found.items() if value is thing]
    is_copy = type(found) is dict and frame.f_code.co_flags & inspect.CO_OPTIMIZED
    if is_copy and frame.f_trace is None and sys.getrefcount(found) <= _OWN_REFERENCES:
        found.clear()
    return names


def attribute(thing: Any, name: str) -> Any:
    """``thing.name`` without descriptors that run code."""
    if isinstance(thing, Unknown):
        return UNKNOWN
    try:
        if isinstance(thing, dict) and not isinstance(thing, ModuleType) and name in set(thing):
            return dict.__getitem__(thing, name)  # EasyDict and its like
        own = _own(thing)
        if name in own:
            return own[name]
        modules = own.get("_modules")
        if isinstance(modules, dict) and name in modules:
            return modules[name]
        found = inspect.getattr_static(thing, name)
    except Exception:
        return UNKNOWN
    if isinstance(found, (FunctionType, staticmethod, classmethod)) or not hasattr(type(found), "__get__"):
        return found
    if hasattr(found, "__objclass__") and hasattr(type(found), "__set__"):  # __slots__
        try:
            return found.__get__(thing)
        except Exception:
            return UNKNOWN
    return UNKNOWN


def item(thing: Any, key: Any) -> Any:
    """``thing[key]`` of a plain dict, list or tuple; ``UNKNOWN`` for any other, whose ``__getitem__`` is the
    user's code."""
    try:
        if isinstance(thing, dict) and not isinstance(key, Unknown):
            return dict.__getitem__(thing, key)
        if isinstance(thing, (list, tuple)) and isinstance(key, int):
            return thing[key] if type(thing) in (list, tuple) else UNKNOWN
    except Exception:
        pass
    return UNKNOWN


def _own(thing: Any) -> Mapping[str, Any]:
    try:
        found = object.__getattribute__(thing, "__dict__")
    except Exception:
        return {}
    return found if isinstance(found, (dict, type(type.__dict__))) else {}


def own_attributes(thing: Any) -> Mapping[str, Any]:
    """The instance's own attributes, those in ``__slots__`` left out."""
    return _own(thing)


def locals_of(frame: Optional[FrameType]) -> Optional[Mapping[str, Any]]:
    """The local names of a frame; None without one."""
    return frame.f_locals if frame is not None else None
