"""Convolutions among a line's operations."""

from __future__ import annotations

from collections.abc import Callable

from warpline.model.change import Places, Replace
from warpline.model.profile import LineCost, Op
from warpline.rulekit.context import Context
from warpline.rulekit.graph import whole_graph
from warpline.rulekit.saving import Spent, less_device_time
from warpline.wire.dataflow import CONVOLUTIONS, OPTIMIZER

#: The ops that launch the kernels, forward and backward (``conv2d`` and ``convolution`` only call them).
_NAMES = {
    "aten::cudnn_convolution", "aten::_convolution", "aten::convolution", "aten::cudnn_convolution_relu",
    "aten::cudnn_convolution_add_relu", "aten::convolution_backward", "aten::cudnn_convolution_transpose",
    "aten::_conv_depthwise2d", "aten::conv_depthwise3d", "aten::slow_conv2d_forward",
    "aten::mkldnn_convolution",
}  # fmt: skip


def convolutions(cost: LineCost) -> list[Op]:
    """The convolutions of a line that cost device time, forward and backward."""
    return [op for op in cost.ops if op.name in _NAMES and op.device_ms > 0]


def planes(cost: LineCost) -> list[Op]:
    """The convolutions over planes of pixels, which alone can be channels_last. cuDNN computes ``Conv1d``
    on planes of one row: these are the sizes of another operator of the line, without the row."""
    known = (op.shapes[:2] for op in cost.ops if op.name in _NAMES and op.shapes)
    rows = {shapes for shapes in known if all(map(_is_row, shapes))}
    return [
        op
        for op in convolutions(cost)
        if not any(map(_is_row, op.shapes[:1]))
        and tuple((*shape[:2], *shape[3:]) for shape in op.shapes[:2]) not in rows
    ]


def _is_row(shape: tuple[int, ...]) -> bool:
    return len(shape) == 3


def another_way(spent: Spent, way: str, saving_ms: float) -> Replace:
    """Convolutions of the lines, which take ``spent`` there, computed in another ``way`` that can be tried
    ("channels_last", "benchmark"); where it was not tried, ``saving_ms`` is the most that it saves."""
    return spent.tried("convolution", way, otherwise=less_device_time(spent, saving_ms, at_most=True))


def network_places(context: Context) -> Places:
    """The lines whose operators run from the first convolution of the recorded step to the last one; () where
    not all was recorded, or an optimizer's step lies between them: then there are several networks."""
    graph = whole_graph(context.profile.facts.dataflow)
    nodes = graph.nodes if graph is not None else []
    at = [index for index, node in enumerate(nodes) if node.name in CONVOLUTIONS]
    if graph is None or not at:
        return ()
    sites = [graph.site(node) for node in nodes[at[0] : at[-1] + 1]]
    if any(site is not None and site.via == OPTIMIZER for site in sites):
        return ()
    return tuple(dict.fromkeys(site.place for site in sites if site is not None))


def convolution_ms(cost: LineCost, which: Callable[[LineCost], list[Op]] = convolutions) -> float:
    """Device time of the line's convolutions, at most what the line adds to the step."""
    return min(sum(op.device_ms for op in which(cost)), cost.step_ms)
