"""Batches of windows that are cut one after the other."""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict

import torch

from ....wire.probing import FROM, Question
from .pair import Pair


def windows(question: Question, device: str) -> Pair:
    """Tensor: the batch, windows first. Options: what cuts ("numpy" or "torch"), along which dimension of a
    window, the numbers' type as torch names it, and further words. "tensor": a tensor on the host says where
    the windows begin, else a list does. "cast": NumPy casts each window, "from=uint16" from that type.
    "host": the data are in the host's memory. Raises an error without NumPy where that cuts, ValueError for a
    type that torch has not."""
    by, dim, dtype = question.options[0], int(question.options[1]), getattr(torch, question.options[2], None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError("no such type")
    count, *shape = question.tensors[0].shape
    length = shape[dim]
    whole = [*shape[:dim], length * (count + 1), *shape[dim + 1 :]]
    where = "cpu" if by == "numpy" or "host" in question.options else device
    data = torch.randint(0, 100, whole, device=where).to(dtype)
    given = torch.randint(0, length * count + 1, (count,))
    starts: Any = given if "tensor" in question.options else given.tolist()
    axes = (dim, -1), (0, dim + 1)
    if by == "numpy":
        array, cast = data.numpy(), "cast" in question.options
        stored = next((word[len(FROM) :] for word in question.options if word.startswith(FROM)), "")
        kept = array.astype(stored) if stored else array
        return _of_array(kept, starts, dim, length, array.dtype if cast else None)

    def one_by_one() -> Any:
        return torch.stack([data[_place(dim, start, length)] for start in starts])

    def at_once() -> Any:
        index = torch.as_tensor(starts).to(data.device, non_blocking=True)
        return data.unfold(dim, length, 1).movedim(*axes).index_select(0, index)

    return Pair(one_by_one, at_once)


def _place(dim: int, start: Any, length: int) -> Any:
    return (*((slice(None),) * dim), slice(start, start + length))


def _of_array(data: Any, starts: Any, dim: int, length: int, cast: Any) -> Pair:
    """``cast``: the type that the windows get; None: they keep theirs."""
    numpy = sys.modules["numpy"]  # torch has loaded it, if there is one

    def one(piece: Any) -> Any:
        return torch.from_numpy(piece if cast is None else piece.astype(cast))

    def one_by_one() -> Any:
        return torch.stack([one(data[_place(dim, start, length)]) for start in starts])

    def at_once() -> Any:
        view = numpy.lib.stride_tricks.sliding_window_view(data, length, dim)
        windows = numpy.moveaxis(view, (dim, -1), (0, dim + 1))
        return one(windows[numpy.asarray(starts)]).contiguous()

    return Pair(one_by_one, at_once)


KINDS: Dict[str, Callable[[Question, str], Pair]] = {"windows": windows}
