"""Views of activations that another memory layout does not allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from warpline.rulekit.context import Context
from warpline.syntax.edits import Edits
from warpline.syntax.source import called_name
from warpline.wire.dataflow import Dataflow, value_of

#: What stands in for a view: the same tensor where it can be one, else a copy.
_COPYING = {"view": "reshape", "view_as": "reshape_as"}
#: Operators that give another order of the same numbers: what they make is in no layout of a convolution.
_ORDERS = frozenset({"view", "_unsafe_view", "permute", "transpose", "t", "expand", "unfold", "as_strided"})


def reshaped(context: Context, edits: Edits) -> list[Edits]:
    """Writes ``reshape`` where the recorded step calls ``view`` on activations so that it would fail with
    channels last: into ``edits``, or the edits of other files, which are returned."""
    parts = {edits.source.path: edits}
    for file, line in dict.fromkeys(_failing(context.profile.facts.dataflow)):
        part = parts.setdefault(file, Edits(context.source(file)))
        for call in part.source.calls(line, *_COPYING):
            part.replace(
                call.func, f"{part.source.code(call.func).rpartition('.')[0]}.{_COPYING[called_name(call)]}"
            )
    return [part for part in parts.values() if part is not edits]


def _failing(flow: Dataflow) -> Iterator[tuple[str, int]]:
    """Where a view is taken of activations that their strides would not allow with channels last."""
    made = {value: row for row, outputs in enumerate(flow.outputs) for value in outputs}
    for row, site in enumerate(flow.site):
        if site < 0 or _base(flow, row) != "view" or not flow.outputs[row]:
            continue
        given = value_of(flow.arguments[row][0])
        if given is None or _base(flow, made.get(given, -1)) in _ORDERS:
            continue
        shape, wanted = (flow.shapes[flow.shape[one]] for one in (given, flow.outputs[row][0]))
        if len(shape) == 4 and not viewable(shape, _channels_last(shape), wanted):
            yield flow.sites[site].file, flow.sites[site].line


def _base(flow: Dataflow, row: int) -> str:
    return flow.names[flow.name[row]].split(".")[1] if row >= 0 else ""


def _channels_last(shape: Sequence[int]) -> tuple[int, int, int, int]:
    _, channels, height, width = shape
    return channels * height * width, 1, width * channels, channels


def viewable(shape: Sequence[int], strides: Sequence[int], wanted: Sequence[int]) -> bool:
    """Whether ``Tensor.view`` gives a tensor of ``shape`` and ``strides`` the shape ``wanted``: each of its
    dimensions has to be a part of dimensions that lie one after the other
    (https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html)."""
    if 0 in shape:
        return True
    blocks: list[int] = []  # numbers in dimensions that lie one after the other, the last ones first
    following = 0
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 1:
            continue
        if blocks and stride == following:
            blocks[-1] *= size
        else:
            blocks.append(size)
        following = stride * size
    left = [size for size in wanted if size != 1]
    for block in blocks:
        part = 1
        while left and part < block:
            part *= left.pop()
        if part != block:
            return False
    return prod(left) == 1
