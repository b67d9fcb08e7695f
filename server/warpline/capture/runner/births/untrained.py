"""Modules whose parameters ask for gradients that no optimizer takes: where the script says that it does not
train them."""

from __future__ import annotations

import sys
import weakref
from itertools import count
from typing import TYPE_CHECKING, Any, Collection, Dict, List, Set, Tuple

from ....wire.sites import Untrained
from .peek import names_of

if TYPE_CHECKING:
    from types import FrameType

    from ..lines.userfiles import Location
    from ..patches import Function
    from .sites import Sites


MOST_OTHERS = 20_000  # largest number of such modules noted


class Evaluated:
    """Notes the first place where ``eval()`` was called on each module that the code there did not get as an
    argument, and the modules that were asked for gradients again."""

    def __init__(self, sites: Sites) -> None:
        self.sites = sites
        self.places: Dict[int, Tuple[Any, Location]] = {}  # by id; the module is held weakly
        self._asked: List[Any] = []  # weak references

    def install(self, module: Any) -> None:
        """Watch methods of ``torch.nn.Module``; the patches of the sites put them back."""

        def make_eval(original: Function) -> Function:
            def eval(self_: Any) -> Any:
                known = self.places.get(id(self_))
                frame = sys._getframe(1)
                if (known is None or known[0]() is not self_) and not self._is_given(self_, frame):
                    place = self.sites.place(frame)
                    if place is not None:
                        self.places[id(self_)] = (weakref.ref(self_), place)
                return original(self_)

            return eval

        def make_asking(original: Function) -> Function:
            def requires_grad_(self_: Any, requires_grad: bool = True) -> Any:
                if requires_grad:
                    self._asked.append(weakref.ref(self_))
                return original(self_, requires_grad)

            return requires_grad_

        self.sites.patches.replace(module, "eval", make_eval)
        self.sites.patches.replace(module, "requires_grad_", make_asking)

    def _is_given(self, module: Any, frame: FrameType) -> bool:
        """Whether the user's code at ``frame`` got ``module`` as an argument: another call may bring another
        one."""
        user = self.sites.user_files.nearest(frame)
        if user is None:
            return False
        code = user.f_code
        arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        return bool(arguments) and not set(names_of(user, module)).isdisjoint(arguments)

    def modules(self) -> List[Any]:
        """The living modules that were set to evaluate, and still are."""
        return [one for one, _ in self.living() if not one.training]

    def living(self) -> List[Tuple[Any, Location]]:
        """The living modules that were set to evaluate, and where."""
        found = [(reference(), place) for reference, place in self.places.values()]
        return [(one, place) for one, place in found if one is not None]

    def asked(self) -> Set[int]:
        """Ids of the parameters of living modules that ``requires_grad_()`` was called on."""
        found = [one for one in (reference() for reference in self._asked) if one is not None]
        return {id(parameter) for one in found for parameter in one.parameters()}


class Others:
    """Notes where the script got modules that it does not construct itself: copies, and a library's."""

    def __init__(self, sites: Sites) -> None:
        self.sites = sites
        self.places: Dict[int, Tuple[Any, Location, bool]] = {}  # by id; held weakly; whether it is a copy
        #: By id, of any module: it, held weakly, the ids of those whose constructors ran around its own, and
        #: how many were constructed before.
        self.inside: Dict[int, Tuple[Any, Set[int], int]] = {}

        self._numbers = count()

    def install(self, module: Any) -> None:
        """Watch copies of ``torch.nn.Module``; the patches of the sites put it back."""

        def make(original: Function) -> Function:
            def __setstate__(self_: Any, state: Any) -> Any:
                self.add(self_, sys._getframe(1), True)
                return original(self_, state)

            return __setstate__

        self.sites.patches.replace(module, "__setstate__", make)

    def add(self, module: Any, frame: FrameType, copied: bool = False) -> None:
        """Note ``module``, which code that the user's line at ``frame`` calls has made."""
        place = self.sites.place(frame) if len(self.places) < MOST_OTHERS else None
        if place is not None:
            self.places[id(module)] = (weakref.ref(module), place, copied)

    def constructed(self, module: Any, frame: FrameType | None) -> None:
        """Note which constructors run around that of ``module`` at ``frame``."""
        around: Set[int] = set()
        while frame is not None and len(self.inside) < MOST_OTHERS:
            code = frame.f_code
            if code.co_name == "__init__" and code.co_varnames:
                around.add(id(frame.f_locals.get(code.co_varnames[0])))
            frame = frame.f_back
        self.inside[id(module)] = (weakref.ref(module), around, next(self._numbers))

    def grew(self, module: Any, asked: Set[int]) -> bool:
        """Whether ``module`` has parameters of those ids by parts that were made after its constructor had
        ended: what is said where it is made is not said of them."""
        number = self.inside.get(id(module), (None, (), 0))[2]
        place = self.places.get(id(module), (None, None))[1]
        for part in list(module.modules())[1:]:
            known = self.inside.get(id(part))
            if known is None or known[0]() is not part or known[2] < number:
                continue
            own = {id(one) for one in part.parameters(recurse=False)}
            same = place is not None and self.places.get(id(part), (None, None))[1] == place
            if own & asked and id(module) not in known[1] and not same:
                return True
        return False

    def living(self) -> List[Tuple[Any, Location, bool]]:
        """The living ones with where they were made, and whether they are copies, without their parts."""
        found = [(one[0](), *one[1:]) for one in self.places.values()]
        made = [one for one in found if one[0] is not None]
        inner = {id(part) for one, _, _ in made for part in list(one.modules())[1:]}
        return [one for one in made if id(one[0]) not in inner]

    def copies_of(self, parameters: Set[int]) -> Set[str]:
        """Names of the classes of living copies with some of ``parameters``, by id."""
        found = [(one(), copied) for one, _, copied in self.places.values()]
        return {type(one).__name__ for one, copied in found
                if copied and one is not None and _has(one, parameters)}  # fmt: skip


