"""The line of ``optimizer.step()``: what it launches, and where the optimizer is made."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.rulekit.holders import argument, holder, keys_of, lacking
from warpline.rulekit.memory import free_bytes
from warpline.rulekit.origins import Origin, called_as, is_self, unpacked_origin
from warpline.syntax.source import Source, called_name, is_method, receiver
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
#: What registers a hook that may step, and drop, each gradient as soon as it is there.
HOOK = "register_post_accumulate_grad_hook"
#: Bytes of a number of a gradient: of float32, as fewer are rare.
_BYTES = 4
#: What puts entries into a list.
_ADD = ("append", "extend")

_Made = tuple[Source, cst.CSTNode]


def in_small_groups(context: Context, optimizer: Optimizer, costs: list[LineCost]) -> bool:
    """Whether each tensor is updated by a call of its own although calls take lists: the parameters are in
    many groups, and each group is updated by itself."""
    tensors, groups = optimizer.parameters or 0, optimizer.groups or 1
    if tensors < MANY_TENSORS or groups * OPERATIONS < tensors:
        return False
    if not context.on_gpu:
        return bool(optimizer.fused or optimizer.foreach)
    return sum(launches_for_lists(cost) for cost in costs) >= tensors


def apart(context: Context, optimizer: Optimizer, costs: list[LineCost]) -> bool:
    """Whether each tensor has an optimizer of its own, and all of them step. Not where hooks free each
    gradient, and memory has no room for all of them."""
    few = (optimizer.parameters or 0) < OPERATIONS
    if not few or optimizer.made < MANY_TENSORS or sum(cost.launches for cost in costs) < optimizer.made:
        return False
    return not stepped_in_hooks(context) or gradient_bytes(optimizer) < free_bytes(context)


def stepped_in_hooks(context: Context) -> bool:
    """Whether hooks of the gradients step the optimizers of one parameter."""
    return next(context.calls(HOOK), None) is not None


def gradient_bytes(optimizer: Optimizer) -> float:
    """What the gradients take of all parameters of the optimizers that the line made."""
    return float(_BYTES * sum(number * prod(shape) for number, *shape in optimizer.all_shapes or ()))


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
    return all(isinstance(key, str) and key in _ARGUMENTS for key in keys_of(held.source, display))


def without_form(context: Context, site: Site, kind: str) -> tuple[Source, cst.Dict | cst.Call] | None:
    """The mapping that the call unpacks, where it has neither ``foreach`` nor ``fused``."""
    source = context.source(site.file)
    call = making_call(source, site, kind) or _call_of_value(source, site)
    return lacking(context, site, call, "fused", "foreach") if call is not None else None


def settings_taken(context: Context, site: Site, kind: str) -> tuple[Source, cst.Call] | None:
    """The call that takes more settings for the optimizer: the one that makes it, be its class a value
    (``getattr(torch.optim, name)(params, **settings)``). Where that makes other things as well, the call of
    the function around it, if that passes on what it gets by name. None where none is found."""
    source = context.source(site.file)
    call, place = making_call(source, site, kind), site.place
    if call is not None:
        return source, call
    call = _call_of_value(source, site)
    for frame in site.frames[1:]:
        if call is None or not _makes_others(context, place):
            break
        function = source.enclosing(call, cst.FunctionDef)
        if function is None or not _passes_on(source, function):
            break
        outer, name = context.source(frame.file), called_as(source, function)
        calls = [one for one in outer.calls(frame.line) if called_name(one) == name]
        call, source, place = next(iter(calls), None), outer, frame.place
    return (source, call) if call is not None else None


def _makes_others(context: Context, place: tuple[str, int]) -> bool:
    """Whether a line that makes an optimizer has made something else, too."""
    others = (site for site in context.profile.facts.sites if site.kind != "optimizer")
    return any(place == frame.place for site in others for frame in (site, *site.frames))


def _passes_on(source: Source, function: cst.FunctionDef) -> bool:
    """Whether a function hands on what it gets by name: ``f(**more)``, or ``settings.update(more)``."""
    more = function.params.star_kwarg
    for one in source.uses(more.name.value, function.body) if more is not None else ():
        above = source.parent(one)
        call = source.parent(above) if isinstance(above, cst.Arg) else None
        starred = isinstance(above, cst.StarredDictElement) or getattr(above, "star", "") == "**"
        if starred or (isinstance(call, cst.Call) and is_method(call, "update")):
            return True
    return False


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


def is_by_name(source: Source, call: cst.Call) -> bool:
    """Whether ``call`` makes an optimizer of torch's, be its class looked up by name:
    ``getattr(torch.optim, name)(groups)``."""
    made = call.func
    if isinstance(made, cst.Call) and source.name(made.func) == "getattr" and made.args:
        return source.name(made.args[0].value) == "torch.optim"
    return source.name(made).rpartition(".")[0] == "torch.optim"


def _call_of_value(source: Source, site: Site) -> cst.Call | None:
    """The only call on the line that unpacks a mapping, of what a table or a variable gives: a registry's."""
    found = [call for call in source.calls(site.line) if source.unpacked(call)]
    called = found[0].func if len(found) == 1 else None
    if not isinstance(called, (cst.Name, cst.Attribute)):
        return found[0] if isinstance(called, (cst.Subscript, cst.Call)) else None
    if isinstance(called, cst.Attribute) and is_self(called.value):
        return found[0] if not source.functions(called.attr.value) else None
    named = [one for one in source.nodes(type(called)) if source.code(one) == source.code(called)]
    bound = {type(source.parent(one)) for one in named if source.binds(one)}
    return found[0] if bound and bound <= {cst.AssignTarget, cst.Param} else None


