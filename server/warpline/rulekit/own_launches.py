"""Why code is not to be compiled: kernels that it launches by hand, and numbers that change in each step."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.calling import below
from warpline.rulekit.context import Context
from warpline.rulekit.counted import changing_number
from warpline.rulekit.kernels import COMPILED
from warpline.rulekit.terms import descend, function_at, names_in
from warpline.rulekit.training import TrainingStep
from warpline.rulekit.triton import definition
from warpline.syntax.source import Source
from warpline.wire.run import Site
from warpline.wire.sites import Triton, facts_of

#: Calls whose first argument is an address in a Triton kernel.
_ACCESS = ("load", "store", "make_block_ptr", "make_tensor_descriptor")


def uncompilable(context: Context, costs: Iterable[LineCost]) -> str | None:
    """Why code with these lines is not to be compiled, because of kernels that it launches itself or of a
    number that changes; else None.

    Inductor passes a Python float to a Triton kernel in double precision, where Triton's own launch passes it
    in single precision: a kernel may not compile then, or computes in double (seen with torch 2.13). At what
    launches other kernels without an operator of torch's (numba, cupy, a function of C++), torch.compile
    stops.
    """
    costs = list(costs)
    return _counts(context, costs) or _launches(context, costs)


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
    counts = _counts(context, [line for line in inside if line.place not in own])
    return counts or _launches(context, inside)


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
