"""Surveys one step outside timing and capture: copies, syncs, tensors made on the host."""

from __future__ import annotations

import sys
import warnings
import weakref
from time import perf_counter_ns
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from torch.overrides import TorchFunctionMode, handle_torch_function

from ....wire.memory import free_bytes
from ..device.kind import Host
from ..modes import taken_off
from ..patches import Patches
from .reads import caller, watch_synchronize, what_waits

if TYPE_CHECKING:
    from ..births.sites import Sites
    from ..lines.userfiles import Location
    from ..patches import Function

FACTORIES = frozenset({
    "zeros", "ones", "full", "empty", "rand", "randn", "randint", "arange", "linspace", "logspace", "eye",
    "tensor", "as_tensor", "from_numpy", "randperm", "zeros_like", "ones_like", "full_like", "empty_like",
    "rand_like", "randn_like", "normal", "bernoulli", "tril_indices", "triu_indices", "asarray",
    "new_zeros", "new_ones", "new_full", "new_empty", "new_tensor",
})  # fmt: skip


#: Factories that convert existing data. A device cannot generate that data itself.
OF_DATA = frozenset({"tensor", "as_tensor", "asarray", "new_tensor", "from_numpy", "frombuffer"})
#: Code between a batch and the loop that asks for it.
LOADING = "/torch/utils/data/"
OVERRIDES = handle_torch_function.__code__.co_filename
MOST_FRAMES = 40
MOST_USES = 20  # lines that work on a tensor between its making and its copy


class HostMade(NamedTuple):
    """A tensor made on the host: the ``place`` and ``factory`` that made it, the lines that used it."""

    reference: Any  # weak
    place: Location
    factory: str
    uses: tuple[tuple[str, int], ...] = ()


