"""Loops over the pieces of a tensor: the recorded operators of a round, for one piece after the other and for
all of them at once."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Callable, Dict, List, Sequence, Set, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ....wire.dataflow import TENSOR
from ....wire.probing import JOINED, Part, Question, part_from_json
from .agreement import difference
from .batching import batch_on_cpu
from .compiled import plainly, seeded, small, working, written
from .pair import Pair

#: What is filled in, and what is taken then.
_ENDS = {"aten.max.default": ("-inf", "aten.amax.default"), "aten.min.default": ("inf", "aten.amin.default")}


def loop(question: Question, device: str) -> Pair:
    """Tensors: what a round is given, with a first dimension for all rounds where each has its own. Options:
    the round as JSON, the number of rounds, which tensors are each round's own, and ``JOINED`` where a round
    may get the rows of all. Raises an error for an operator that only works on one piece at a time."""
    part, rounds = part_from_json(json.loads(question.options[0])), int(question.options[1])
    own = {int(at) for at in question.options[2].split(",")}
    inputs = [small(one, device) for one in question.tensors]
    filled = _filled(part)
    if filled is not part:
        inputs = [_choosing(one) if one.dtype == torch.bool else one for one in inputs]
    each = plainly(part, _piece(inputs, own, 0))
    changed = written(part)

    def one_by_one(*given: Any) -> Any:
        # Autograd counts the writes to each of these pieces, and those to other ones together.
        given = tuple(
            [one[0] for one in whole.unsafe_split(1)] if at in changed and at in own else whole
            for at, whole in enumerate(given)
        )
        found = [each(*_piece(given, own, at)) for at in range(rounds)]
        return tuple(torch.stack(results) for results in zip(*found))

    joined = _joined(each, own, rounds)
    if JOINED in question.options and _agree(one_by_one, joined, inputs):
        together = joined
    else:
        together = _at_once(plainly(filled, _piece(inputs, own, 0)), inputs, own)
    wanted = [inputs[at].requires_grad_() for at in part.leaves] if question.backward else []
    return Pair(
        working(one_by_one, inputs, wanted, changed),
        working(together, inputs, wanted, changed),
        same=not changed and not seeded(part),
    )


def _joined(each: Callable[..., Any], own: Set[int], rounds: int) -> Callable[..., Any]:
    """One round with the rows of all rounds. (``vmap`` runs some operators, as a batch norm, otherwise.)"""

    def work(*given: Any) -> Any:
        rows = (one.flatten(0, 1) if at in own else one for at, one in enumerate(given))
        return tuple(found.unflatten(0, (rounds, -1)) for found in each(*rows))

    return work


def _agree(one: Callable[..., Any], other: Callable[..., Any], inputs: Sequence[Any]) -> bool:
    """Whether two computations run, and give the same."""
    try:
        with torch.no_grad():
            first, second = (work(*(given.clone() for given in inputs)) for work in (one, other))
    except (RuntimeError, IndexError, TypeError, ValueError):
        return False
    return difference(first, second) <= 1


def _filled(part: Part) -> Part:
    """The part with what masks leave out filled with infinity, where the largest or smallest of the others is
    taken: ``vmap`` takes no mask for an index."""
    chosen: Dict[str, Tuple[Any, Any]] = {}
    operators: List[Any] = []
    new = 1 + max([*part.inputs, *(number for *_, outputs in part.operators for number in outputs)])
    for name, given, outputs in part.operators:
        end = _ENDS.get(name)
        if name == "aten.index.Tensor" and len(given[1]) == 1:
            chosen[TENSOR + str(outputs[0])] = given[0], given[1][0]
        elif end is not None and given[0] in chosen:
            rows, mask = chosen[given[0]]
            left_out, values = (TENSOR + str(number) for number in (new, new + 1))
            operators.append(("aten.logical_not.default", [mask], (new,)))
            operators.append(("aten.masked_fill.Scalar", [rows, left_out, end[0]], (new + 1,)))
            operators.append((end[1], [values], outputs))
            new += 2
        else:
            operators.append((name, given, outputs))
    return replace(part, operators=tuple(operators)) if len(operators) > len(part.operators) else part


def _choosing(mask: Any) -> Any:
    """A mask that chooses every other number, so that some are chosen and some are not."""
    return (torch.arange(mask.shape[-1], device=mask.device) % 2 == 0).expand(mask.shape).clone()


def _piece(inputs: Sequence[Any], own: Set[int], at: int) -> List[Any]:
    """What round ``at`` is given."""
    return [one[at] if which in own else one for which, one in enumerate(inputs)]


def _at_once(each: Callable[..., Any], inputs: List[Any], own: Set[int]) -> Any:
    """The operators that do the work of all rounds. ``vmap`` finds them here, and costs nothing later. (So
    does ``make_fx``, which needs seconds to begin.)"""
    every = tuple(0 if at in own else None for at in range(len(inputs)))
    batched = torch.vmap(each, every, randomness="different")
    given = [one.clone() for one in inputs]
    functorch = torch._C._functorch
    before = functorch._is_vmap_fallback_enabled()
    batch_on_cpu()
    functorch._set_vmap_fallback_enabled(False)
    try:
        with Recorded() as recorded:
            results = batched(*given)
    finally:
        functorch._set_vmap_fallback_enabled(before)
    return recorded.again(given, results)


class Recorded(TorchDispatchMode):  # type: ignore[misc]
    """The operators that run inside, to run again on other tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: List[Tuple[Any, Any, Dict[str, Any], Any]] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = function(*args, **(kwargs or {}))
        self.calls.append((function, args, kwargs or {}, found))
        return found

    def again(self, given: Sequence[Any], results: Any) -> Callable[..., Any]:
        """A function of ``given`` that gives ``results``."""

        def filled(one: Any, values: Dict[int, Any]) -> Any:
            if isinstance(one, (list, tuple)):
                return [filled(each, values) for each in one]
            return values.get(id(one), one) if isinstance(one, torch.Tensor) else one

        def keep(found: Any, made: Any, values: Dict[int, Any]) -> None:
            for one, other in zip(found, made) if isinstance(found, (list, tuple)) else [(found, made)]:
                values[id(one)] = other

        def work(*inputs: Any) -> Any:
            values = {id(one): other for one, other in zip(given, inputs)}
            for function, args, named, found in self.calls:
                keep(found, function(*filled(args, values), **named), values)
            return tuple(filled(results, values))

        return work


KINDS: Dict[str, Callable[[Question, str], Pair]] = {"loop": loop}
