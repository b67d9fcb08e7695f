"""Loops that call a recurrent cell of torch's for each time of a sequence that is there as a whole, and the
edit that makes them one call of the layer with the same weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.rounds import LEAST_ROUNDS
from warpline.rulekit.terms import descend, names_in
from warpline.rulekit.vectorised import list_above
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, alone, appended, called_name, is_method, only_target, plain_lines
from warpline.wire.sites import Module, facts_of

BY_HAND = (
    "make an `nn.{}` instead of the cell, and call it once with the sequence. Its weights have other names "
    "in saved states (`weight_ih_l0`)"
)
#: The cell's weights; a layer has them with `_l0` behind.
_PARAMETERS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
_TRANSFORMS = ("vmap", "jvp", "jacfwd", "jacrev", "hessian", "functional_call")
#: The dimension of a stack of matrices, as it may be written.
_DIMS = {0: 0, 1: 1, -3: 0, -2: 1}
#: The layer that works on a whole sequence with the same weights, by the cell's operator.
LAYERS = {
    "aten::lstm_cell": "LSTM",
    "aten::gru_cell": "GRU",
    "aten::rnn_tanh_cell": "RNN",
}


@dataclass(frozen=True, slots=True)
class _Written:
    """``states`` become those of the next of a sequence's times, which are along ``dim``."""

    call: cst.Call
    states: list[str]
    sequence: cst.BaseExpression
    dim: int
    kept: str = ""  # the list of the states


def layer_at_once(context: Context, found: Cells) -> Fix:
    """Call the layer with the whole sequence, and make it where the cell was made. Raises Refused where a
    round does more, or something else uses the cell."""
    source, by_hand = found.source, BY_HAND.format(found.layer)
    evaluates = any(facts_of(Module, site).training is False for site in context.sites(Module.KIND))
    if context.on_gpu and found.cost.backward_ms and evaluates:
        raise Refused(f"cuDNN has no backward pass of a layer in evaluation mode: {by_hand}")
    written = _written(source, found.loop, by_hand)
    made = _made(context, source, written.call, found.layer, by_hand)
    edits = Edits(source)
    _make(edits, made, found.layer, written.dim)
    function = source.enclosing(found.loop, cst.FunctionDef)
    if function is None or any(source.code(one) == "None" for name in written.states
                               for one in source.assigned(name, within=function)):  # fmt: skip
        raise Refused(by_hand)
    if len(written.states) != (2 if found.layer == "LSTM" else 1):
        raise Refused(by_hand)
    before = [f"{name}[None]" for name in written.states]
    given, got = before[0], written.states[0]
    if found.layer == "LSTM":
        given, got = f"({', '.join(before)})", f"({', '.join(written.states)})"
    kept = written.kept or "_"
    called = f"{source.code(written.call.func)}({source.code(written.sequence)}, {given})"
    lines = [f"{kept}, {got} = {called}"]
    read = [name for name in written.states if _is_read(source, function, found.loop, name)]
    lines += [f"{name} = {name}[0]" for name in read]
    if written.kept:
        _unstack(source, edits, function, found.loop, written)
    edits.replace_statement(found.loop, "\n".join(lines))
    return edits.fix(f"Call nn.{found.layer} once", "unsafe")


def _written(source: Source, loop: cst.For, by_hand: str) -> _Written:
    small = plain_lines(loop.body)
    if small is None or loop.orelse is not None or not isinstance(loop.target, cst.Name):
        raise Refused(by_hand)
    calls = [
        one
        for one in small
        if isinstance(one, cst.Assign) and isinstance(one.value, cst.Call) and len(one.value.args) == 2
    ]
    if len(calls) != 1:
        raise Refused(by_hand)
    step, call = calls[0], calls[0].value
    assert isinstance(call, cst.Call)
    at = small.index(step)
    states = _names(step.targets[0].target)
    if any(arg.keyword is not None or arg.star for arg in call.args) or not only_target(step) or not states:
        raise Refused(by_hand)
    if states != _names(call.args[1].value):
        raise Refused("each time gets another state than the one before gave")
    piece = call.args[0].value
    for one in small[:at]:
        own, name = only_target(one), source.code(piece)
        if at != 1 or own is None or source.code(own) != name or len(source.uses(name, loop.body)) != 2:
            raise Refused(by_hand)
        piece = cst.ensure_type(one, cst.Assign).value
    sequence, dim = _sequence(source, loop, piece, by_hand)
    if set(states) & names_in(sequence):
        raise Refused(by_hand)
    return _Written(call, states, sequence, dim, _kept(source, small[at + 1 :], states[0], by_hand))


