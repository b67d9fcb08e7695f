"""Edits that record no graph: for one statement, or for a whole evaluation."""

from __future__ import annotations

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.calling import callers, function_of, is_forward
from warpline.rulekit.context import Context
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source

#: Methods of tensors, which are no parts of a model.
_OF_TENSORS = frozenset({
    "to", "float", "half", "double", "bfloat16", "cuda", "cpu", "detach", "clone", "view", "reshape",
    "flatten", "unsqueeze", "squeeze", "transpose", "permute", "size", "softmax", "log_softmax", "argmax",
    "mean", "sum",
})  # fmt: skip


def without_graph(context: Context, place: tuple[str, int]) -> Fix:
    """The statement at ``place`` under ``torch.no_grad()``. Raises Refused, also where the statement calls
    more than one part of the model: the others may need their gradients."""
    source = context.source(place[0])
    statement = source.statement_at(place[1])
    if not isinstance(statement, cst.SimpleStatementLine):
        raise Refused("put the call of this part under `torch.no_grad()`")
    refuse_ungraphed(source, statement)
    if any(isinstance(node, cst.Return) for node in statement.body) and not _called_once(context, place):
        raise Refused("put the call of this part under `torch.no_grad()`")
    if len(_parts_called(source, statement)) > 1:
        raise Refused("put the call of this part alone under `torch.no_grad()`, on a line of its own")
    edits = Edits(source)
    edits.wrap([statement], f"with {edits.add_import('torch.no_grad', 'import torch')}():")
    return edits.fix("Wrap this in torch.no_grad()", "unsafe")


def _called_once(context: Context, place: tuple[str, int]) -> bool:
    """Whether one line alone calls the function at ``place``, and it is no module's ``forward``."""
    cost = context.cost(*place)
    function = function_of(cost) if cost is not None else ("", "")
    return cost is not None and not is_forward(function) and len(callers(context, function)) == 1


def refuse_ungraphed(source: Source, statement: cst.CSTNode) -> None:
    """Raises Refused if the statement is in a block that records no graph."""
    around = [source.code(item) for outer in source.ancestors(statement) if isinstance(outer, cst.With)
              for item in outer.items]  # fmt: skip
    if any("no_grad" in item or "inference_mode" in item for item in around):
        raise Refused("it already runs under `torch.no_grad()`")


def only_draws(source: Source, line: int) -> bool:
    """Whether the statement at ``line`` only draws from torch's distributions. What those compute of their
    parameters is recorded in any mode (``torch.distributions.utils.lazy_property``): no edit changes it."""
    statement = source.statement_at(line)
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    scope = source.enclosing(statement, cst.FunctionDef)
    names = [name.rpartition(".") for name in _parts_called(source, statement)]
    return bool(names) and all(
        method == "sample" and _is_distribution(source, source.assigned(holder, scope))
        for holder, _, method in names
    )


def _is_distribution(source: Source, values: list[cst.BaseExpression]) -> bool:
    made = [source.returned(value) or value for value in values]
    names = [source.name(one.func) if isinstance(one, cst.Call) else "" for one in made]
    return bool(names) and all(name.startswith("torch.distributions.") for name in names)


def in_inference_mode(place: tuple[Source, cst.FunctionDef | cst.For | cst.While] | None) -> Fix:
    """The loop under ``torch.inference_mode()``, or the function with it as a decorator. Raises Refused."""
    if place is None:
        raise Refused("no loop was found")
    source, node = place
    code = source.code(node)
    around = [outer for outer in source.ancestors(node) if isinstance(outer, cst.With)]
    if any("inference_mode" in text or "no_grad" in text for text in (code, *map(source.code, around))):
        raise Refused("part of it already runs in inference mode")
    edits = Edits(source)
    written = edits.add_import("torch.inference_mode", "import torch")
    if isinstance(node, cst.FunctionDef):
        if any("grad" in source.code(d) or "inference" in source.code(d) for d in node.decorators):
            raise Refused("the function already has such a decorator")
        if node.decorators:  # above @staticmethod it breaks the method, above a route it has no effect
            raise Refused(
                f"put `@{written}()` below the function's other decorators, directly above its `def`"
            )
        if node.asynchronous is not None:
            raise Refused(f"put the call of the model under `with {written}():`")
        edits.insert_before(node, f"@{written}()")
    else:
        edits.wrap([node], f"with {written}():")
    return edits.fix("Evaluate in inference mode", "unsafe")


def _parts_called(source: Source, statement: cst.SimpleStatementLine) -> list[str]:
    """Names of what may be a module, in the calls of ``statement``: neither torch's own, nor a tensor's; the
    code of an element or a result that is called (`nets["pupil"](x)`)."""
    names = [
        source.code(call.func) if isinstance(call.func, (cst.Subscript, cst.Call)) else source.name(call.func)
        for call in source.nodes(cst.Call, within=statement)
    ]
    return [
        name
        for name in names
        if name and not name.startswith("torch.") and name.rpartition(".")[2] not in _OF_TENSORS
    ]
