"""Where loaders, optimizers, modules and wrappers were made, and with what."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from ....wire.sites import Untrained
from ..imports import when_imported
from ..lines.userfiles import Location
from ..patches import Patches
from . import describe, variants
from .contexts import Contexts
from .untrained import Evaluated, Others

if TYPE_CHECKING:
    from ..lines.names import QualifiedNames
    from ..lines.userfiles import UserFiles
    from ..patches import Function
    from .arguments import Arguments

MOST_MODULES = 20_000  # largest number of modules noted


class Birth(NamedTuple):
    """How the script reached a place: the ``way`` (places of the calls), its frames and the arguments."""

    way: tuple[Any, ...] = ()
    frames: Sequence[dict[str, Any]] = ()
    arguments: Sequence[dict[str, Any]] = ()


NO_BIRTH = Birth()
MOST_FRAMES = 30
#: (kind, place, weak reference, facts known at once, uses, birth)
Entry = tuple[str, Location, Any, dict[str, Any], set[tuple[str, int]], Birth]
#: Facts that are summed over loaders made one after another by the same lines.
SUMMED = ("epochs_started", "wait_ms", "starts_timed")


class Sites:
    """Watches constructors. ``found()`` reads the facts from the objects that are still alive."""

    def __init__(
        self, user_files: UserFiles, names: QualifiedNames, arguments: Arguments | None = None
    ) -> None:
        self.arguments = arguments  # None: arguments are not recorded
        #: Key: kind, type and all user frames.
        self.births: dict[tuple[Any, ...], Birth] = {}
        self.user_files = user_files
        self.names = names
        self.patches = Patches()
        self.contexts = Contexts(self)
        self.evaluated = Evaluated(self)
        self.others = Others(self)
        self.made: list[Entry] = []
        self.by_id: dict[int, Entry] = {}  # by id(object): its entry in ``made``
        self.begun: set[int] = set()  # ids of the births of loaders that were iterated
        self.modules = 0
        self.compiled = False
        self.compiling: Callable[[], None] | None = None  # called when the script asks torch to compile
        self.iterating: Callable[[Any], None] | None = None  # called when a loader begins an epoch

    def install(self, torch: ModuleType) -> None:
        """Watch the constructors of loaders, optimizers, modules and wrappers, the iteration of loaders, and
        ``torch.compile``."""
        self.torch = torch
        from torch.utils.data import DataLoader

        self._watch(DataLoader, "loader")
        self._watch(torch.optim.Optimizer, "optimizer")
        self._watch(torch.nn.parallel.DataParallel, "parallel")
        self._watch(torch.nn.parallel.DistributedDataParallel, "parallel")
        self._watch_modules(torch.nn.Module)
        self.evaluated.install(torch.nn.Module)
        self.others.install(torch.nn.Module)
        when_imported(
            "torch.distributed.fsdp.fully_sharded_data_parallel",
            lambda module: self._watch(module.FullyShardedDataParallel, "parallel"),
        )
        self._watch_iterations(DataLoader)
        self.contexts.install(torch)
        self.patches.replace(torch, "compile", self._watched_compile)

    def remove(self) -> None:
        """Put torch's own back."""
        self.contexts.remove()
        self.patches.restore()

    def found(self) -> list[dict[str, Any]]:
        """The sites as dicts, one for each place, kind and type."""
        sites: dict[tuple[Any, ...], dict[str, Any]] = {}
        different = variants.counted(self.torch, self.living("module"))
        for kind, place, reference, facts, uses, birth in self.made:
            thing = reference() if reference is not None else None
            facts = {**describe.facts(self.torch, kind, thing), **facts} if thing is not None else facts
            if type(thing) in different:
                facts["variants"] = different[type(thing)]
            # If one line makes loaders for several callers (train, test), these are several sites.
            which = birth.way if kind == "loader" else facts.get("construction")
            key = kind, place, facts.get("type"), which
            known = sites.get(key)
            if known is None:
                sites[key] = {
                    "kind": kind, "file": place[0], "line": place[1], "function": place[2],
                    "facts": facts, "uses": set(uses),
                    "frames": birth.frames, "arguments": birth.arguments,
                }  # fmt: skip
            else:
                known["uses"] |= uses
                if kind == "module":
                    known["facts"]["count"] = known["facts"].get("count", 1) + 1
                elif kind == "loader":
                    _add_loader(known["facts"], facts)
                elif kind == Untrained.KIND:
                    known["facts"]["weights"] += facts["weights"]
                elif kind == "optimizer":
                    _add_optimizer(known["facts"], facts)
        return [{**site, "uses": sorted(site["uses"])} for site in sites.values()]

    def has(self, kind: str) -> bool:
        """Whether the script made anything of this kind."""
        return any(entry[0] == kind for entry in self.made)

    def living(self, kind: str) -> list[Any]:
        """The objects of that kind that are still alive."""
        made = [entry[2]() for entry in self.made if entry[0] == kind and entry[2] is not None]
        return [thing for thing in made if thing is not None]

    def use(self, thing: Any, frame: FrameType | None) -> None:
        """Note the user's line at or outside ``frame`` as one where ``thing`` is used."""
        entry = self.by_id.get(id(thing))
        if entry is not None:
            self.used(entry, frame)

    def used(self, entry: Entry, frame: FrameType | None) -> None:
        """The same of what was noted as ``entry``."""
        user = self.user_files.nearest(frame)
        if user is not None:
            entry[4].add((self.user_files[user.f_code.co_filename] or "", user.f_lineno))

    def place(self, frame: FrameType | None) -> Location | None:
        user = self.user_files.nearest(frame)
        if user is None:
            return None
        path = self.user_files[user.f_code.co_filename] or ""
        return path, user.f_lineno, self.names.of(user.f_code, path)

    def add(
        self, kind: str, place: Location, thing: Any, facts: dict[str, Any], birth: Birth = NO_BIRTH
    ) -> None:
        """Note where ``thing`` was made and with what. It is held weakly: a script's objects are not kept
        alive."""
        reference = weakref.ref(thing) if thing is not None else None
        entry: Entry = (kind, place, reference, facts, set(), birth)
        self.made.append(entry)
        if thing is not None:
            self.by_id[id(thing)] = entry

    def birth(
        self,
        kind: str,
        frame: FrameType,
        thing: Any,
        original: Function,
        positional: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Birth:
        """Frames and arguments, determined once for each way in which the script reaches a place."""
        if self.arguments is None:
            return NO_BIRTH
        # The nearest line tells the modules of a model apart; they are too many for more.
        way = (kind, type(thing), *self.arguments.way(frame, 1 if kind == "module" else MOST_FRAMES))
        known = self.births.get(way)
        if known is None:
            frames = self.arguments.frames(frame)
            found = self.arguments.of(frame, thing, original, positional, named)
            known = self.births[way] = Birth(way, frames, found)
        return known

    def _watch(self, owner: Any, kind: str) -> None:
        def make(original: Function) -> Function:
            def __init__(self_: Any, *arguments: Any, **named: Any) -> None:
                original(self_, *arguments, **named)
                place = self.place(sys._getframe(1))
                if place is not None:
                    facts = describe.arguments(kind, arguments, named)
                    if kind == "loader":
                        # `for batch in DataLoader(...)` keeps only the iterator: read it while it lives.
                        facts = {**describe.facts(self.torch, kind, self_), **facts}
                    again = self._remade(self_, sys._getframe(1)) if kind == "loader" else None
                    if again is not None:
                        self.add(kind, again[1], self_, facts, again[5])
                        return
                    birth = self.birth(kind, sys._getframe(1), self_, original, arguments, named)
                    if id(birth) in self.begun:  # the loader before it was iterated
                        facts["made"] = 2
                    self.add(kind, place, self_, facts, birth)

            return __init__

        self.patches.replace(owner, "__init__", make)

    def _remade(self, loader: Any, frame: FrameType) -> Entry | None:
        """The entry of the loader that a library makes ``loader`` from, as accelerate's ``prepare`` does."""
        maker = outside_constructors(frame, loader)
        if maker is None or self.user_files[maker.f_code.co_filename] is not None:
            return None
        entry: Entry
        for entry in reversed(self.made):
            other = entry[2]() if entry[0] == "loader" and entry[2] is not None else None
            if other is None or other is loader or other.dataset is not loader.dataset:
                continue
            if other.collate_fn is loader.collate_fn:
                return entry
        return None

    def _watch_modules(self, owner: Any) -> None:
        """Watch modules made by a user line directly, not those that a library makes."""

        def make(original: Function) -> Function:
            def __init__(self_: Any, *arguments: Any, **named: Any) -> None:
                original(self_, *arguments, **named)
                if self.modules < MOST_MODULES:
                    self.others.constructed(self_, sys._getframe(1))
                    frame = outside_constructors(sys._getframe(1), self_)
                    if frame is not None and self.user_files[frame.f_code.co_filename] is not None:
                        place = self.place(frame)
                        if place is not None:
                            self.modules += 1
                            birth = self.birth("module", sys._getframe(1), self_, original, arguments, named)
                            self.add("module", place, self_, {}, birth)
                    elif frame is not None:
                        self.others.add(self_, frame)

            return __init__

        self.patches.replace(owner, "__init__", make)

    def _watch_iterations(self, owner: Any) -> None:
        def make(original: Function) -> Function:
            def __iter__(self_: Any) -> Any:
                self.use(self_, sys._getframe(1))
                if self.iterating is not None:
                    self.iterating(self_)
                entry = self.by_id.get(id(self_))
                if entry is not None:
                    entry[3]["epochs_started"] = entry[3].get("epochs_started", 0) + 1
                    if entry[5] is not NO_BIRTH:
                        self.begun.add(id(entry[5]))
                return original(self_)

            return __iter__

        self.patches.replace(owner, "__iter__", make)

    def _watched_compile(self, original: Function) -> Function:
        def compile(model: Any = None, **named: Any) -> Any:
            self.compiled = True
            if self.compiling is not None:
                self.compiling()
            place = self.place(sys._getframe(1))
            if place is not None:
                kept: dict[str, Any] = {
                    key: named[key] for key in ("mode", "fullgraph", "dynamic") if key in named
                }
                kept["backend"] = str(named.get("backend", "inductor"))
                birth = self.birth("compile", sys._getframe(1), model, original, (), named)
                self.add("compile", place, None, kept, birth)
            return original(model, **named)

        return compile


def _add_loader(known: dict[str, Any], later: dict[str, Any]) -> None:
    """Merge the facts of a later loader of the same lines into ``known``; existing facts stay. ``made``
    counts loaders that were made after the one before had been iterated."""
    made = known.get("made", 1) + later.get("made", 1) - 1
    sums = {name: known.get(name, 0) + later[name] for name in SUMMED if name in later}
    known.update({**later, **known, **sums, "made": made})


def _add_optimizer(known: dict[str, Any], later: dict[str, Any]) -> None:
    """Count a later optimizer of the same line, alive as well. The other facts stay those of the first."""
    if "shapes" in known and "shapes" in later:
        known["made"] = known.get("made", 1) + 1
        known["all_shapes"] = [*known.get("all_shapes", known["shapes"]), *later["shapes"]]


def outside_constructors(frame: FrameType | None, thing: Any) -> FrameType | None:
    """The frame in which ``thing`` is being made: the first outside its chain of ``__init__``."""
    while frame is not None and frame.f_code.co_name == "__init__":
        arguments = frame.f_code.co_varnames
        if not arguments or frame.f_locals.get(arguments[0]) is not thing:
            return frame
        frame = frame.f_back
    return frame
