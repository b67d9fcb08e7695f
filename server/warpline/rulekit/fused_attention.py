"""Calls of ``F.scaled_dot_product_attention`` as they were recorded, and their arguments rewritten so that a
fused kernel takes them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import libcst as cst

from warpline.model import costs
from warpline.model.operators import FUSED_ATTENTION
from warpline.model.profile import LineCost, Op
from warpline.rulekit.context import Context
from warpline.rulekit.formulas.attention import hides_the_future, holds_flags
from warpline.rulekit.kernels import MATMULS
from warpline.rulekit.terms import atom, follow, function_at
from warpline.syntax.edits import Refused
from warpline.syntax.source import Source, parameters
from warpline.wire.dataflow import MODULE, Dataflow, Masked
from warpline.wire.precision import HALF

_CALL = "aten::scaled_dot_product_attention"
_MATH = "aten::_scaled_dot_product_attention_math"
_SOFTMAX = "_safe_softmax"
#: Work of a line that an attention never does: layers before and behind it.
_OTHERS = ("aten::mm", "aten::addmm", "aten::linear", "aten::convolution", "aten::embedding")
_CUDNN = "aten::_scaled_dot_product_cudnn_attention"
#: Host time of a call for which cuDNN makes a plan; there is one for each size, and it is kept. A call that
#: finds its plan takes a tenth of that, and one that makes it several times as much.
PLANNED_MS = costs.bound("attention-planned")
NAME = "scaled_dot_product_attention"
#: What torch's modules call the mask that they pass on, where `is_causal` tells of it.
_MASKS = ("attn_mask", "src_mask")


@dataclass(frozen=True, slots=True)
class Call:
    """Shapes of the inputs; ``mask`` is empty without one. Types of numbers are as a trace names them."""

    query: tuple[int, ...]
    key: tuple[int, ...]
    value: tuple[int, ...]
    mask: tuple[int, ...]
    dtype: str
    mask_dtype: str
    in_graph: bool = False  # in compiled code, where a mask of bools has become one of numbers

    @property
    def headless(self) -> bool:
        """Whether the inputs have three dimensions and equal batch sizes. (``enable_gqa`` takes the first of
        three dimensions for heads, and then they may differ.)"""
        inputs = (self.query, self.key, self.value)
        return all(len(shape) == 3 for shape in inputs) and len({shape[0] for shape in inputs}) == 1

    @property
    def broadcast(self) -> bool:
        """Whether batch and heads only match by broadcasting, not by ``enable_gqa``."""
        inputs = (self.query, self.key, self.value)
        if any(len(shape) != 4 for shape in inputs):
            return False
        sizes = [{shape[dim] for shape in inputs} for dim in (0, 1)]
        return any(len(each) > 1 for each in sizes) and all(len(each - {1}) <= 1 for each in sizes)

    @property
    def grouped(self) -> bool:
        """Whether several heads of queries share one of keys and values, as ``enable_gqa`` has it."""
        inputs = (self.query, self.key, self.value)
        if any(len(shape) != 4 for shape in inputs):
            return False
        heads = [shape[1] for shape in inputs]
        return heads[0] > heads[1] == heads[2] and heads[0] % heads[1] == 0


def calls_of(cost: LineCost) -> list[Call]:
    """The calls of a line, one for each set of shapes."""
    forward = [op for op in cost.ops if op.phase == "forward" and len(op.shapes) >= 3]
    called = [_call(op) for op in forward if op.name == _CALL]
    return called or [_call(op, in_graph=True) for op in forward if op.name in FUSED_ATTENTION]


def _call(op: Op, *, in_graph: bool = False) -> Call:
    query, key, value = op.shapes[:3]
    # Kernels take the mask behind other arguments, which are plain numbers.
    at = next((at for at, shape in enumerate(op.shapes) if at > 2 and shape), 3)
    dtypes = op.dtypes + ("",) * (at + 1)
    mask = op.shapes[at] if at < len(op.shapes) else ()
    return Call(query, key, value, mask, dtypes[0], dtypes[at], in_graph)


def masks_at(flow: Dataflow, file: str, line: int) -> list[Masked]:
    """The masks that a line's calls were given in the recorded step."""
    sites = {at for at, site in enumerate(flow.sites) if site.place == (file, line)}
    return [one for one in flow.masked if flow.site[one.operator] in sites]


def runs_math(cost: LineCost) -> bool:
    """Whether torch's own implementation ran, of products and a softmax, instead of a fused kernel. In
    compiled code the kernel with its softmax says so: no other function calls that one."""
    return any(op.name == _MATH for op in cost.ops) or any(_SOFTMAX in one.name for one in cost.kernels)


def in_float32(cost: LineCost) -> bool:
    """Whether a fused kernel computes all of a line's attention in float32. Under autocast a call is recorded
    as it was given, its kernel as it ran."""
    ran = [op for op in cost.ops if op.phase == "forward" and op.name in FUSED_ATTENTION]
    return bool(ran) and all(op.dtypes[:1] == ("float",) for op in ran)