def _names(node: cst.BaseExpression) -> list[str]:
    """The names of a tuple, or the only one."""
    parts = [one.value for one in node.elements] if isinstance(node, cst.Tuple) else [node]
    return [one.value for one in parts if isinstance(one, cst.Name)] if len(parts) < 3 else []


def _kept(source: Source, rest: list[cst.BaseSmallStatement], state: str, by_hand: str) -> str:
    """The list that gets the state; "" where nothing does."""
    if not rest:
        return ""
    kept, value = (appended(rest[0]) if len(rest) == 1 else None) or (None, None)
    if not isinstance(kept, cst.Name) or value is None or source.code(value) != state:
        raise Refused(by_hand)
    return kept.value


def _sequence(
    source: Source, loop: cst.For, piece: cst.BaseExpression, by_hand: str
) -> tuple[cst.BaseExpression, int]:
    """The tensor whose pieces along a dimension the rounds get, all of them in turn."""
    over, number = loop.iter, source.code(loop.target)
    if is_method(over, "unbind") and source.code(piece) == number:
        assert isinstance(over, cst.Call)
        assert isinstance(over.func, cst.Attribute)
        given = source.argument(over, "dim", 0)
        dim = source.literal(given.value) if given is not None else 0
        if source.name(over.func) != "torch.unbind" and dim in (0, 1):
            return over.func.value, dim
    elif (
        isinstance(piece, cst.Subscript) and isinstance(over, cst.Call) and source.name(over.func) == "range"
    ):
        tensor, keys = source.code(piece.value), ", ".join(source.code(one.slice) for one in piece.slice)
        dims = {number: 0, f":, {number}": 1}
        dim = dims.get(keys)
        ends = (f"{tensor}.shape[{dim}]", f"{tensor}.size({dim})", *([f"len({tensor})"] if dim == 0 else []))
        if dim is not None and len(over.args) == 1 and source.code(over.args[0].value) in ends:
            return piece.value, dim
    raise Refused(by_hand)


def _made(context: Context, source: Source, call: cst.Call, layer: str, by_hand: str) -> cst.Call:
    """The call that makes the cell, which nothing else uses."""
    cell, owner = source.code(call.func), source.enclosing(call, cst.ClassDef)
    made = [one for one in source.assigned(cell, within=owner) if isinstance(one, cst.Call)]
    if owner is None or not cell.startswith("self.") or len(made) != 1:
        raise Refused(by_hand)
    if called_name(made[0]) != f"{layer}Cell" or len([one for one in made[0].args if not one.keyword]) > 2:
        raise Refused(by_hand)
    named = [one.value for other in context.sources() for one in other.nodes(cst.Name)]
    if named.count(cell.removeprefix("self.")) != 2 or named.count(f"{layer}Cell") != 1:
        raise Refused(f"something else uses the cell: {by_hand}")
    texts = [one.value for other in context.sources() for one in other.nodes(cst.SimpleString)]
    if any(name in text for text in texts for name in _PARAMETERS):
        raise Refused(f"its weights are looked up by their names: {by_hand}")
    if next(context.calls("torch.load", "load_file", "from_pretrained"), None) is not None:
        raise Refused(f"saved states are loaded: {by_hand}")
    if next(context.calls(*_TRANSFORMS), None) is not None or any(
        arg.keyword is not None and arg.keyword.value == "create_graph"
        for _, one in context.calls()
        for arg in one.args
    ):
        raise Refused(f"the layer has no gradient of its gradient, and no `vmap`: {by_hand}")
    return made[0]


