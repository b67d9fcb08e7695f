"""Plans that cuDNN makes for its attention: one for each size of the inputs, in milliseconds of host time. It
is kept for when that size comes again."""

from __future__ import annotations

from warpline.model import costs
from warpline.model.profile import LineCost, Op

_CUDNN = "aten::_scaled_dot_product_cudnn_attention"
#: A call that finds its plan takes a tenth of that, and one that makes it several times as much.
PLANNED_MS = costs.bound("attention-planned")


def planning_ms(cost: LineCost) -> float:
    """Host time a step in which a line's attention was planned, for inputs of one size after the other.

    A plan for a batch with fewer samples is none of these: the last one of an epoch has that.
    """
    lengths = {tuple(shape[1:] for shape in op.shapes[:3]) for op in _calls(cost)}
    return sum(op.cpu_ms for op in _planned(cost)) if len(lengths) > 1 or planned_sizes(cost) > 1 else 0.0


def planned_sizes(cost: LineCost) -> int:
    """Sizes of inputs for which cuDNN made a plan at a line in the captured steps: the first call of a size
    makes it, and the others of that size, in other layers say, find it."""
    return len({op.shapes[:3] for op in _planned(cost) if not op.name.endswith("_backward")})


def plans_mostly(cost: LineCost) -> bool:
    """Whether most calls of a line are of sizes that had no plan."""
    return 2 * sum(op.count for op in _planned(cost)) >= sum(op.count for op in _calls(cost))


def _planned(cost: LineCost) -> list[Op]:
    return [op for op in _calls(cost) if op.cpu_ms >= PLANNED_MS * op.count]


def _calls(cost: LineCost) -> list[Op]:
    return [op for op in cost.ops if op.name.startswith(_CUDNN) and op.count > 0 and op.shapes]
