"""Finds what a second step computes again: the same operators, on the same numbers and the same tensors.

One step cannot tell a tensor that the script keeps from its next batch. Two can: the batch is another tensor.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Dict, Iterator, Set, Tuple

from ....wire.dataflow import value_of, values_in
from .values import ALIAS, Interned

if TYPE_CHECKING:
    from .mode import Operators


def again(first: Operators, second: Operators) -> Tuple[int, ...]:
    """Find the operators of ``first`` that ``second`` has too. None where that is all of them: then the whole
    step is repeated, as in a benchmark, and that says nothing.

    A tensor is the same if it has the same memory and layout, was there before both steps, and nothing wrote
    to it, or if the host made it outside torch and it holds the same. Beside compiled code, it has to be one
    whose writes torch counts. The storages of ``first`` are kept, so that no other one has got their address.

    Where both steps read the same data, parameters do not count: what a frozen model makes of the only batch
    is the same in each step, but such a batch often stands for others.
    """
    kept = first.values.kept(first.forward_values) & second.values.kept(second.forward_values)
    if first.compiled:  # what that writes to is not seen, but counted
        before, after = first.values.counted(kept), second.values.counted(kept)
        kept = {storage for storage, count in before.items() if after.get(storage) == count}
    found = _both(first, second, kept)
    if len(found) == len(first.name):
        return ()
    if not second.values.given(second.forward_values) - first.values.given(first.forward_values):
        return _both(first, second, kept - first.values.of_parameters())
    return found


def remade(first: Operators, second: Operators) -> Tuple[int, ...]:
    """Find the values of ``first`` that the host made outside torch, and again in ``second``."""
    made, later = (mode.values.made_outside(mode.forward_values) for mode in (first, second))
    both = ((made[same], later[same]) for same in made if same in later)
    return tuple(sorted(number for (number, storage), (_, other) in both if storage != other))


def followed(first: Operators, second: Operators) -> Tuple[Tuple[int, int], ...]:
    """Find the values from before ``first`` in whose place ``second`` reads what ``first`` made: the same
    operator, called as often before from the same instruction, is given it."""
    before, made = _given(first)
    later, _ = _given(second)
    found: Dict[int, int] = {}
    made_at = {first.values.places[number]: number for number in sorted(made)}  # the last one at each place
    for key, number in later.items():
        successor = made_at.get(second.values.places[number])
        if key in before and successor is not None:
            found.setdefault(before[key], successor)
    return tuple(sorted(found.items()))


def _given(mode: Operators) -> Tuple[Dict[Any, int], Set[int]]:
    """The values from before the step, by the call of an operator that reads them and the argument that they
    are, and the values that the step made."""
    names, sites = list(mode.names), list(mode.sites)
    calls: "Counter[Any]" = Counter()
    given: Dict[Any, int] = {}
    read: Set[int] = set()
    made: Set[int] = set()
    for name, site, arguments, outputs in zip(mode.name, mode.site, mode.arguments, mode.outputs):
        called = (names[name], sites[site] if site >= 0 else None)
        calls[called] += 1
        for at, number in enumerate(values_in(arguments)):
            if number not in made:
                read.add(number)
                given[(called, calls[called], at)] = number
        made.update(number for number in outputs if number not in read)  # else a view that leads back to it
    return given, made


def _both(first: Operators, second: Operators, kept: Set[int]) -> Tuple[int, ...]:
    numbers = Interned()
    known = set(dict(_keys(second, kept, numbers)).values())
    return tuple(index for index, key in _keys(first, kept, numbers) if key in known)


def _keys(mode: Operators, kept: Set[int], numbers: Interned) -> Iterator[Tuple[int, int]]:
    """``(operator, key)`` of each one that is computed of nothing but kept tensors and numbers."""
    names = list(mode.names)
    made: Dict[int, Any] = {}

    def key_of(value: Any) -> Any:
        number = value_of(value)
        if number is not None:
            if number in made:
                return made[number]
            storage, layout = mode.values.places[number]
            same = (storage, layout) if storage in kept else mode.values.held(number)
            if same is None:
                raise LookupError
            return numbers[same]
        if isinstance(value, dict):
            return tuple((name, key_of(one)) for name, one in value.items())
        return tuple(map(key_of, value)) if isinstance(value, (list, tuple)) else repr(value)

    for index, (name, given, outputs) in enumerate(zip(mode.name, mode.arguments, mode.outputs)):
        if name in mode.random or index in mode.partly:
            continue
        try:
            layouts = [mode.values.places[value][1] for value in outputs]
            # A view that was made unseen is known by its layout alone.
            made_as = layouts if names[name] == ALIAS else [one[1::2] for one in layouts]
            key = numbers[(names[name], key_of(given), tuple(made_as))]
        except LookupError:
            continue
        made.update({value: (key, at) for at, value in enumerate(outputs) if value not in made})
        yield index, key
