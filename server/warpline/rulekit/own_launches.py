"""Why code is not to be compiled: kernels that it launches by hand, numbers and lengths of lists that change
in each step, and recurrent layers in loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.calling import below
from warpline.rulekit.compiled_reach import calls_around, is_recurrent, repeats
from warpline.rulekit.context import Context
from warpline.rulekit.kept_for_good import kept_for_good
from warpline.rulekit.kept_statements import uses_of, whole_name
from warpline.rulekit.kernels import COMPILED
from warpline.rulekit.terms import descend, function_at, names_in
from warpline.rulekit.training import TrainingStep
from warpline.rulekit.triton import definition
from warpline.rulekit.waiting import counter
from warpline.syntax.source import Source, called_name
from warpline.wire.run import Site
from warpline.wire.sites import Module, Triton, facts_of

#: Calls whose first argument is an address in a Triton kernel.
_ACCESS = ("load", "store", "make_block_ptr", "make_tensor_descriptor")


def uncompilable(context: Context, costs: Iterable[LineCost]) -> str | None:
    """Why code with these lines is not to be compiled, because of kernels that it launches itself, or of a
    number or the length of a list that changes; else None.

    Inductor passes a Python float to a Triton kernel in double precision, where Triton's own launch passes it
    in single precision: a kernel may not compile then, or computes in double (seen with torch 2.13). At what
    launches other kernels without an operator of torch's (numba, cupy, a function of C++), torch.compile
    stops.
    """
    costs = list(costs)
    return (
        _counts(context, costs)
        or _lengthens(context, costs)
        or _recurs(context, costs)
        or _launches(context, costs)
    )


def _recurs(context: Context, costs: Iterable[LineCost]) -> str | None:
    """torch.compile stops at each call of a recurrent layer (``torch._dynamo.config.allow_rnn``), and
    compiles nothing of a function that has such a stop in a loop (seen with torch 2.13)."""
    within = list({cost.place: cost for cost in costs}.values())
    for cost in filter(is_recurrent, within):
        if any(repeats(context, one) for one in calls_around((cost,), within)):
            return (
                "torch.compile stops at each call of a recurrent layer, as of `nn.GRU`, and compiles nothing "
                "of a function that has one in a loop: compile functions without one that the loop calls"
            )
    return None


def _lengthens(context: Context, costs: Iterable[LineCost]) -> str | None:
    """torch.compile takes the length of a list that the code adds to, reads or is given for a constant: it
    compiles again for each length, eight times, and then gives up (counted with torch 2.13)."""
    functions = {(cost.file, function_at(context.source(cost.file), cost.line)) for cost in costs}
    names = {function.name.value for _, function in functions if function is not None}
    for source, value, keeper in kept_for_good(context, epochs=True):
        owner = source.enclosing(value, cst.ClassDef)
        for other, name in uses_of(context, keeper):
            within = other.path, other.enclosing(name, cst.FunctionDef)
            mine = owner is None or other.enclosing(name, cst.ClassDef) is owner
            argument = other.parent(whole_name(other, name))
            call = other.parent(argument) if isinstance(argument, cst.Arg) else None
            given = isinstance(call, cst.Call) and called_name(call) in names
            if mine and (within in functions or given):
                return (
                    f"`{keeper}` gets longer in each step, and torch.compile compiles code that has such a "
                    "list again for each length: add to it, and read it, outside of what is compiled"
                )
    return None


def _counts(context: Context, costs: list[LineCost]) -> str | None:
    number = changing_number(context, costs)
    if number is None:
        return None
    return (
        f"`{number}` is another whole number in each step, and torch.compile compiles code that reads it "
        "again for each value: keep it in a tensor (a buffer of the module), or pass it as an argument"
    )


def _launches(context: Context, costs: list[LineCost]) -> str | None:
    places = {cost.place for cost in costs}
    launches = [site for site in context.sites(Triton.KIND) if site.place in places]
    for site in launches:
        if _with_float(context, site) and not _is_operator(context.source(site.file), site.line):
            name = facts_of(Triton, site).kernel
            return (
                f"the Triton kernel `{name}` is given a Python float, which compiled code would pass in "
                "double precision, and with that it may not compile: make the launch an operator by "
                "`torch.library.custom_op`, or compile only the code around it"
            )
    known = {site.place for site in launches}
    recorded = any(op.launches for cost in context.profile.lines for op in cost.ops)
    if recorded and any(cost.place not in known and _without_operator(cost) for cost in costs):
        return (
            "kernels are launched there by no operator of torch's, and torch.compile stops at that: make the "
            "launch an operator by `torch.library.custom_op`, or compile only the code around it"
        )
    return None


def launches_itself(context: Context) -> bool:
    """Whether something in the step launches kernels that are no operator's: what they do is not recorded."""
    recorded = any(op.launches for cost in context.profile.lines for op in cost.ops)
    return bool(context.sites(Triton.KIND)) or (
        recorded and any(map(_without_operator, context.profile.lines))
    )


def model_uncompilable(context: Context, step: TrainingStep | None) -> str | None:
    """The same of what the forward pass of a step calls; None where there is no step."""
    if step is None:
        return None
    called = [cost for statement in step.forward for cost in context.costs_of(step.source, statement)]
    inside = [line for cost in called for line in below(context, cost)]
    own = {cost.place for cost in called}  # which the loop runs, not the model
    models = [line for line in inside if line.place not in own]
    found = _counts(context, models) or _lengthens(context, models) or _recurs(context, models)
    return found or _launches(context, inside)