def note_untrained(sites: Sites, parameters: Collection[Any], others: Collection[Any]) -> None:
    """Note a site for each outermost module with some of ``parameters`` and none of ``others``, which are
    trained. Of modules within each other it is the one that the script set to evaluate, at that place; else a
    module may have trained parts that were added to it once it was made, as adapters are. A module that the
    script asks for gradients again is none."""
    asked, held = set(map(id, parameters)), set(map(id, others))
    again = sites.evaluated.asked()
    # A line that sets trained modules to evaluate as well says nothing.
    elsewhere = {place for one, place in sites.evaluated.living() if _has(one, held)}
    places = {id(one): place for one, place in sites.evaluated.living() if place not in elsewhere}
    evaluated = [one for one in sites.evaluated.modules() if id(one) in places]
    made = {id(one): (one, place) for one, place, _ in sites.others.living()}
    for one in sites.living("module"):
        made[id(one)] = (one, sites.by_id[id(one)][1])
    known = {**{key: one for key, (one, _) in made.items()}, **{id(one): one for one in evaluated}}
    own: Dict[int, Set[int]] = {}
    seen = {id(one) for one in evaluated}
    for key, module in known.items():
        asking = {id(one) for one in module.parameters() if one.requires_grad}
        late = key not in seen and sites.others.grew(module, asked)
        if asking & asked and not asking & (held | again) and not late:
            own[key] = asking & asked
    trained = {(place, type(one).__name__) for one, place in made.values() if _has(one, held)}
    copied = sites.others.copies_of(held)
    first = _outermost([one for one in evaluated if id(one) in own])
    births, added = Births(sites), set[int]()
    for key, module in known.items() if not first else ():
        asking = {id(one) for one in module.parameters() if one.requires_grad}
        if asking & asked and asking & held and asking & held <= births.added(module):
            own[key] = asking & asked
            added.add(key)
    inside = {id(part) for one in first for part in one.modules()}
    beside = [known[key] for key in own if inside.isdisjoint(map(id, known[key].modules()))]
    for module in (*first, *_outermost(beside)):
        key, kind = id(module), type(module).__name__
        entry = sites.by_id.get(key)
        birth = () if entry is None or entry[2]() is not module else entry[5:]
        set_at = places[key] if module in first else None
        place = set_at or (made[key][1] if key in made else None)
        if place is not None:
            shared = kind in copied or (set_at is None and key not in added and (place, kind) in trained)
            facts = {"type": kind, "weights": len(own[key]), "evaluated": set_at is not None}
            facts.update(shared=shared, held=_names(sites, module))
            sites.add(Untrained.KIND, place, None, facts, *birth)


def _names(sites: Sites, module: Any) -> List[str]:
    """What holds ``module``: variables of the user's code that runs, and attributes of modules, each with
    the classes of the holder ("Net.body")."""
    found: Set[str] = set()
    frame: Any = sys._getframe(1)
    while frame is not None:
        if sites.user_files[frame.f_code.co_filename] is not None:
            found.update(name for name, value in frame.f_globals.items() if value is module)
            found.update(names_of(frame, module))
        frame = frame.f_back
    for holder in sites.living("module"):
        for name, value in holder._modules.items():
            if value is module:
                found.update("%s.%s" % (one.__name__, name) for one in type(holder).__mro__[:-2])
    return sorted(found)


class Births:
    """When the modules of the script were made."""

    def __init__(self, sites: Sites) -> None:
        self.sites = sites
        self.number = {id(entry): number for number, entry in enumerate(sites.made)}
        #: Frames are known of the first module of those that were made in the same way.
        self.first: Dict[int, int] = {}
        for number, entry in enumerate(sites.made):
            self.first.setdefault(id(entry[5]), number)

    def added(self, module: Any) -> Set[int]:
        """Ids of the parameters that parts of ``module`` brought which were made after its constructor had
        ended; empty where that is not known."""
        entry = self.sites.by_id.get(id(module))
        frames = list(entry[5].frames) if entry is not None and entry[2]() is module else []
        if entry is None or len(frames) < 2 or not frames[0]["function"].endswith(".__init__"):
            return set()
        number = self.number[id(entry)]
        if self.first[id(entry[5])] != number:
            return set()
        later: Set[int] = set()
        others = {id(one) for one in module.parameters(recurse=False)}
        for part in list(module.modules())[1:]:
            (later if self._is_later(part, frames, number) else others).update(
                id(one) for one in part.parameters(recurse=False)
            )
        return later - others

    def _is_later(self, part: Any, frames: List[Dict[str, Any]], number: int) -> bool:
        """``frames``, ``number``: of the module that it is a part of."""
        entry = self.sites.by_id.get(id(part))
        if entry is None or entry[2]() is not part or self.first[id(entry[5])] < number:
            return False
        own = list(entry[5].frames)
        inner = own[-len(frames)]["function"] if len(own) >= len(frames) else ""
        return bool(own) and not (inner == frames[0]["function"] and own[1 - len(frames) :] == frames[1:])


def _has(module: Any, parameters: Set[int]) -> bool:
    return any(id(one) in parameters for one in module.parameters())


def _outermost(modules: List[Any]) -> List[Any]:
    inner = {id(part) for one in modules for part in list(one.modules())[1:]}
    return [one for one in modules if id(one) not in inner]
