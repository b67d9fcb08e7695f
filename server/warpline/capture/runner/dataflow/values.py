"""Numbers for the tensors of a step, by their storage and layout."""

from __future__ import annotations

import weakref
from collections import Counter
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from .contents import content
from .gradients import Asking, is_hooked

#: The operator that is recorded for a view that no operator was seen to make.
ALIAS = "aten.alias.default"
Layout = Tuple[int, Tuple[int, ...], Tuple[int, ...], Any]


class Interned(Dict[Any, int]):
    """A number for each thing, counted up."""

    def __missing__(self, thing: Any) -> int:
        number = self[thing] = len(self)
        return number


class Owner(NamedTuple):
    """The parameters of a module whose compiled code was called: held weakly, with torch's count of writes to
    each at the call."""

    operator: int
    parameters: "List[Tuple[weakref.ref[Any], int]]"


class Values:
    """Numbers values without keeping tensors alive. Only the freed storage objects are kept, so that no other
    storage gets their address."""

    def __init__(self, torch: Any, alias: Callable[[int, int], None]) -> None:
        """``alias(new, old)`` is told of a value that is a view, made unseen, of another one."""
        from torch.multiprocessing.reductions import StorageWeakRef

        self._weak, self._torch = StorageWeakRef, torch
        self._parameter = torch.nn.Parameter
        self._alias = alias
        self._known: dict[int, dict[Layout, int]] = {}  # storage -> layout -> value
        self._latest: dict[int, int] = {}  # storage -> the value that was made there last
        self._alive: list[Any] = []
        self.shapes, self.dtypes = Interned(), Interned()
        self.shape: List[int] = []
        self.dtype: List[int] = []
        self.places: List[Tuple[int, Layout]] = []  # of each value: its storage and layout
        self.parameters: List[int] = []
        self._written: set[int] = set()  # storages that something may have written to unseen
        self._often: "Counter[int]" = Counter()  # at most so many writes to a storage were seen
        self._read_to_write: Dict[int, Set[int]] = {}  # storage -> those that writes to it read
        self._listed: set[int] = set()  # storages in lists that are too long to be recorded
        self._before: dict[int, int] = {}  # storage that was there before the step -> first value
        self._writes: dict[int, Optional[int]] = {}  # to those, as ``writes`` counts them when they are read
        self._contents: dict[int, bytes] = {}  # of values that the host may have made outside torch
        self._asking: dict[int, int] = {}  # storage of a parameter that asks for gradients -> first value
        self.asking: dict[int, Asking] = {}  # the same, by the parameter's id
        self.leaves: set[int] = set()  # values of other tensors that do, and were not computed

    def read(self, tensor: Any) -> int:
        """The number of what ``tensor`` holds."""
        storage, layout = self._place(tensor)
        found = self._known[storage].get(layout)
        if found is None:
            found = self._new(tensor, storage, layout)
            if storage in self._latest:
                self._alias(found, self._latest[storage])
            else:
                self._latest[storage] = self._before[storage] = found
                self._writes[storage] = writes(tensor)
                if not _dense(tensor).untyped_storage().resizable():
                    self._written.add(storage)  # it may be shared, with NumPy or another process
                held = content(self._torch, tensor)
                if held is not None:
                    self._contents[found] = held
        # A view that was made without a graph asks because its tensor does, and never gets a gradient.
        asks = tensor.requires_grad and not (tensor._base is not None and tensor._base.requires_grad)
        if asks and tensor.is_leaf and not isinstance(tensor, self._parameter):
            self.leaves.add(found)
        return found

    def rows(self, tensor: Any) -> Optional[Tuple[int, ...]]:
        """The two-dimensional shape that the flat ``tensor`` had in another view; None if none was seen."""
        storage, (offset, shape, *_) = self._place(tensor)
        known = self._known[storage] if len(shape) == 1 else ()
        wide = (one for at, one, *_ in known if at == offset and len(one) == 2)
        return next((one for one in wide if one[0] * one[1] == shape[0]), None)

    def made(self, tensor: Any, in_place: bool) -> int:
        """The number of an operator's result. ``in_place``: the operator wrote to what it was given."""
        storage, layout = self._place(tensor)
        known = self._known[storage]
        if in_place:
            self._often[storage] += 1
            known.clear()
        elif layout in known:
            return known[layout]  # a view of everything, or the same tensor
        found = self._new(tensor, storage, layout)
        if in_place or storage not in self._latest:
            self._latest[storage] = found
        return found

    def _place(self, tensor: Any) -> tuple[int, Layout]:
        dense = _dense(tensor)
        held = dense.untyped_storage()
        storage = int(held._cdata)
        if storage not in self._known:
            self._known[storage] = {}
            self._alive.append(self._weak(held))
        stride = tensor.stride() if dense is tensor else (-1, int(tensor._cdata))
        return storage, (dense.storage_offset(), tuple(dense.shape), stride, dense.dtype)

    def _new(self, tensor: Any, storage: int, layout: Layout) -> int:
        number = len(self.shape)
        self._known[storage][layout] = number
        self.places.append((storage, layout))
        self.shape.append(self.shapes[layout[1]])
        self.dtype.append(self.dtypes[str(tensor.dtype).replace("torch.", "")])
        if isinstance(tensor, self._parameter):
            self.parameters.append(number)
            if tensor.requires_grad:
                self._asking.setdefault(storage, number)
                known = self.asking.get(id(tensor))
                if known is None or known.held() is not tensor:
                    known = self.asking[id(tensor)] = Asking(weakref.ref(tensor), [])
                known.values.append(number)
        return number

    def unheld(self, optimizers: Optional[List[Any]], is_read: Callable[[Any], bool]) -> Tuple[int, ...]:
        """Parameters that ask for gradients, that none of the ``optimizers`` has, that nothing wrote to (but
        an average with parameters that one has), and whose gradients nothing read (``is_read``).

        Nothing where not all optimizers are known (None), where they have no tensor of the step at all, or
        where another one asks for gradients, which may be what they are for. In a script without optimizers
        they are for such a tensor: an attack's input, or a picture that follows its gradient.
        """
        held = {
            _storage(one)
            for optimizer in optimizers or ()
            for group in optimizer.param_groups
            for one in group["params"]
        }
        own = {self.places[number][0] for number in self.leaves}
        read = {number for one in self.asking.values() if is_read(one.held()) for number in one.values}
        found = {
            storage
            for storage, number in self._asking.items()
            if storage not in held
            and (self._latest.get(storage) == number or self._follows(storage, held))
            and number not in read
        }
        wanted = held if optimizers else own
        if optimizers is None or not own <= wanted or wanted.isdisjoint({*self._asking, *own}):
            return ()
        numbers = {number for one in self.asking.values() for number in one.values}
        return tuple(sorted(number for number in numbers if self.places[number][0] in found))

    def divided(self, numbers: Iterable[int]) -> Tuple[List[Any], List[Any]]:
        """The living parameters that ask for gradients: those that have these ``numbers``, and others."""
        wanted, found = set(numbers), ([], [])  # type: Set[int], Tuple[List[Any], List[Any]]
        for one in self.asking.values():
            parameter = one.held()
            if parameter is not None:
                found[wanted.isdisjoint(one.values)].append(parameter)
        return found

    def written_by(self, output: int, inputs: Iterable[int]) -> None:
        """An operator that read ``inputs`` wrote this value to where it is."""
        read = self._read_to_write.setdefault(self.places[output][0], set())
        read.update(self.places[number][0] for number in inputs)

    def _follows(self, storage: int, held: Set[int]) -> bool:
        """Whether all writes to it read that itself and what an optimizer has, as a momentum encoder's do."""
        others = self._read_to_write.get(storage, set()) - {storage}
        return bool(others) and others <= held

    def unheld_unwatched(
        self, optimizers: List[Any], owners: List[Owner]
    ) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
        """The same where gradients were not watched, and the calls of compiled modules (by operator) all of
        whose parameters are such. Their gradients have to be there, seen by no recorded operator; all writes
        to the parameters have to be known, and no others than an average of other parameters'."""
        held = {
            _storage(one)
            for optimizer in optimizers
            for group in optimizer.param_groups
            for one in group["params"]
        }
        first = {storage: count for storage, count in self._writes.items() if count is not None}
        own = [(reference(), count) for one in owners for reference, count in one.parameters]
        for parameter, count in own:
            if parameter is not None:
                first.setdefault(_storage(parameter), count)
        used = {_storage(parameter) for parameter, _ in own if parameter is not None} | set(self._asking)
        if self.leaves or held.isdisjoint(used):
            return (), ()

        def is_free(parameter: Any) -> bool:
            gradient = None if parameter is None else parameter.grad
            if gradient is None or not parameter.requires_grad or is_hooked(parameter):
                return False
            storage, made = _storage(parameter), _storage(gradient)
            if storage in held or made in self._known or made in self._listed:
                return False
            begun = first.get(storage)
            return begun is not None and parameter._version - begun <= self._often[storage]

        numbers = [one.values for one in self.asking.values() if is_free(one.held())]
        calls = [one for one in owners if one.parameters and all(is_free(own()) for own, _ in one.parameters)]
        return (
            tuple(sorted(number for values in numbers for number in values)),
            tuple(one.operator for one in calls),
        )

    def listed(self, tensors: Iterable[Any]) -> None:
        """An operator reads these in a list that is too long to be recorded."""
        self._listed.update(map(_storage, tensors))

    def unchanged(self, tensors: Iterable[Any]) -> Tuple[int, ...]:
        """The values of those of ``tensors`` that were there before the step and that nothing wrote to."""
        storages = set(map(_storage, tensors))
        return tuple(
            number
            for storage, number in self._before.items()
            if storage in storages and self._latest.get(storage) == number
        )

    def wrote(self, tensors: Iterable[Any]) -> None:
        """An operator that gives nothing back may have written to these."""
        for storage in map(_storage, tensors):
            self._written.add(storage)
            self._often[storage] += 1

    def of_parameters(self) -> Set[int]:
        """The storages of parameters."""
        return {self.places[number][0] for number in self.parameters}

    def given(self, most: int) -> Set[Tuple[Any, Layout]]:
        """Storage or content, and layout, of the values in memory from before the step. ``most``: see
        ``kept``."""
        before = (number for number, (storage, _) in enumerate(self.places[:most]) if storage in self._before)
        return {self.held(number) or self.places[number] for number in before}

    def held(self, number: int) -> Optional[Tuple[bytes, Layout]]:
        """What a value holds, and its layout, where the host may have made it outside torch."""
        found = self._contents.get(number)
        return None if found is None else (found, self.places[number][1])

    def made_outside(self, most: int) -> Dict[Tuple[bytes, Layout], Tuple[int, int]]:
        """``(value, storage)`` of what the host may have made outside torch, by what that holds. ``most``:
        see ``kept``."""
        numbers = ((one, self.held(one)) for one in self._contents if one < most)
        return {held: (one, self.places[one][0]) for one, held in numbers if held is not None}

    def kept(self, most: int) -> Set[int]:
        """The storages that were there before the step and that nothing wrote to. ``most``: values from this
        number on are left out."""
        return {
            storage
            for storage, number in self._before.items()
            if number < most and self._latest.get(storage) == number and storage not in self._written
        }

    def counted(self, storages: Iterable[int]) -> Dict[int, int]:
        """Writes to these before the step; without those that have no count."""
        found = ((storage, self._writes.get(storage)) for storage in storages)
        return {storage: count for storage, count in found if count is not None}


def writes(tensor: Any) -> Optional[int]:
    """How many writes to its memory torch has counted; None where it does not count them."""
    return None if tensor.is_inference() else int(tensor._version)


def _dense(tensor: Any) -> Any:
    """The tensor itself, or a sparse one's values, which stand for it: it has no storage of its own."""
    layout = str(tensor.layout)
    if layout == "torch.strided":
        return tensor
    return tensor._values() if layout == "torch.sparse_coo" else tensor.values()


def _storage(tensor: Any) -> int:
    return int(_dense(tensor).untyped_storage()._cdata)
