"""Loops that work on one piece of a tensor per iteration: statements, comprehensions and ``map``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.calling import below, callers, function_of, is_forward
from warpline.rulekit.context import Context
from warpline.rulekit.graph.graph import PIECE, PIECES, Graph, Node, whole_graph
from warpline.rulekit.graph.repeated import repeated
from warpline.rulekit.terms import descend, function_at, names_in
from warpline.rulekit.windows import windows
from warpline.syntax.source import Source, is_method
from warpline.wire.dataflow import MOST_IN_LIST

Comprehension = cst.ListComp | cst.GeneratorExp | cst.SetComp | cst.DictComp
Statement = cst.For | cst.While
Loop = Statement | Comprehension | cst.Call  # a call of ``map``
Often = dict[tuple[str, int], dict[str, int]]  # by line: calls of each operator

#: Loops with fewer rounds are not reported.
LEAST_ROUNDS = 8
#: What has fewer rounds each time that it begins, as over the only layer of a cell, is no loop.
_SEVERAL = 2
#: Operators that take a piece out of a tensor; those of the second line give all pieces at once.
_PIECE = {f"aten::{name}" for name in PIECE | {"index", "index_select"}}
_ONE = {"aten::select", "aten::unbind"}
_LOOK_UPS = {"aten::index", "aten::index_select"}
_PIECES = {f"aten::{name}" for name in PIECES}
#: What makes a tensor of a NumPy array.
_FROM_ARRAY = "aten::lift_fresh"
_UNEVEN = "aten::split_with_sizes"
#: What the gradient of a piece is made of: zeros for the whole tensor, the piece's own gradient copied into
#: them, and the sum over the pieces.
_WHOLE_GRADIENT = {"aten::fill_", "aten::zero_", "aten::copy_", "aten::add_", "aten::add"}

#: What a function may not do that works on all pieces at once: it would be done once, or with no tensor.
EFFECTS = (
    cst.Global, cst.Nonlocal, cst.Yield, cst.Await, cst.Del, cst.NamedExpr, cst.Import, cst.ImportFrom,
    cst.Try,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rounds:
    """``count`` rounds a step, seen by their operators, in a loop that begins ``begun`` times; ``costs``: its
    lines."""

    source: Source
    loop: Loop
    costs: list[LineCost]
    count: float
    whole: bool = False  # each round works on the whole of the same tensors, and not on a piece
    uneven: bool = False  # pieces were cut to given sizes
    begun: float = 1.0

    @property
    def each(self) -> float:
        """Rounds each time that it begins: so many are one at most."""
        return max(1.0, self.count / self.begun)


def rounds(context: Context) -> Iterator[Rounds]:
    """The loops of the step that take one piece of a tensor after the other, or the same tensors each time.

    The record says so: a loop's line takes pieces, or its head takes a tensor apart, and the operators of
    its lines ran as often; or an operator of it got the same tensors with another number each time. What is
    looked up in the source is which loop that is, and that it is not a training loop and no recurrence.
    """
    recorded = _recorded(context)
    ran: dict[tuple[str, str], float] = {}  # by function: how often its lines ran
    for line in context.profile.lines:
        ran[function_of(line)] = max(ran.get(function_of(line), 0.0), line.calls)
    known: dict[int, Rounds | None] = {}
    seen: set[int] = set()
    for cost in context.profile.lines:
        most = max(_often(cost, recorded).values(), default=0.0)
        taken = _taken(context, cost.place)
        if max([most, taken, *(ran.get(one, 0.0) for one in cost.called)]) < LEAST_ROUNDS:
            continue
        source = context.source(cost.file)
        loop = _around(source, cost.line)
        if loop is None or id(loop) in seen:
            continue
        seen.add(id(loop))
        if id(loop) not in known:
            _rounds_of(context, source, loop, taken, recorded, known)
        if (found := known[id(loop)]) is not None:
            yield found


def _rounds_of(
    context: Context,
    source: Source,
    loop: Loop,
    taken: float,
    recorded: Often,
    known: dict[int, Rounds | None],
) -> None:
    """Adds what ``rounds`` says of one loop to ``known``, and of those inside it. ``taken``: pieces that are
    read of what its head takes apart."""
    known[id(loop)] = None
    within = context.costs_of(source, loop)
    costs = [one for one in within if _around(source, one.line) is loop]
    turned = _turned(source, loop, costs)
    # A loop inside that takes no pieces itself, as one over layers, is part of the round.
    inner = []
    for one in within:
        between = _between(source, one.line, loop) if one not in costs else []
        for other in between:
            if id(other) not in known:
                _rounds_of(context, source, other, _taken(context, one.place), recorded, known)
        if between and not any(known[id(other)] for other in between):
            inner.append(one)
    given = [one for one in [*costs, *inner] if _hands_over(source, loop, one.line)]
    called = dict.fromkeys(line for one in given for line in _called(context, one))
    if _takes_one_each(costs, recorded) and _keeps_names_only(loop):
        called |= dict.fromkeys(line for one in given for line in _modules(context, one))
    costs += [line for line in called if line not in costs]
    taken = 0.0 if isinstance(loop, Statement) else taken
    count, whole = _apart(source, loop, costs) or _indexed(source, loop, costs, recorded), False
    count = taken if taken >= LEAST_ROUNDS else count
    if count < LEAST_ROUNDS and windows(source, loop):
        count = max(recorded.get(one.place, {}).get(_FROM_ARRAY, 0) for one in costs)
    if count < LEAST_ROUNDS:
        count, whole = _again(context, costs)
    if count < LEAST_ROUNDS or _trains(source, loop) or _recurrent(loop):
        return
    count = min(count, turned) if turned >= LEAST_ROUNDS else count
    uneven = any(_UNEVEN in _often(one, recorded) for one in costs)
    costs += [line for line in inner if line not in costs]
    found = Rounds(source, loop, costs, count, whole, uneven, begun(context, source, loop, turned))
    known[id(loop)] = found if found.each >= _SEVERAL else None


def _between(source: Source, line: int, outer: Loop) -> list[Loop]:
    """The loops around a line of ``outer`` that are inside it."""
    innermost = _around(source, line)
    loops = [innermost] if innermost is not None else []
    loops += [one for one in source.loops_at(line) if one is not innermost]
    return [one for one in loops if one is not outer and source.inside(one, outer)]


def begun(context: Context, source: Source, loop: Loop, turned: float) -> float:
    """How often a step begins a loop with ``turned`` rounds: its head runs once more each time. Once where
    that is not known, as of a loop that breaks off."""
    head = context.cost(source.path, source.line(loop)) if isinstance(loop, Statement) else None
    return max(1.0, head.calls - turned) if head is not None and turned else 1.0


def _turned(source: Source, loop: Loop, costs: list[LineCost]) -> float:
    """How often the lines of a loop's body ran. It may end before the pieces do, or take them along with
    fewer of something else. Not known of a comprehension, nor where turns without operators were not
    recorded."""
    head = source.line(loop)
    own = (one.calls for one in costs if one.line != head)
    return max(own, default=0.0) if isinstance(loop, Statement) else 0.0


def _called(context: Context, cost: LineCost) -> list[LineCost]:
    """Lines of the functions that a line calls, a helper's for each piece; none of modules, which are no
    rounds of a loop."""
    own = [one for one in cost.called if not is_forward(one)]
    return [line for line in context.profile.lines if own and function_of(line) in own]


def leaves_torch(node: cst.CSTNode) -> bool:
    """Whether something in ``node`` leaves torch."""
    return any(is_method(call, "numpy", "item", "tolist") for call in descend(node, cst.Call))


def _takes_one_each(costs: list[LineCost], recorded: Often) -> bool:
    """Whether each round of these lines takes one entry of a dimension, and no batch of them."""
    return any(_ONE & _often(one, recorded).keys() for one in costs)


def _keeps_names_only(loop: Loop) -> bool:
    """Whether a loop stores nothing but in names of its function, where a module would read it again."""
    targets = (item.target for item in descend(_body(loop), cst.AssignTarget, cst.AugAssign, cst.AnnAssign))
    return all(isinstance(target, cst.Name) for target in targets)


def _modules(context: Context, cost: LineCost) -> list[LineCost]:
    """Lines of the ``forward`` methods that this line calls and no other does, with those below them; none
    where one of those does more than compute, as with a state of its own."""
    found: dict[LineCost, None] = {}
    for function in filter(is_forward, cost.called):
        own = [line for line in context.profile.lines if function_of(line) == function]
        lines = dict.fromkeys(one for line in own for one in below(context, line))
        known = {cost, *lines}
        inside = {function_of(line) for line in lines} | {one for line in lines for one in line.called}
        bodies = {function_at(context.source(line.file), line.line) for line in lines}
        alone = all(caller in known for one in inside for caller in callers(context, one))
        if alone and not any(body is None or does_more(body) for body in bodies):
            found |= lines
    return [*found]


def does_more(function: cst.FunctionDef) -> bool:
    """Whether a function does more than compute its result."""
    stores = [item.target for item in descend(function.body, cst.AssignTarget, cst.AugAssign, cst.AnnAssign)]
    drops = [item.value for item in descend(function.body, cst.Expr)]
    return (
        any(descend(function, *EFFECTS))
        or leaves_torch(function)
        or any(isinstance(target, (cst.Attribute, cst.Subscript)) for target in stores)
        or not all(isinstance(value, (cst.SimpleString, cst.ConcatenatedString)) for value in drops)
    )


def _hands_over(source: Source, loop: Loop, line: int) -> bool:
    """Whether a call on the line is given something of this round."""
    names = names_in(_target(loop))
    return any(
        name.value in names
        for call in source.calls(line)
        if source.inside(call, loop)
        for arg in call.args
        for name in source.nodes(cst.Name, within=arg)
    )


def _again(context: Context, costs: list[LineCost]) -> tuple[int, bool]:
    """Rounds by the recorded step, and whether each works on the whole of the same tensors."""
    graph = whole_graph(context.profile.facts.dataflow)
    return repeated(graph, {cost.place for cost in costs}, LEAST_ROUNDS) if graph is not None else (0, False)


def piecework_ms(cost: LineCost, small_op_ns: float = 0.0) -> float:
    """Device time of what one call for all pieces does without: of taking pieces and of their gradients, each
    as large as the whole tensor (it is filled with zeros, and added to the others); and ``small_op_ns`` of
    each other operator, what one takes on a CPU before it has computed anything."""
    spent = sum(
        op.device_ms
        if op.name in _PIECE | _PIECES or (op.phase == "backward" and op.name in _WHOLE_GRADIENT)
        else min(op.device_ms, op.count * small_op_ns / 1e6)
        for op in cost.ops
    )
    return min(spent, cost.device_ms)


def _often(cost: LineCost, recorded: Often | None = None) -> dict[str, float]:
    """How often a line called each operator; ``recorded``: in the surveyed step, which keeps those that took
    no time. Pieces of different sizes count together, several in one round once."""
    found: dict[str, float] = {}
    most: dict[str, float] = {}
    # The piece that a look-up in a table takes inside is none of the loop's.
    for op in (op for op in cost.ops if op.outer or op.name not in _LOOK_UPS):
        found[op.name] = found.get(op.name, 0.0) + (op.count if op.phase == "forward" else 0.0)
        most[op.name] = max(most.get(op.name, 0.0), op.count)
    for name, often in (recorded or {}).get(cost.place, {}).items():
        found[name] = max(found.get(name, 0.0), float(often))
    return {
        name: max(most.get(name, 0.0), min(often, cost.calls) if cost.calls else 0.0)
        for name, often in found.items()
    }


def _recorded(context: Context) -> Often:
    found: Often = {}
    graph = whole_graph(context.profile.facts.dataflow)
    for node in graph.nodes if graph is not None else ():
        if graph is not None and (place := graph.place(node)) is not None:
            names = found.setdefault(place, {})
            names[f"aten::{node.name}"] = names.get(f"aten::{node.name}", 0) + 1
    return found


def _taken(context: Context, place: tuple[str, int]) -> float:
    """Pieces that the recorded step read of what was taken apart at this line. Of a line with pieces of many
    sizes few operators are kept, and what takes them is none of those."""
    graph = whole_graph(context.profile.facts.dataflow)
    nodes = graph.at(place) if graph is not None else ()
    read, often = Counter[int](), Counter[tuple[int, str]]()
    for node in nodes:
        often[node.site, node.name] += 1
        if graph is not None and f"aten::{node.name}" in _PIECES and len(node.outputs) >= LEAST_ROUNDS:
            used = sum(value in graph.consumers for value in node.outputs)
            # So many pieces have numbers.
            one_each = used == MOST_IN_LIST and node.name == "unbind"
            read[node.site] += entries(graph, node) if one_each else used
    found = max(read.values(), default=0)
    # An instruction of a round runs once for each of the pieces, or more.
    more = (one for one in often.values() if one > found)
    return float(min(more, default=found) if found == MOST_IN_LIST else found)


def nodes_at(graph: Graph, source: Source, node: cst.CSTNode) -> list[Node]:
    """The recorded operators of the lines of a node."""
    return [one for line in source.extent(node) for one in graph.at((source.path, line))]


def dim_of(graph: Graph, node: Node) -> int:
    """The dimension along which a ``select`` or an ``unbind`` takes entries."""
    return graph.along(node) or 0


def entries(graph: Graph, node: Node) -> int:
    """How many entries that dimension has."""
    return graph.shape(node.inputs[0])[dim_of(graph, node)]


def _around(source: Source, line: int) -> Loop | None:
    """The innermost loop around, or at, a line of its function."""
    kinds: tuple[type[Comprehension], ...] = (cst.ListComp, cst.GeneratorExp, cst.SetComp, cst.DictComp)
    inner: list[Comprehension | cst.Call] = [node for kind in kinds for node in source.at(line, kind)]
    inner += [call for call in source.at(line, cst.Call) if source.name(call.func) == "map" and call.args]
    if inner:
        return min(inner, key=lambda node: len(source.extent(node)))
    return next(iter(source.loops_at(line)), None)


def _apart(source: Source, loop: Loop, costs: list[LineCost]) -> float:
    """Rounds of a loop over the pieces that its head takes a tensor apart into."""
    head = source.line(loop)
    ran = max(
        (often for cost in costs for name, often in _often(cost).items() if name not in _PIECES), default=0.0
    )
    for cost in costs:
        if isinstance(loop, Statement) and cost.line != head:
            continue
        for op in cost.ops:
            if op.name == "aten::unbind" and op.shapes and op.shapes[0]:
                pieces = op.shapes[0][0] * op.count
                if op.shapes[0][0] >= LEAST_ROUNDS and pieces <= 2 * ran:
                    return pieces
            # Each layer has heads, or queries, keys and values: few pieces, again and again.
            elif op.name in _PIECES and ran >= LEAST_ROUNDS * max(1.0, op.count):
                return ran
    return 0.0


def _indexed(source: Source, loop: Loop, costs: list[LineCost], recorded: Often) -> float:
    """Rounds of a loop that indexes by its own variable."""
    names = names_in(_target(loop))
    lines = {
        source.line(node)
        for node in descend(_body(loop), cst.Subscript)
        if any(names_in(part) & names for part in node.slice)
    }
    return max(
        (
            often
            for cost in costs
            for name, often in _often(cost, recorded).items()
            if name in _PIECE and (cost.line in lines or not isinstance(loop, Statement))
        ),
        default=0.0,
    ) if lines else 0.0  # fmt: skip


def _target(loop: Loop) -> cst.CSTNode:
    """What a round gets its piece as, or by: of ``map`` all of the function that gets it, of ``while`` its
    condition."""
    if isinstance(loop, cst.Call):
        return loop.args[0].value
    if isinstance(loop, cst.While):
        return loop.test
    return loop.target if isinstance(loop, cst.For) else loop.for_in.target


def _body(loop: Loop) -> cst.CSTNode:
    return loop.body if isinstance(loop, Statement) else loop


def _trains(source: Source, loop: Loop) -> bool:
    """Whether a round is a pass of training, as in gradient accumulation."""
    return any(source.is_named(call.func, "backward") for call in descend(_body(loop), cst.Call))


def _recurrent(loop: Loop) -> bool:
    """Whether a round hands what the one before gave, or changed, to a call (``h = cell(x[i], h)``): no whole
    tensor can take the place of such rounds. Its number (``out[i] = f(x[i])``) is nothing that it gave."""
    own = {"self", *names_in(_target(loop))}
    within = own | _set_first(loop)
    for node in descend(_body(loop), cst.Assign, cst.AugAssign, cst.Call):
        changed: list[cst.CSTNode] = []
        calls: list[cst.Call] = [node] if isinstance(node, cst.Call) else [*descend(node.value, cst.Call)]
        if isinstance(node, cst.Assign):
            changed = [one.target for one in node.targets]
        elif isinstance(node, cst.AugAssign):
            changed = [node.target]
        elif isinstance(node.func, cst.Attribute) and node.func.attr.value.endswith("_"):
            changed = [node.func.value]
        targets = {name for one in changed for name in names_in(_changed(one))} - within
        if targets & {name for call in calls for arg in call.args for name in names_in(arg)}:
            return True
    return _handed_back(loop, own)


def _set_first(loop: Loop) -> set[str]:
    """Names that each round sets before it reads them: what it does to them is done within the round."""
    found: set[str] = set()
    read: set[str] = set()
    for line in loop.body.body if isinstance(loop, Statement) else ():
        for part in line.body if isinstance(line, cst.SimpleStatementLine) else [line]:
            if isinstance(part, cst.Assign):
                read |= names_in(part.value)
                targets = {one.target.value for one in part.targets if isinstance(one.target, cst.Name)}
                found |= targets - read
            read |= names_in(part)
    return found


def _handed_back(loop: Loop, own: set[str]) -> bool:
    """Whether a round makes something of what a call gave that the next round hands to this call
    (``h = cell(x, hs[i])``, then ``x = drop(h)``)."""
    assigns = [*descend(_body(loop), cst.Assign)]
    targets = [{name for target in one.targets for name in names_in(_changed(target.target))} - own
               for one in assigns]  # fmt: skip
    for at, one in enumerate(assigns):
        calls = descend(one.value, cst.Call)
        given = {name for call in calls for arg in call.args for name in names_in(arg)}
        made = set(targets[at])
        for later, gets in zip(assigns[at + 1 :], targets[at + 1 :], strict=True):
            made |= gets if names_in(later.value) & made else set()
        if made & given.difference(*targets[:at]):
            return True
    return False


def _changed(target: cst.CSTNode) -> cst.CSTNode:
    """The name that ``name[i, j] = …`` changes, without its indices."""
    return _changed(target.value) if isinstance(target, cst.Subscript) else target


def is_read_outside(source: Source, name: str, loop: cst.For) -> bool:
    """Whether the value that a loop leaves ``name`` with may be read."""
    reads = source.reads(name, source.scope(loop))
    return any(not source.inside(one, loop) and not _has_own(source, one) for one in reads)


def _has_own(source: Source, name: cst.Name) -> bool:
    """Whether a loop, a comprehension or a function around a name gives it a value of its own."""
    for outer in source.ancestors(name):
        heads = [outer.target] if isinstance(outer, (cst.For, cst.CompFor)) else []
        inner: cst.CompFor | None = getattr(outer, "for_in", None)
        while inner is not None:
            heads.append(inner.target)
            inner = inner.inner_for_in
        given = [*heads, outer.params] if isinstance(outer, (cst.Lambda, cst.FunctionDef)) else heads
        if any(name.value in names_in(one) for one in given):
            return True
    return False
