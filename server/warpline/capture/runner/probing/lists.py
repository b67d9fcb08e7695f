"""Loops that update one tensor after the other: the recorded operators of a round, and the same on lists."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

import torch

from ....wire.dataflow import TENSOR, value_of
from ....wire.probing import DATA, Part, Question, part_from_json
from .compiled import as_module, plainly, seeded, small
from .pair import Pair

#: What each round has of a value, by the value's number.
Values = Dict[int, List[Any]]
Step = Callable[[Values], None]
#: How far the two shares of an average may be from 1 together: they are rounded floats.
_ROUNDING = 1e-6
#: Operators that have another name for lists.
_NAMES = {"linalg_vector_norm": "norm"}


def lists(question: Question, device: str) -> Pair:
    """Tensors: what a round is given, one after the other, and of each round's own those of all rounds.
    Options: the round as JSON, the number of rounds, which inputs are each round's own, and ``DATA`` where
    its result becomes the data of a tensor that it is given. Raises ValueError where no operator takes a
    list."""
    part, rounds = part_from_json(json.loads(question.options[0])), int(question.options[1])
    own = {int(at) for at in question.options[2].split(",")}
    each = _inputs(question, own, rounds, len(part.inputs), device)
    whole = [[one.clone() for one in given] for given in each]
    work = plainly(part, [given[0] for given in each])
    operators, data = _averaged(part.operators, DATA in question.options[3:])
    steps = [_step(operator) for operator in operators]
    if not any(listed for listed, _ in steps):
        raise ValueError("no operator of the loop takes a list")

    def one_by_one() -> Any:
        with torch.no_grad():
            for at in range(rounds):
                made = work(*(given[at if which in own else 0] for which, given in enumerate(each)))
                if data is not None:
                    each[part.inputs.index(data)][at] = made[0]
        return [one for which in sorted(own) for one in each[which]]

    def together() -> Any:
        values: Values = {}
        for which, (number, given) in enumerate(zip(part.inputs, whole)):
            values[number] = given if which in own else given * rounds
        with torch.no_grad():
            for _, step in steps:
                step(values)
        return [one for which in sorted(own) for one in whole[which]]

    return Pair(one_by_one, together, same=not seeded(part))


def _inputs(question: Question, own: Set[int], rounds: int, count: int, device: str) -> List[List[Any]]:
    tensors = iter(question.tensors)
    return [[small(next(tensors), device) for _ in range(rounds if at in own else 1)] for at in range(count)]


def _averaged(operators: Sequence[Any], assigned: bool) -> Tuple[Sequence[Any], Optional[int]]:
    """An average that is computed and copied is one ``lerp_``, as the edit makes it. So is one that is
    ``assigned``: then also the value whose data it becomes (either costs the same)."""
    names = ["mul", "mul", "add"] if assigned else ["mul", "mul", "add", "copy_"]
    if [name.split(".")[1] for name, _, _ in operators] != names:
        return operators, None
    (_, kept, first), (_, new, second), (_, both, total) = operators[:3]
    copied = [kept[0], f"{TENSOR}{total[0]}"] if assigned else operators[3][1]
    if copied[0] == new[0]:
        kept, new = new, kept
    wired = {*both} == {f"{TENSOR}{one}" for one in (*first, *second)}
    shares = kept[1], new[1]
    if (
        not wired
        or copied != [kept[0], f"{TENSOR}{total[0]}"]
        or not all(type(one) is float for one in shares)
    ):
        return operators, None
    if abs(sum(shares) - 1) > _ROUNDING:
        return operators, None
    average = "aten.lerp_.Scalar", [kept[0], new[0], shares[1]], operators[-1][2]
    return [average], value_of(kept[0]) if assigned else None


def _step(operator: Any) -> Tuple[bool, Step]:
    """Whether there is a function of lists for it, and what does the operator for all rounds: it is given the
    values so far, by number, and adds its own."""
    name, arguments, outputs = operator
    base = name.split(".")[1]
    options = {}
    if arguments and isinstance(arguments[-1], dict):
        options = {key: value for key, value in arguments[-1].items() if value is not None}
        arguments = arguments[:-1]
    listed: Any = _clamped if base == "clamp_" else getattr(torch, "_foreach_" + _NAMES.get(base, base), None)
    numbers = [value_of(one) for one in arguments]
    others = [*(one for one, number in zip(arguments, numbers) if number is None), *options.values()]
    plain = all(one is None or isinstance(one, (int, float)) or value_of(one) is not None for one in others)
    if listed is None or not plain or len(outputs) != 1:
        return False, _one_by_one(operator)

    def on_lists(values: Values) -> None:
        given: List[Any] = [
            one if number is None else values[number] for number, one in zip(numbers, arguments)
        ]
        if base.startswith("mul"):
            given = _factors(given)
        found = listed(*given, **options)
        values[outputs[0]] = given[0] if base.endswith("_") else found

    return True, on_lists


def _factors(given: List[Any]) -> List[Any]:
    """What is multiplied, the lists first. What all have in common is one tensor, as in the edit."""
    some = next(one[0] for one in given if isinstance(one, list))
    own_type = some.device.type == "cpu" and some.dtype == torch.float32
    factors = []
    for one in given:
        if isinstance(one, list) and not one[0].dim() and one[0] is one[-1]:
            factors.append(one[0])
        else:
            factors.append(torch.tensor(one) if own_type and isinstance(one, (int, float)) else one)
    return sorted(factors, key=lambda one: not isinstance(one, list))


def _clamped(tensors: Any, low: Any = None, high: Any = None) -> None:
    for bound, clamp in ((low, torch._foreach_clamp_min_), (high, torch._foreach_clamp_max_)):
        if bound is not None:
            clamp(tensors, bound)


def _one_by_one(operator: Any) -> Step:
    _, arguments, outputs = operator
    numbers = tuple(number for one in arguments if (number := value_of(one)) is not None)
    work = as_module(Part((operator,), numbers, (), outputs), plain=False).forward

    def by_itself(values: Values) -> None:
        made = [work(*given) for given in zip(*(values[number] for number in numbers))]
        for at, number in enumerate(outputs):
            values[number] = [results[at] for results in made]

    return by_itself


KINDS: Dict[str, Callable[[Question, str], Pair]] = {"lists": lists}
