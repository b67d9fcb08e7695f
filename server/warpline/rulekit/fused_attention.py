"""Calls of ``F.scaled_dot_product_attention`` as they were recorded."""

from __future__ import annotations

from dataclasses import dataclass

from warpline.model.profile import LineCost, Op

_CALL = "aten::scaled_dot_product_attention"
_MATH = "aten::_scaled_dot_product_attention_math"
#: Work of a line that an attention never does: layers before and behind it.
_OTHERS = ("aten::mm", "aten::addmm", "aten::linear", "aten::convolution", "aten::embedding")


@dataclass(frozen=True, slots=True)
class Call:
    """Shapes of the inputs; ``mask`` is empty without one. ``dtype`` as a trace names it."""

    query: tuple[int, ...]
    key: tuple[int, ...]
    value: tuple[int, ...]
    mask: tuple[int, ...]
    dtype: str

    @property
    def broadcast(self) -> bool:
        """Whether batch and heads only match by broadcasting."""
        outer = {shape[:-2] for shape in (self.query, self.key, self.value)}
        return len(self.query) == 4 and len(outer) > 1


def calls_of(cost: LineCost) -> list[Call]:
    """The calls of a line, one for each set of shapes."""
    return [
        _call(op) for op in cost.ops if op.name == _CALL and op.phase == "forward" and len(op.shapes) >= 3
    ]


def _call(op: Op) -> Call:
    query, key, value = op.shapes[:3]
    return Call(
        query, key, value, op.shapes[3] if len(op.shapes) > 3 else (), op.dtypes[0] if op.dtypes else ""
    )


def runs_math(cost: LineCost) -> bool:
    """Whether torch's own implementation ran, of products and a softmax, instead of a fused kernel."""
    return any(op.name == _MATH for op in cost.ops)


def attention_share(cost: LineCost) -> float:
    """The part of a line's device time that is not another layer's; 1 where the record does not say."""
    whole = sum(op.device_ms for op in cost.ops)
    others = sum(op.device_ms for op in cost.ops if op.name.startswith(_OTHERS))
    return 1 - others / whole if whole else 1.0
