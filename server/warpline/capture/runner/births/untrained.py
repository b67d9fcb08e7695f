"""Modules whose parameters ask for gradients that no optimizer takes: where the script says that it does not
train them."""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any, Collection, Dict, List, Set, Tuple

from ....wire.sites import Untrained

if TYPE_CHECKING:
    from ..lines.userfiles import Location
    from ..patches import Function
    from .sites import Sites


class Evaluated:
    """Notes the first place where ``eval()`` was called on each module."""

    def __init__(self, sites: Sites) -> None:
        self.sites = sites
        self.places: Dict[int, Tuple[Any, Location]] = {}  # by id; the module is held weakly

    def install(self, module: Any) -> None:
        """Watch ``torch.nn.Module.eval``; the patches of the sites put it back."""

        def make(original: Function) -> Function:
            def eval(self_: Any) -> Any:
                known = self.places.get(id(self_))
                if known is None or known[0]() is not self_:
                    place = self.sites.place(sys._getframe(1))
                    if place is not None:
                        self.places[id(self_)] = (weakref.ref(self_), place)
                return original(self_)

            return eval

        self.sites.patches.replace(module, "eval", make)

    def modules(self) -> List[Any]:
        """The living modules that were set to evaluate, and still are."""
        found = [reference() for reference, _ in self.places.values()]
        return [one for one in found if one is not None and not one.training]


def note_untrained(sites: Sites, parameters: Collection[Any], others: Collection[Any]) -> None:
    """Note a site for each outermost module with some of ``parameters`` and none of ``others``, which are
    trained. Of modules within each other it is the one that the script set to evaluate, at that place; else a
    module may have trained parts that were added to it once it was made, as adapters are."""
    asked, held = set(map(id, parameters)), set(map(id, others))
    evaluated = sites.evaluated.modules()
    known = {id(one): one for one in (*sites.living("module"), *evaluated)}
    own: Dict[int, Set[int]] = {}
    for key, module in known.items():
        asking = {id(one) for one in module.parameters() if one.requires_grad}
        if asking & asked and not asking & held:
            own[key] = asking & asked
    trained = {
        (entry[1], type(module).__name__)
        for key, module in known.items()
        if (entry := sites.by_id.get(key)) is not None and _has(module, held)
    }
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
        entry = sites.by_id.get(id(module))
        birth = () if entry is None or entry[2]() is not module else entry[5:]
        set_at = sites.evaluated.places[id(module)][1] if module in first else None
        place = set_at or (entry[1] if entry is not None and birth else None)
        if place is not None:
            kind, weights = type(module).__name__, len(own[id(module)])
            shared = set_at is None and id(module) not in added and (place, kind) in trained
            facts = {"type": kind, "weights": weights, "evaluated": set_at is not None, "shared": shared}
            sites.add(Untrained.KIND, place, None, facts, *birth)


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