def half_of_products(costs: Iterable[LineCost]) -> str:
    """The type of 16 bits that most of the time of matrix products is spent in, as a trace names it; "" where
    that is another type."""
    spent: defaultdict[str, float] = defaultdict(float)
    for op in (op for cost in costs for op in cost.ops):
        if op.name in MATMULS and op.dtypes:
            spent[op.dtypes[0]] += op.device_ms
    most = max(spent, key=lambda one: spent[one], default="")
    return most if most in HALF else ""


def attention_share(cost: LineCost) -> float:
    """The part of a line's device time that is not another layer's; 1 where the record does not say."""
    whole = sum(op.device_ms for op in cost.ops)
    others = sum(op.device_ms for op in cost.ops if op.name.startswith(_OTHERS))
    return 1 - others / whole if whole else 1.0


def may_be_none(source: Source, mask: cst.BaseExpression) -> bool:
    """Whether ``mask`` may be None: a parameter with a default, an attribute, a conditional expression."""
    function = source.enclosing(mask, cst.FunctionDef)
    if not isinstance(mask, cst.Name) or function is None:
        return isinstance(mask, (cst.Attribute, cst.IfExp))
    return any(one.name.value == mask.value and one.default is not None for one in parameters(function))


def expanded(source: Source, arguments: list[cst.Arg], calls: list[Call]) -> dict[cst.BaseExpression, str]:
    """Each argument that is smaller than another one, with ``.expand`` added. Raises Refused where the sizes
    do not broadcast, or the larger argument has no name."""
    found: dict[cst.BaseExpression, str] = {}
    shapes = list(zip(*((call.query, call.key, call.value) for call in calls), strict=True))
    for at, arg in enumerate(arguments):
        sizes = ["-1"] * 4
        for dim in (0, 1):
            largest = max(range(3), key=lambda other: shapes[other][0][dim])
            sizes_of = [(one[at][dim], one[largest][dim]) for one in zip(*shapes, strict=True)]
            if all(size == wanted for size, wanted in sizes_of):
                continue
            if any(size not in (1, wanted) for size, wanted in sizes_of):  # another is smaller each time
                raise Refused("expand query, key and value to equal batch and head sizes")
            whole = arguments[largest].value
            if not isinstance(whole, (cst.Name, cst.Attribute)):
                raise Refused("expand query, key and value to equal batch and head sizes")
            sizes[dim] = f"{source.code(whole)}.shape[{dim}]"
        if sizes != ["-1"] * 4:
            found[arg.value] = f"{atom(source.code(arg.value))}.expand({', '.join(sizes)})"
    return found


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


def attention_call(context: Context, cost: LineCost) -> tuple[Source, cst.Call]:
    """The line's only call of scaled_dot_product_attention. Raises Refused where there is none, or
    several."""
    source = context.source(cost.file)
    calls = source.calls(cost.line, NAME)
    if len(calls) != 1:
        raise Refused("change the arguments of the attention where it is called")
    return source, calls[0]


def module_call(context: Context, cost: LineCost) -> tuple[Source, cst.Call, cst.BaseExpression] | None:
    """The line's only call of a module of torch's that passes on a mask and nothing that hides padding, and
    that mask; None where the line has another attention, or `is_causal` is given."""
    flow, source = context.profile.facts.dataflow, context.source(cost.file)
    vias = {flow.sites[flow.site[one.operator]].via for one in masks_at(flow, cost.file, cost.line)}
    found = [
        (source, call, mask.value)
        for call in source.calls(cost.line)
        for name in _MASKS
        if (mask := source.argument(call, name)) is not None
    ]
    if vias != {MODULE} or len(found) != 1:
        return None
    given = {arg.keyword.value if arg.keyword else arg.star for arg in found[0][1].args}
    return None if given & {"*", "**", "is_causal", "key_padding_mask", "src_key_padding_mask"} else found[0]


def is_causal(context: Context, cost: LineCost, calls: list[Call]) -> bool:
    """Whether the masks of a line hide later positions and nothing else: as recorded in a step, else as the
    code makes them."""
    if any(one.query[-2] != one.key[-2] or one.mask[-2:] != (one.query[-2], one.key[-2]) for one in calls):
        return False
    held = masks_at(context.profile.facts.dataflow, cost.file, cost.line)
    return all(one.causal for one in held) if held else made_causal(context, cost, calls)


def made_causal(context: Context, cost: LineCost, calls: list[Call]) -> bool:
    """Whether the code makes a causal mask.

    A mask of numbers is added to the scores, so a triangle of ones hides nothing there. In compiled code only
    the text says which it was."""
    dtypes = {one.mask_dtype for one in calls}
    try:
        source, call = attention_call(context, cost)
    except Refused:
        return False
    mask, function = source.argument(call, "attn_mask", 3), function_at(source, cost.line)
    if mask is None or function is None:
        return False
    flow = follow(source, function)
    term = flow.terms.get(mask.value)
    in_graph = any(one.in_graph for one in calls)
    if term is None:
        return False
    flags = holds_flags(term, flow) if in_graph else dtypes == {"bool"}
    return flags is not None and hides_the_future(term, flow, flags=flags)
