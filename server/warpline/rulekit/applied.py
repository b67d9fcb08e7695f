"""The edit that calls torch's function where one with a backward pass of its own is applied."""

from __future__ import annotations

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.formulas.samples import Samples, apart
from warpline.rulekit.graph.activation import SAMPLES, are_near, slopes
from warpline.rulekit.graph.matched import Matched
from warpline.rulekit.own_gradients import own_gradient_at
from warpline.rulekit.terms import Term, follow
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, is_method, methods, receiver


def call_where_applied(context: Context, one: Matched) -> Fix:
    """``F.silu(x)`` for ``Swish.apply(x)``, and for ``swish(x)`` of ``swish = Swish.apply``, where the class
    gives back the derivative of that function. Raises Refused."""
    refused = Refused(
        f"replace it with `{one.match.call}` by hand, because `{one.applied}` has a backward pass of its "
        "own, which goes with it"
    )
    made, source = one.costs[0], context.source(one.place[0])
    owner = own_gradient_at(context, made.file, made.line)
    calls = [call for call in source.calls(one.place[1]) if _applies(source, call, one.applied)]
    if owner is None or not _is_derivative(context.source(made.file), owner, one.match.call):
        raise refused
    if len(calls) != 1 or len(calls[0].args) != 1 or calls[0].args[0].star or calls[0].args[0].keyword:
        raise refused
    function, _, options = one.match.call.removesuffix(")").partition("(...")
    full = function.replace("F.", "torch.nn.functional.") if function.startswith("F.") else function
    edits = Edits(source)
    name = edits.add_import(full, "import torch.nn.functional as F" if full != function else "import torch")
    edits.replace(calls[0], f"{name}({source.code(calls[0].args[0].value)}{options})")
    return edits.fix(f"Use {function}", "unsafe")


def _applies(source: Source, call: cst.Call, owner: str) -> bool:
    called: cst.CSTNode = call.func
    given = source.assigned(called.value) if isinstance(called, cst.Name) else []
    applied = cst.Call(given[0]) if len(given) == 1 else call
    held = receiver(applied) if is_method(applied, "apply") else None
    name = held.attr if isinstance(held, cst.Attribute) else held
    return isinstance(name, cst.Name) and name.value == owner


def _is_derivative(source: Source, owner: cst.ClassDef, call: str) -> bool:
    """Whether the ``backward`` of a class multiplies its gradient by the derivative of what ``call``
    computes, at the only tensor that ``forward`` gets and saves."""
    wanted, own = slopes(call), methods(owner)
    forward, backward = own.get("forward"), own.get("backward")
    if wanted is None or forward is None or backward is None:
        return False
    taken, given = ([one.name.value for one in each.params.params] for each in (forward, backward))
    saved = [one for one in source.nodes(cst.Call, within=owner) if is_method(one, "save_for_backward")]
    saves = [source.code(arg.value) for one in saved for arg in one.args]
    if len(taken) != 2 or len(given) != 2 or saves != taken[1:]:
        return False
    again = len(source.bindings(taken[1], forward)) > 1
    # Its input, or the types that it computes in, may be others.
    if again or len(forward.decorators) > 1 or "mark_dirty" in source.code(owner):
        return False
    flow = follow(source, backward)
    results = [step.term for step in flow.steps if step.target is None]
    gradient = flow.steps[0].before.get(given[1]) if flow.steps else None
    inputs = apart(results[0], gradient) if len(results) == 1 and gradient is not None else set[Term]()
    if gradient is None or len(inputs) != 1 or not _is_saved(source, backward, given[0], *inputs):
        return False
    # Another gradient at each sample: they have to be multiplied.
    gradients = tuple(1 + number / 2 for number in range(len(SAMPLES)))
    numbers = Samples({inputs.pop(): SAMPLES, gradient: gradients}).of(results[0])
    return numbers is not None and are_near(
        tuple(number / one for number, one in zip(numbers, gradients, strict=True)), wanted
    )


def _is_saved(source: Source, backward: cst.FunctionDef, held: str, term: Term) -> bool:
    """Whether ``term`` is ``ctx.saved_tensors[0]``, also as ``x`` of ``x, = ctx.saved_tensors``."""
    if term.op == "index":
        whole = term.args[0]
        return (whole.op, whole.value) == ("attr", "saved_tensors")
    unpacked = [
        target.target
        for one in source.nodes(cst.Assign, within=backward)
        for target in one.targets
        if source.code(one.value) == f"{held}.saved_tensors"
    ]
    names = [
        source.code(element.value)
        for one in unpacked
        if isinstance(one, (cst.Tuple, cst.List))
        for element in one.elements
    ]
    return term.op == "name" and names == [term.value[0]]