class Survey(TorchFunctionMode):  # type: ignore[misc]  # torch is not here where types are checked
    """Entered and left at step boundaries. ``sites`` and ``flags`` are what it saw."""

    def __init__(self, torch: ModuleType, sites: Sites) -> None:
        super().__init__()
        self.torch = torch
        self.place, self.user_files = sites.place, sites.user_files
        self.patches = Patches()
        #: (kind, place, what) -> facts
        self.sites: dict[tuple[str, Location, str | None], dict[str, Any]] = {}
        self.uses: dict[tuple[str, Location, str | None], dict[tuple[str, int], None]] = {}
        self.flags: dict[str, Any] = {"autocast": False, "grad_enabled_in_step": False}
        self.host_made: dict[int, HostMade] = {}  # by id(tensor)
        #: Of what a place copies from pageable memory: all of the memory around it, by its address.
        self.wholes: dict[Location, dict[int, int]] = {}
        self.began_ns = 0  # 0: it does not run

    def start(self) -> None:
        """Watch copies, synchronizations and tensors made on the host. Slows the step."""
        self._enter()
        self.began_ns = perf_counter_ns()

    def _enter(self) -> None:
        watch_synchronize(self.torch, self.patches, self._waited)
        for name in ("from_numpy", "frombuffer"):  # which torch's modes are not told of
            self.patches.replace(self.torch, name, self._told)
        self.patches.replace(warnings, "showwarning", _at_the_caller)
        self.__enter__()

    def _leave(self) -> None:
        leave(self)
        self.patches.restore()

    def pause(self) -> None:
        """Watch nothing while code runs that would be compiled again for that."""
        self._note_flags()
        self._leave()

    def resume(self) -> None:
        """Go on after that."""
        self._enter()

    def stop(self) -> None:
        """End the survey and note how long the step took."""
        if self.began_ns:
            self.flags["surveyed_ms"] = (perf_counter_ns() - self.began_ns) / 1e6
            self.began_ns = 0
        self._leave()

    def __torch_function__(
        self,
        function: Function,
        types: Any,
        arguments: tuple[Any, ...] = (),
        named: dict[str, Any] | None = None,
    ) -> Any:
        named = named or {}
        began = perf_counter_ns()
        result = function(*arguments, **named)
        took = perf_counter_ns() - began
        try:
            self._note(getattr(function, "__name__", ""), arguments, named, result, took)
        except Exception:
            pass
        return result

    def _note(
        self, name: str, arguments: tuple[Any, ...], named: dict[str, Any], result: Any, took_ns: int
    ) -> None:
        torch = self.torch
        self._note_flags()
        if name in ("to", "cuda", "type"):
            self._moved(arguments[0], arguments, named, result, took_ns)
        if name == "__setitem__" and arguments[0].device.type == "cpu":
            self._filled(arguments[0], arguments[2])
        if isinstance(result, torch.Tensor) and result.device.type == "cpu":
            if name in FACTORIES:
                self._made(name, result, sys._getframe(2))
            else:
                self._computed(arguments, result)
        what = what_waits(torch, name, arguments, named)
        if what is not None:
            self._waited(what, sys._getframe(2), took_ns)

    def _note_flags(self) -> None:
        torch = self.torch
        if torch.is_autocast_enabled():
            self.flags["autocast"] = True
            self.flags["autocast_dtype"] = str(torch.get_autocast_dtype("cuda")).replace("torch.", "")
        if torch.is_autocast_enabled("cpu"):
            self.flags["autocast"] = True
        if torch.is_grad_enabled():
            self.flags["grad_enabled_in_step"] = True
        if torch.is_anomaly_enabled():
            self.flags["anomaly_mode"] = True

    def _waited(self, what: str, frame: FrameType | None, took_ns: int) -> None:
        place = self.place(frame)
        if place is None:
            return
        asked = caller(frame)
        direct = asked is not None and self.user_files[asked.f_code.co_filename] is not None
        facts = self.sites.setdefault(
            ("sync", place, what), {"what": what, "calls": 0, "wait_ms": 0.0, "direct": direct}
        )
        facts["calls"] += 1
        facts["wait_ms"] += took_ns / 1e6

    def _told(self, original: Function) -> Function:
        def told(*arguments: Any, **named: Any) -> Any:
            result = original(*arguments, **named)
            self._made(original.__name__, result, sys._getframe(1))
            return result

        return told

    def _made(self, name: str, tensor: Any, frame: FrameType) -> None:
        place = self.place(frame)
        if place is not None and not loads(frame):
            self.host_made[id(tensor)] = HostMade(weakref.ref(tensor), place, name)

    def _computed(self, arguments: tuple[Any, ...], tensor: Any) -> None:
        """A result computed only from tensors made on the host counts as made on the host."""
        given = [each for each in flat(arguments) if isinstance(each, self.torch.Tensor) and each.dim() > 0]
        made = [found for each in given if (found := self._known(each)) is not None]
        place = self.place(sys._getframe(3))
        if not made or len(made) < len(given) or any(one.factory in OF_DATA for one in made) or place is None:
            return
        lines = dict.fromkeys([*(use for one in made for use in one.uses), place[:2]])
        first = made[0]
        self.host_made[id(tensor)] = first._replace(
            reference=weakref.ref(tensor),
            uses=tuple(line for line in lines if line != first.place[:2])[:MOST_USES],
        )

    def _filled(self, tensor: Any, value: Any) -> None:
        """Part of a tensor was written. If the value is not made here, the tensor holds data from now on."""
        for one in (tensor, tensor._base):  # a row of it is a tensor of its own
            made = self._known(one)
            place = self.place(sys._getframe(3))
            if made is None or place is None:
                continue
            source = self._known(value) if getattr(value, "ndim", 0) else made
            if source is None or source.factory in OF_DATA:
                del self.host_made[id(one)]
            elif place[:2] != made.place[:2]:
                lines = dict.fromkeys([*made.uses, *source.uses, place[:2]])
                self.host_made[id(one)] = made._replace(uses=tuple(lines)[:MOST_USES])

    def _known(self, tensor: Any) -> HostMade | None:
        found = self.host_made.get(id(tensor))
        return found if found is not None and found.reference() is tensor else None

    def _moved(
        self, source: Any, arguments: tuple[Any, ...], named: dict[str, Any], result: Any, took_ns: int
    ) -> None:
        if source is result or not isinstance(result, self.torch.Tensor):
            return
        waits = not (named.get("non_blocking") or any(value is True for value in arguments[1:3]))
        if source.device.type != "cpu":
            if result.device.type == "cpu" and waits:
                self._waited("cpu", sys._getframe(3), took_ns)
            return
        if result.device.type == "cpu":
            return
        size = source.numel() * source.element_size()
        pinned = source.is_pinned() if self.torch.cuda.is_available() else False
        known = self._count("to", None, {"non_blocking": not waits, "pinned": pinned}, size)
        if not pinned and (place := self.place(sys._getframe(3))) is not None:
            memory = source.untyped_storage()
            self.wholes.setdefault(place, {})[memory.data_ptr()] = memory.nbytes()
        if waits and known is not None:
            known["wait_ms"] = known.get("wait_ms", 0.0) + took_ns / 1e6
        made = self._known(source)
        if made is not None:
            facts = {"device": "cpu", "to": str(result.device), "op": made.factory}
            self._count("tensor", made.factory, facts, size, made.place)
            moved = self.place(sys._getframe(3))
            uses = self.uses.setdefault(("tensor", made.place, made.factory), {})
            uses.update(dict.fromkeys([*made.uses, *([moved[:2]] if moved is not None else [])]))

    def _count(
        self,
        kind: str,
        what: str | None,
        facts: dict[str, Any],
        size: int | None = None,
        place: Location | None = None,
    ) -> dict[str, Any] | None:
        place = place or self.place(sys._getframe(1))
        if place is None:
            return None
        known = self.sites.setdefault((kind, place, what), {**facts, "calls": 0})
        known["calls"] += 1
        if size is not None:
            known["bytes"] = known.get("bytes", 0) + size
        return known

    def found(self) -> list[dict[str, Any]]:
        """The sites of what was seen, each with the other lines that use it."""
        now: dict[str, int] = {}
        if self.wholes:
            free = free_bytes()
            now = {"resident_bytes": Host(self.torch).allocated_bytes()}
            now |= {"free_bytes": free} if free is not None else {}
        for place, wholes in self.wholes.items():
            self.sites["to", place, None].update(now, whole_bytes=sum(wholes.values()))
        return [
            {
                "kind": kind,
                "file": place[0],
                "line": place[1],
                "function": place[2],
                "facts": facts,
                "uses": [list(use) for use in self.uses.get((kind, place, what), {}) if use != place[:2]],
            }
            for (kind, place, what), facts in self.sites.items()
        ]


