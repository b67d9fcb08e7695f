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
    trained. Of modules within each other it is the one that the script set to evaluate, at that place."""
    asked, held = set(map(id, parameters)), set(map(id, others))
    evaluated = sites.evaluated.modules()
    known = {id(one): one for one in (*sites.living("module"), *evaluated)}
    own: Dict[int, Set[int]] = {}
    for key, module in known.items():
        asking = {id(one) for one in module.parameters() if one.requires_grad}
        if asking & asked and not asking & held:
            own[key] = asking & asked
    first = _outermost([one for one in evaluated if id(one) in own])
    inside = {id(part) for one in first for part in one.modules()}
    beside = [known[key] for key in own if inside.isdisjoint(map(id, known[key].modules()))]
    for module in (*first, *_outermost(beside)):
        entry = sites.by_id.get(id(module))
        birth = () if entry is None or entry[2]() is not module else entry[5:]
        set_at = sites.evaluated.places[id(module)][1] if module in first else None
        place = set_at or (entry[1] if entry is not None and birth else None)
        if place is not None:
            kind, weights = type(module).__name__, len(own[id(module)])
            facts = {"type": kind, "weights": weights, "evaluated": set_at is not None}
            sites.add(Untrained.KIND, place, None, facts, *birth)


def _outermost(modules: List[Any]) -> List[Any]:
    inner = {id(part) for one in modules for part in list(one.modules())[1:]}
    return [one for one in modules if id(one) not in inner]