def _without_operator(cost: LineCost) -> bool:
    """Whether a line's kernels are neither an operator's nor compiled ones."""
    kernels = [kernel for kernel in cost.kernels if kernel.kind == "kernel"]
    own = bool(kernels) and cost.launches > 0 and not any(op.launches for op in cost.ops)
    return own and not cost.group and not any(kernel.name.startswith(COMPILED) for kernel in kernels)


def _is_operator(source: Source, line: int) -> bool:
    """Whether the line is in a function that is registered as an operator, into which nothing looks."""
    return source.decorated(function_at(source, line), "torch.library.custom_op")


def _with_float(context: Context, site: Site) -> bool:
    """Whether a launch gives its kernel a Python float. Runs that do not say so: whether the kernel has a
    parameter that was given no whole number and is in no address."""
    launch = facts_of(Triton, site)
    if launch.floats is not None:
        return bool(launch.floats)
    found = definition(context, launch.kernel) if launch.kernel else None
    if found is None:
        return True
    source, function = found
    plain = {one.name.value for one in function.params.params if one.annotation is None}
    return bool(plain - set(launch.numbers or ()) - _in_addresses(source, function))


def _in_addresses(source: Source, function: cst.FunctionDef) -> set[str]:
    """Names that the addresses of a kernel are computed of, also by way of other names."""
    found: set[str] = set()
    for call in descend(function, cst.Call):
        name = source.name(call.func).rpartition(".")[2]
        if call.args and (name in _ACCESS or name.startswith("atomic_")):
            found |= names_in(call.args[0].value)
    assigned = [
        (names_in(target.target), names_in(node.value))
        for node in descend(function, cst.Assign)
        for target in node.targets
    ]
    before = -1
    while before != len(found):
        before = len(found)
        found |= {name for targets, value in assigned if targets & found for name in value}
    return found


def changing_number(context: Context, costs: Iterable[LineCost]) -> str | None:
    """The name of such a number that the functions with these lines read, as an attribute in a module's
    method or as a global; else None.

    torch.compile takes both for constants, and compiles again for each value, eight times; then it gives up.
    Whole numbers that are passed, or that a plain object has, and all others than whole ones it takes for
    variables from the second value on (counted with torch 2.13).
    """
    found = {(cost.file, function_at(context.source(cost.file), cost.line)) for cost in costs}
    functions = [(context.source(file), function) for file, function in found if function is not None]
    modules = _module_classes(context)
    owners = (source.enclosing(function, cst.ClassDef) for source, function in functions)
    method = any(owner is not None and owner.name.value in modules for owner in owners)
    for source, name, attribute in _changed(context):
        for other, function in functions if method or not attribute else ():
            if attribute:
                read = any(one.attr.value == name for one in other.nodes(cst.Attribute, within=function))
            else:
                read = other is source and _reads_global(other, function, name)
            if read:
                return name
    return None


def _changed(context: Context) -> Iterator[tuple[Source, str, bool]]:
    """Attributes (True, by their last name) and globals that a line of each step adds a whole number to, and
    counters of loops outside functions."""
    for cost, source, statement in context.each_step:
        outside = source.enclosing(statement, cst.FunctionDef) is None
        loop = counter(source, statement) if outside else None
        if loop is not None:
            yield source, loop[0], False
        for small in statement.body if not cost.ops and not cost.launches else ():
            target = _grown(source, small)
            if isinstance(target, cst.Attribute):
                yield source, target.attr.value, True
            elif target is not None and (outside or _is_global(source, statement, target.value)):
                yield source, target.value, False


def _grown(source: Source, small: cst.BaseSmallStatement) -> cst.Attribute | cst.Name | None:
    """What ``x.seen += 1`` or ``x.seen = x.seen + 1`` gives another whole number."""
    if isinstance(small, cst.AugAssign):
        target, value, whole = small.target, small.value, not isinstance(small.operator, cst.DivideAssign)
    elif isinstance(small, cst.Assign) and len(small.targets) == 1:
        target, value = small.targets[0].target, small.value
        kept = source.code(target)
        whole = isinstance(value, cst.BinaryOperation) and kept in map(source.code, (value.left, value.right))
    else:
        return None
    if not whole or not isinstance(target, (cst.Attribute, cst.Name)):
        return None
    return None if source.nodes(cst.Float, cst.Divide, cst.List, within=value) else target


def _is_global(source: Source, statement: cst.CSTNode, name: str) -> bool:
    function = source.enclosing(statement, cst.FunctionDef)
    said = source.nodes(cst.Global, within=function) if function is not None else []
    return any(item.name.value == name for one in said for item in one.names)


def _reads_global(source: Source, function: cst.FunctionDef, name: str) -> bool:
    own = {param.name.value for param in source.nodes(cst.Param, within=function)}
    own |= {
        one.target.value
        for one in source.nodes(cst.AssignTarget, within=function)
        if isinstance(one.target, cst.Name)
    }
    return name not in own and bool(source.uses(name, function))


def variants(context: Context, source: Source, function: cst.FunctionDef) -> int:
    """Modules of the class with that method which torch.compile compiles apart; 0 where they are few."""
    owner = source.enclosing(function, cst.ClassDef)
    name = owner.name.value if owner is not None else None
    made = (facts_of(Module, site) for site in context.sites(Module.KIND))
    return max((one.variants or 0 for one in made if str(one.type).rpartition(".")[2] == name), default=0)


def _module_classes(context: Context) -> set[str]:
    """Names of the classes of the script's modules, and of those that these inherit from."""
    found = {str(facts_of(Module, site).type).rpartition(".")[2] for site in context.sites("module")}
    waiting = list(found)
    while waiting:
        for source, owner in context.classes(waiting.pop()):
            fresh = {source.code(base.value).rpartition(".")[2] for base in owner.bases} - found
            found |= fresh
            waiting += fresh
    return found
