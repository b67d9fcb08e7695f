"""The arguments of a constructor's call, by name, and where each value is written."""

from __future__ import annotations

import inspect
from types import FrameType
from typing import Any, Dict, List, Optional, Set, Tuple

from ..lines.executed import Executed
from ..lines.names import QualifiedNames
from ..lines.userfiles import UserFiles
from ..tracebacks import is_ours
from .describe import plain
from .follow import DEPTH, Follow, Found
from .loaded import Loaded
from .scopes import Scopes
from .syntax import Files

#: The most frames to record, and the most places with followed arguments.
MOST_FRAMES = 30
MOST_PLACES = 400
_PLAIN = (bool, int, float, str, type(None), tuple, list)


class Arguments:
    """Finds arguments. ``of`` is called once per place; its exceptions never reach the script."""

    def __init__(
        self, user_files: UserFiles, names: QualifiedNames, executed: Executed, files: Files
    ) -> None:
        self.user_files = user_files
        self.names = names
        self.loaded = Loaded(self._place)
        self.scopes = Scopes(user_files, files, executed)
        self.follow = Follow(self.scopes, self.loaded)
        self.places = 0

    def _place(self, frame: FrameType) -> Optional[Tuple[str, int]]:
        user = self.user_files.nearest(frame)
        path = self.user_files[user.f_code.co_filename] if user is not None else None
        return (path, user.f_lineno) if user is not None and path is not None else None

    def frames(self, frame: Optional[FrameType]) -> List[Dict[str, Any]]:
        """``wire.births.UserFrame`` of each frame of the user's at or outside ``frame``."""
        found: List[Dict[str, Any]] = []
        while frame is not None and len(found) < MOST_FRAMES:
            path = self.user_files[frame.f_code.co_filename]
            if path is not None:
                function = self.names.of(frame.f_code, path)
                found.append({"file": path, "line": frame.f_lineno, "function": function})
            frame = frame.f_back
        return found

    def way(self, frame: Optional[FrameType], most: int) -> List[Tuple[str, int]]:
        """File (``co_filename``) and line of the innermost user frames, at most ``most``."""
        found: List[Tuple[str, int]] = []
        while frame is not None and len(found) < most:
            if self.user_files[frame.f_code.co_filename] is not None:
                found.append((frame.f_code.co_filename, frame.f_lineno))
            frame = frame.f_back
        return found

    def of(
        self, frame: FrameType, thing: Any, original: Any, positional: Tuple[Any, ...], named: Dict[str, Any]
    ) -> List[Dict[str, Any]]:
        """``wire.births.Argument`` for each argument of the call in the user's code that makes ``thing``.

        ``frame`` called ``original(thing, *positional, **named)``: the user's own, or constructors of a
        library's subclasses, whose arguments are taken instead. Where it passed none, as a module of the
        user's own class does, they are those of that class."""
        self.places += 1
        if self.places > MOST_PLACES:
            return []
        rests = self.scopes.executed.pause()
        try:
            bare = not positional and not named
            outer, inner = self._outside(frame, thing, own=bare)
            if inner is not None:
                found = self._followed(outer, _arguments_of(inner), None)
                return found + self._followed(outer, _extra_of(inner), None, in_order=False)
            bound = inspect.signature(original).bind(thing, *positional, **named)
            passed = set(list(bound.arguments)[1:])
            bound.apply_defaults()
            taken = dict(list(bound.arguments.items())[1:])
            extra = taken.pop(_extra_name(bound.signature), {})
            found = self._followed(outer, taken, passed)
            return found + self._followed(outer, extra, None, in_order=False)
        except Exception:
            return []
        finally:
            if rests:
                self.scopes.executed.resume()

    def named(self, frame: FrameType, values: Dict[str, Any]) -> List[Dict[str, Any]]:
        """``wire.births.Argument`` of ``values``, which the user's call around ``frame`` passes by name."""
        rests = self.scopes.executed.pause()
        try:
            return self._followed(self.user_files.nearest(frame), values, set(values), in_order=False)
        except Exception:
            return []
        finally:
            if rests:
                self.scopes.executed.resume()

    def _outside(
        self, frame: Optional[FrameType], thing: Any, own: bool
    ) -> Tuple[Optional[FrameType], Optional[FrameType]]:
        """The user's frame that makes ``thing``, and the library's outermost constructor below it; ``own``:
        or one of the user's."""
        inner = None
        while frame is not None:
            names = frame.f_code.co_varnames
            constructor = (
                frame.f_code.co_name == "__init__"
                and bool(names)
                and not is_ours(frame.f_code.co_filename)
                and frame.f_locals.get(names[0]) is thing
            )
            if self.user_files[frame.f_code.co_filename] is not None and not (own and constructor):
                break
            inner = frame if constructor else inner
            frame = frame.f_back
        return frame, inner

    def _followed(
        self,
        frame: Optional[FrameType],
        values: Dict[str, Any],
        passed: Optional[Set[str]],
        in_order: bool = True,
    ) -> List[Dict[str, Any]]:
        """``in_order``: ``values`` has all arguments, as the call may pass them without names."""
        scope = self.scopes.of_frame(frame) if frame is not None else None
        call = self.scopes.call_of(frame) if frame is not None else None
        found = []
        for position, (name, value) in enumerate(values.items()):
            if isinstance(value, dict):  # the constructor's own ``**named``
                continue
            holder: Optional[Found] = None
            given = passed is None or name in passed
            known = isinstance(value, _PLAIN) or _is_of_torch(value)
            if given and scope is not None and call is not None and known:
                at = position if in_order else None
                given_here, holder = self.follow.parameters.passed(call, scope, name, at, value, DEPTH)
                given = given_here if passed is None else given
            described = plain(value) if known else type(value).__qualname__
            found.append({"name": name, "value": described, "passed": bool(given), "holder": holder})
        return found


def _is_of_torch(value: Any) -> bool:
    """Whether ``value`` is a torch dtype or device: these count as plain values."""
    return type(value).__module__ == "torch" and type(value).__name__ in ("dtype", "device")


def _extra_name(signature: inspect.Signature) -> str:
    """The parameter that takes ``**named``; "" for none."""
    extra = (one.name for one in signature.parameters.values() if one.kind is one.VAR_KEYWORD)
    return next(extra, "")


def _arguments_of(frame: FrameType) -> Dict[str, Any]:
    """The parameters of a frame that has just begun, the first one left out."""
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    local = frame.f_locals
    return {name: local[name] for name in code.co_varnames[1:count] if name in local}


def _extra_of(frame: FrameType) -> Dict[str, Any]:
    """What such a frame got as ``**named``. A constructor that a decorator made gets all arguments there."""
    code = frame.f_code
    if not code.co_flags & inspect.CO_VARKEYWORDS:
        return {}
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)
    named = frame.f_locals.get(code.co_varnames[count])
    return named if isinstance(named, dict) else {}