def _make(edits: Edits, made: cst.Call, layer: str, dim: int) -> None:
    if not isinstance(made.func, cst.Attribute):
        raise Refused(BY_HAND.format(layer))
    edits.replace(made.func.attr, layer)
    if dim == 1:
        edits.set_argument(made, "batch_first", "True")


def _is_read(source: Source, function: cst.FunctionDef, loop: cst.For, name: str) -> bool:
    """Whether a state may be read behind the loop, or when an outer one begins again."""
    again = len(source.loops_from(loop)) > 1
    return any(
        not source.inside(one, loop) and (again or source.line(one) > source.line(loop))
        for one in source.reads(name, function)
    )


def _unstack(
    source: Source, edits: Edits, function: cst.FunctionDef, loop: cst.For, written: _Written
) -> None:
    """The layer's result in place of the stack of the states, and no list for them."""
    kept = written.kept
    start, uses = list_above(source, loop, kept), source.uses(kept, function)
    stacks = [
        call
        for call in source.nodes(cst.Call, within=function)
        if source.name(call.func) == "torch.stack" and call.args and source.code(call.args[0].value) == kept
    ]
    if len(uses) != 3 or len(stacks) != 1:
        raise Refused("the states are used otherwise than stacked")
    given = source.argument(stacks[0], "dim", 1)
    dim = _DIMS.get(source.literal(given.value) if given is not None else 0)
    if dim is None or len(stacks[0].args) > 2:
        raise Refused("the states are used otherwise than stacked")
    edits.remove(start)
    edits.replace(stacks[0], kept if dim == written.dim else f"{kept}.transpose(0, 1)")


@dataclass(frozen=True, slots=True)
class Cells:
    """``count`` calls a step of the ``layer``'s cell at one line of ``loop``."""

    source: Source
    loop: cst.For
    cost: LineCost
    layer: str
    count: float


def cell_lines(context: Context) -> Iterator[tuple[LineCost, str, float]]:
    """Lines that call a cell often, with its layer and the number of calls."""
    for cost in context.profile.lines:
        calls = [op for op in cost.ops if op.name in LAYERS and op.phase == "forward"]
        count = sum(op.count for op in calls)
        if count >= LEAST_ROUNDS and len({op.name for op in calls}) == 1:
            yield cost, LAYERS[calls[0].name], count


def cells(context: Context) -> Iterator[Cells]:
    """Loops in which a cell's input needs no earlier state, and nothing else changes its state."""
    for cost, layer, count in cell_lines(context):
        source = context.source(cost.file)
        statement, loop = source.statement_at(cost.line), next(iter(source.loops_at(cost.line)), None)
        if not isinstance(statement, cst.SimpleStatementLine) or not isinstance(loop, cst.For):
            continue
        if _fed_from_outside(loop, statement):
            yield Cells(source, loop, cost, layer, count)


def _fed_from_outside(loop: cst.For, statement: cst.SimpleStatementLine) -> bool:
    """Whether ``statement`` assigns the cell's state, no other one does, and the first argument of its call
    is made of nothing that a round computes from the state."""
    assign = alone(statement)
    if not isinstance(assign, cst.Assign) or not isinstance(assign.value, cst.Call) or not assign.value.args:
        return False
    made = _made_of(loop, assign)
    return made is not None and not _used(assign.value.args[0].value) & made


def _made_of(loop: cst.For, assign: cst.Assign) -> set[str] | None:
    """Names that a round gives what ``assign`` assigns, or what it makes of that. None where another
    statement assigns the same names."""
    made = {name for target in assign.targets for name in _used(target.target)}
    others = [(one, node) for node in descend(loop.body, cst.Assign, cst.AugAssign, cst.For)
              if node is not assign for one in _targets(node)]  # fmt: skip
    if any(made & _used(target) for target, _ in others):
        return None
    for _ in others:  # what follows from what: as often as there are assignments is enough
        for target, node in others:
            made |= _used(target) if _used(getattr(node, "value", node)) & made else set()
    return made


def _targets(node: cst.Assign | cst.AugAssign | cst.For) -> list[cst.CSTNode]:
    return [one.target for one in node.targets] if isinstance(node, cst.Assign) else [node.target]


def _used(node: cst.CSTNode) -> set[str]:
    return names_in(node) - {"torch"}
