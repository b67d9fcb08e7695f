"""Loops over the pieces of a tensor: the recorded operators of a round, for one piece after the other and for
all of them at once."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Sequence, Set

import torch

from ....wire.probing import Question, part_from_json
from .compiled import plainly, seeded, small, working, written
from .pair import Pair


def loop(question: Question, device: str) -> Pair:
    """Tensors: what a round is given, with a first dimension for all rounds where each has its own. Options:
    the round as JSON, the number of rounds, and which tensors are each round's own. Raises an error for an
    operator that only works on one piece at a time."""
    part, rounds = part_from_json(json.loads(question.options[0])), int(question.options[1])
    own = {int(at) for at in question.options[2].split(",")}
    inputs = [small(one, device) for one in question.tensors]
    each = plainly(part, _piece(inputs, own, 0))
    together = _at_once(each, inputs, own)

    def one_by_one(*given: Any) -> Any:
        found = [each(*_piece(given, own, at)) for at in range(rounds)]
        return tuple(torch.stack(results) for results in zip(*found))

    wanted = [inputs[at].requires_grad_() for at in part.leaves] if question.backward else []
    changed = written(part)
    return Pair(
        working(one_by_one, inputs, wanted, changed),
        working(together, inputs, wanted, changed),
        same=not changed and not seeded(part),
    )


def _piece(inputs: Sequence[Any], own: Set[int], at: int) -> List[Any]:
    """What round ``at`` is given."""
    return [one[at] if which in own else one for which, one in enumerate(inputs)]


def _at_once(each: Callable[..., Any], inputs: List[Any], own: Set[int]) -> Any:
    """The operators that do the work of all rounds. ``vmap`` finds them here, and costs nothing later."""
    from torch.fx.experimental.proxy_tensor import make_fx

    every = tuple(0 if at in own else None for at in range(len(inputs)))
    batched = torch.vmap(each, every, randomness="different")

    def all_rounds(*given: Any) -> Any:  # of so many arguments as it is given, which `vmap` hides
        return batched(*given)

    functorch = torch._C._functorch
    before = functorch._is_vmap_fallback_enabled()
    functorch._set_vmap_fallback_enabled(False)
    try:
        return make_fx(all_rounds)(*(one.clone() for one in inputs))
    finally:
        functorch._set_vmap_fallback_enabled(before)


KINDS: Dict[str, Callable[[Question, str], Pair]] = {"loop": loop}