def maker_of(source: Source, call: cst.Call, name: str, others: Iterable[Source] = ()) -> _Made:
    """What makes the entries of the list passed as ``name``, the first argument, and its file: a call that
    adds one in a loop, a comprehension, or what else the list is. ``call`` where none is found. ``others``:
    files that may define a function that makes the list."""
    given = source.argument(call, name, 0)
    found = _maker(source, given.value, source.scope(call), tuple(others)) if given is not None else None
    return found or (source, call)


def _maker(
    source: Source, made: cst.BaseExpression, within: cst.CSTNode, others: tuple[Source, ...], depth: int = 3
) -> _Made | None:
    """The same of the list ``made``, an expression in the function ``within``; None for none."""
    if isinstance(made, cst.Call):  # of a function that returns the list
        name = source.name(made.func).rpartition(".")[2]
        having = [source] if source.functions(name) else [one for one in others if one.functions(name)]
        if len(having) != 1:
            return None
        source = having[0]
        functions = source.functions(name)
        returned = [one for each in functions for one in source.nodes(cst.Return, within=each)]
        yielded = [one for each in functions for one in source.nodes(cst.Yield, within=each)]
        if len(functions) == len(yielded) == 1:  # of a generator
            return source, yielded[0]
        back = returned[-1].value if len(functions) == 1 and returned else None
        return _maker(source, back, functions[0], others, depth - 1) if back is not None and depth else None
    if not isinstance(made, cst.Name):
        return source, made
    calls = [one for one in source.nodes(cst.Call, within=within) if is_method(one, *_ADD)]
    added = [one for one in calls if getattr(receiver(one), "value", None) == made.value]
    grown = [
        one for one in source.nodes(cst.AugAssign, within=within) if source.code(one.target) == made.value
    ]
    filling = next((one for one in (*added, *grown) if source.loops(one)), None)
    assigned = source.assigned(made.value, within=within)
    if filling is not None or not assigned:
        return (source, filling) if filling is not None else None
    called = isinstance(assigned[-1], cst.Call)
    deeper = _maker(source, assigned[-1], within, others, depth) if called else None
    return deeper or (source, assigned[-1])
