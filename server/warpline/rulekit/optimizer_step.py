"""The line of ``optimizer.step()``: what it launches, and where the optimizer is made."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.rulekit.holders import argument, beside, holder, literal_at
from warpline.rulekit.origins import Origin, unpacked_origin
from warpline.syntax.edits import Refused
from warpline.syntax.source import Source
from warpline.wire.births import Holder
from warpline.wire.run import Site
from warpline.wire.sites import Optimizer, facts_of

_ARGUMENTS = frozenset({
    "lr", "betas", "eps", "weight_decay", "amsgrad", "momentum", "dampening", "nesterov", "lr_decay",
    "initial_accumulator_value", "maximize", "capturable", "differentiable", "foreach", "fused",
})  # fmt: skip
#: With fewer tensors, updating one by one takes almost no time.
MANY_TENSORS = 16
#: Operations for each tensor from which on there is something to fuse: plain SGD has one.
OPERATIONS = 3


def in_small_groups(context: Context, optimizer: Optimizer, costs: list[LineCost]) -> bool:
    """Whether each tensor has its own kernel launches although the kernels take lists: the parameters are in
    many groups, and each group is launched separately."""
    tensors, groups = optimizer.parameters or 0, optimizer.groups or 1
    if not context.on_gpu or tensors < MANY_TENSORS or groups * OPERATIONS < tensors:
        return False
    return sum(launches_for_lists(cost) for cost in costs) >= tensors


def parameter_shapes(sites: Iterable[Site]) -> dict[tuple[int, ...], int]:
    """How many parameters of each shape the optimizers at ``sites`` have."""
    found: dict[tuple[int, ...], int] = {}
    for site in sites:
        for number, *shape in facts_of(Optimizer, site).shapes or ():
            found[tuple(shape)] = found.get(tuple(shape), 0) + number
    return found


def launches_for_lists(cost: LineCost) -> float:
    """Launches of kernels that work through lists of tensors."""
    return sum(
        kernel.count
        for kernel in cost.kernels
        if kernel.kind == "kernel" and "multi_tensor_apply" in kernel.name
    )


def is_step(context: Context, cost: LineCost) -> bool:
    """Whether the line calls ``step()``. A line that only clears gradients does not change with the fix."""
    source = context.source(cost.file)
    return not source.text or source.call(cost.line, "step") is not None


def stands_alone(context: Context, cost: LineCost) -> bool:
    """Whether the line does little else than the optimizer's step, so that its cost is the step's."""
    source = context.source(cost.file)
    step = source.call(cost.line, "step")
    if step is None:
        return True
    return all(
        source.inside(call, step) or source.is_named(call.func, "step", "zero_grad", "update")
        for call in source.calls(cost.line)
    )


def calls_a_tensor(context: Context, cost: LineCost) -> float:
    """Kernels a step that work on one tensor each; on a CPU, the operators that the optimizer calls. On a
    GPU, torch's default launches kernels for lists of tensors, which do not count."""
    if context.on_gpu:
        kernels = sum(kernel.count for kernel in cost.kernels if kernel.kind == "kernel")
        return max(0.0, (kernels or cost.launches) - launches_for_lists(cost))
    return sum(
        op.count
        for op in cost.ops
        if not op.name.startswith(("Optimizer.", "aten::_fused", "aten::_foreach"))
    )


def set_at(site: Site) -> Holder | None:
    """Where it is written that the optimizer updates its tensors one by one: an entry, a field, an option;
    None where the call itself says so."""
    held, found = holder(site, "foreach"), argument(site, "foreach")
    told = held is not None and held.kind != "call" and found is not None and found.value is False
    return held if told else None


def unpacked(context: Context, site: Site, kind: str) -> Origin | None:
    """The value of ``foreach`` or ``fused`` in a mapping that the call unpacks. None where it is not known to
    have one."""
    source = context.source(site.file)
    call = making_call(source, site, kind)
    if call is None:
        return None
    found = (
        unpacked_origin(context, source, value, name)
        for name in ("fused", "foreach")
        for value in source.unpacked(call)
    )
    return next((one for one in found if one is not None and one.editable and _for_optimizer(one)), None)


def _for_optimizer(held: Origin) -> bool:
    """Whether an optimizer takes all keys of the mapping: another one may have an entry `fused` too."""
    entry = held.source.parent(held.node)
    display = held.source.parent(entry) if entry is not None else None
    return all(isinstance(key, str) and key in _ARGUMENTS for key in _keys(held.source, display))


def _keys(source: Source, display: cst.CSTNode | None) -> list[object]:
    """The keys of a dict display or of a call's keywords; None for one that cannot be read."""
    if isinstance(display, cst.Dict):
        keys = [getattr(one, "key", None) for one in display.elements]
        return [source.literal(key) if isinstance(key, cst.CSTNode) else None for key in keys]
    if isinstance(display, cst.Call):
        return [one.keyword.value if one.keyword is not None else None for one in display.args]
    return []


def lacking(context: Context, site: Site, kind: str) -> tuple[Source, cst.Dict | cst.Call] | None:
    """The mapping that the call unpacks, where it has neither ``foreach`` nor ``fused``: the one whose
    entries are all that was recorded of the call beside what it names itself. None where that is unknown."""
    source = context.source(site.file)
    call = making_call(source, site, kind)
    forms = [argument(site, name) for name in ("fused", "foreach")]
    if call is None or len(source.unpacked(call)) != 1 or any(one is None or one.passed for one in forms):
        return None
    named = {arg.keyword.value for arg in call.args if arg.keyword is not None}
    given = {one.name for one in site.arguments if one.passed} - named - {"params"}
    displays = [display_of(context, site, name) for name in given]
    first = displays[0] if displays else None
    if first is None or any(one is None or one[1] is not first[1] for one in displays):
        return None
    keys = _keys(*first)
    return first if len(keys) == len(given) and set(keys) == given else None


def display_of(context: Context, site: Site, name: str) -> tuple[Source, cst.Dict | cst.Call] | None:
    """The dict display, or the call of ``dict``, in which the run recorded the value of an argument."""
    found, held = argument(site, name), holder(site, name)
    if found is None or held is None or held.kind != "entry":
        return None
    try:
        where, node = literal_at(context, held, found.value)
    except Refused:
        return None
    outer = beside(where, node)
    if isinstance(outer, cst.Call) and not where.is_named(outer.func, "dict"):
        return None
    return (where, outer) if outer is not None else None


def making_call(source: Source, site: Site, kind: str) -> cst.Call | None:
    """The call of the optimizer's class on the line. With a factory or an alias, the call that gets the
    learning rate or the parameters."""
    named = source.call(site.line, kind, "super.__init__")
    if named is not None:
        return named
    for call in source.calls(site.line):
        names = {arg.keyword.value for arg in call.args if arg.keyword is not None}
        if names & {"lr", "weight_decay", "betas", "momentum", "foreach"} or "parameters()" in source.code(
            call
        ):
            return call
    return None
