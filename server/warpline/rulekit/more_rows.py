"""What more rows in a batch change: which lines run once for all of them, and which operators and kernels
take no longer."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterator, Mapping

import libcst as cst

from warpline.model import costs
from warpline.model.change import Change, JoinedBatches, LargerBatch, Replace, Scale, Together
from warpline.model.profile import Kernel, LineCost, Op
from warpline.rulekit.batches import FACTOR, half_as_many
from warpline.rulekit.context import Context
from warpline.rulekit.kernels import is_product
from warpline.syntax.edits import Refused

#: Up to here a kernel takes as long for more samples.
_SHORT_MS = costs.value("short-kernel-ns") / 1e6
#: A kernel that fills less of the device than this takes as long for FACTOR times the samples.
_FILLED = 1 / FACTOR
#: Operators that take a sample, or some, out of a batch.
_PIECES = {"aten::select", "aten::unbind", "aten::index", "aten::slice", "aten::narrow", "aten::as_strided"}
_MATRIX = 2  # dimensions


def in_fewer(context: Context, cost: LineCost, factor: int) -> Iterator[Change]:
    """Once instead of ``factor`` times the host's work, and the same samples for the device."""
    if not context.can("kernels"):
        yield _on_more_rows(cost, factor)
    less = less_ms(context, cost, factor) / cost.device_ms if cost.device_ms > 0 else 0.0
    yield Scale((cost.place,), device=max(0.0, 1 - less), host=1 / factor)


def _on_more_rows(cost: LineCost, factor: int = FACTOR) -> Change:
    """One call with ``factor`` times the rows in place of ``factor`` calls; a trial tells what its operators
    save."""
    return Replace("rows", (cost.place,), Scale((cost.place,)), (str(factor),))


def weights_ms(cost: LineCost) -> float:
    """Time of products that mostly read weights which all rows share, as a linear layer's and a convolution's
    of small pictures."""
    spent = sum(op.device_ms for op in cost.ops if op.phase == "forward" and _shares_weights(op))
    return min(spent, cost.step_ms)


def _shares_weights(op: Op) -> bool:
    if op.name.endswith("convolution") and len(op.shapes) > 1:
        (rows, inner, *places), (outer, *_) = op.shapes[:2]
        return rows * (inner + outer) * math.prod(places) < math.prod(op.shapes[1])
    pair = [shape for shape in op.shapes if len(shape) == _MATRIX] if is_product(op.name) else []
    if len(pair) < 2 or len(pair[-2]) != 2 or pair[-2][1] != pair[-1][0]:
        return False
    (rows, inner), columns = pair[-2], pair[-1][1]
    return rows * (inner + columns) < inner * columns


def is_once(context: Context, cost: LineCost, size: int) -> bool:
    """Whether a line does not go through the ``size`` samples of a batch one by one: that takes as long for
    each sample of a larger batch. A layer may run as often, each time with all of them."""
    source = context.source(cost.file)
    statement = source.statement_at(cost.line)
    looping = isinstance(statement, cst.SimpleStatementLine) and source.nodes(cst.CompFor, within=statement)
    if looping:  # over layers: what makes a batch of samples has no gradient
        return cost.backward_ms > 0 and _has_all(cost, size)
    return cost.calls < size or _has_all(cost, size)


def _has_all(cost: LineCost, size: int) -> bool:
    """Whether the line computes something with ``size`` rows in its first or second dimension."""
    return any(size in shape[:2] for op in cost.ops if op.name not in _PIECES for shape in op.shapes)


def of_lines(context: Context, costs: Collection[LineCost], size: int) -> Iterator[Change]:
    """What twice the samples change at lines with operators (``costs``) and at others, beside the number of
    samples. Of lines of plain Python it is not known what they do: they are taken to go through the samples.
    """
    updates = {place for site in context.sites("optimizer") for place in site.uses}
    for cost in context.profile.lines:
        # As many parameters. A framework's one line has the passes as well.
        if cost.place in updates and not cost.backward_ms:
            yield Scale((cost.place,), device=1 / FACTOR)
        elif cost in costs and is_once(context, cost, size):
            yield _on_more_rows(cost)
        elif not cost.loader_ms and (cost in costs or not cost.launches):
            yield Scale((cost.place,), host=FACTOR)


def thin_ms(context: Context, cost: LineCost) -> float:
    """Time in forward kernels with blocks for less than half of the multiprocessors: more blocks go to
    the others."""
    spent = sum(kernel.device_ms for kernel in cost.kernels if _filled(context, kernel) <= _FILLED)
    return max(0.0, min(spent, cost.step_ms))


def less_ms(context: Context, cost: LineCost, factor: int) -> float:
    """What calls with ``factor`` times the samples save on the device: short kernels take no longer for them,
    nor do forward kernels that do not fill it."""
    saved = 0.0
    for kernel in cost.kernels:
        short = min(kernel.device_ms, kernel.count * _SHORT_MS) * (1 - 1 / factor)
        thin = kernel.device_ms * (1 - max(1 / factor, _filled(context, kernel)))
        saved += max(short, thin)
    return min(saved, cost.device_ms)


def _filled(context: Context, kernel: Kernel) -> float:
    """The share of the multiprocessors that a forward kernel has blocks for, at most 1. Of the backward pass
    it cannot be told which kernels have more blocks for more samples: 1 as well."""
    if kernel.kind != "kernel" or kernel.phase != "forward" or kernel.grid is None:
        return 1.0
    return min(1.0, math.prod(kernel.grid) / context.device.multiprocessors)


def of_twice(context: Context, thin: Mapping[LineCost, float], epoch: int | None) -> Change:
    """Twice the batch; what half fills the device now takes no longer for it."""
    joined = list[Change]()
    with contextlib.suppress(Refused):
        joined += [JoinedBatches(FACTOR)] if half_as_many(context) else []
    filled = (
        Scale((cost.place,), device=1 - (1 - 1 / FACTOR) * min(1.0, spent / cost.device_ms))
        for cost, spent in thin.items()
        if cost.device_ms > 0
    )
    return Together((*filled, LargerBatch(FACTOR, epoch), *joined))