def loads(frame: FrameType | None) -> bool:
    """Whether a loader is putting a batch together at ``frame``: tensors made for that are data."""
    for _ in range(MOST_FRAMES):
        if frame is None:
            return False
        if LOADING in frame.f_code.co_filename.replace("\\", "/"):
            return True
        frame = frame.f_back
    return False


def flat(values: Any) -> list[Any]:
    """``values`` with the parts of lists and tuples in their places."""
    found: list[Any] = []
    for value in values:
        found += flat(value) if isinstance(value, (list, tuple)) else [value]
    return found


def leave(mode: Any) -> None:
    """Take ``mode`` off torch's stack of modes."""
    from torch.overrides import _get_current_function_mode_stack, _pop_mode, _push_mode

    taken_off(mode, _get_current_function_mode_stack(), _pop_mode, _push_mode)


def _at_the_caller(original: Function) -> Function:
    """A warning about the caller of one of torch's functions, which is ours during the survey, is about the
    script's line: it is given there, unless it was given there before."""

    def showwarning(message: Any, category: Any, filename: str, lineno: int, *others: Any) -> None:
        frame: FrameType | None = sys._getframe(1) if filename == __file__ else None
        while frame is not None and frame.f_code.co_filename != __file__:
            frame = frame.f_back
        frame = frame.f_back if frame is not None else None
        if frame is not None and frame.f_code.co_filename == OVERRIDES and frame.f_back is not None:
            frame = frame.f_back.f_back  # called by a function in Python, which its caller called
        if frame is None:
            original(message, category, filename, lineno, *others)
            return
        known = frame.f_globals.setdefault("__warningregistry__", {})
        name = frame.f_globals.get("__name__")
        warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, name, known)

    return showwarning
