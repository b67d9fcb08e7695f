"""The edit that replaces a loop over pieces of tensors by one call of ``torch.vmap``."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.calling import below
from warpline.rulekit.context import Context
from warpline.rulekit.graph.constants import RANDOM
from warpline.rulekit.graph.graph import Graph, Node, whole_graph
from warpline.rulekit.own_gradients import own_gradient
from warpline.rulekit.rounds import EFFECTS, Comprehension, Rounds, dim_of, does_more, entries, leaves_torch
from warpline.rulekit.terms import descend, function_at, names_in
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, Statement, appended, only_target, plain_lines

_BY_HAND = "call the function with the whole tensor, or use `torch.vmap`"
_NEITHER = "the results are neither collected in a list, nor added up, nor do they fill a tensor"
_NUMBERS = (
    "its iterations compute with single numbers: read those before the loop (`tolist()`), and compute with "
    "them instead of with tensors"
)


@dataclass(slots=True)
class _Round:
    """``given``: for each parameter of a round its tensor, the dimension of the pieces, and how many there
    were each time that the loop ran. ``replaced``: what parameters take the place of."""

    source: Source
    graph: Graph
    given: dict[str, tuple[str, int, list[int]]] = field(default_factory=dict)
    replaced: dict[cst.BaseExpression, str] = field(default_factory=dict)

    def code(self, node: cst.BaseExpression) -> str:
        """The text of an expression of a round."""
        inside = {part: new for part, new in self.replaced.items() if self.source.inside(part, node)}
        return inside.get(node) or self.source.rewritten(node, inside)

    def at(self, name: str, *nodes: cst.CSTNode) -> list[Node]:
        """The recorded operators of a name that these parts of the text called."""
        return called_from(self.source, self.graph, name, *nodes)


def called_from(source: Source, graph: Graph, name: str, *nodes: cst.CSTNode) -> list[Node]:
    """The recorded operators of a name that these parts of a file called."""
    found = []
    wanted = [source.span(node) for node in nodes]
    for one in graph.nodes:
        frame = next(graph.frames(one), None) if one.name == name else None
        if frame is None or frame.file != source.path or not frame.span:
            continue
        last, first_column, last_column = frame.span
        for (first, start), (end, stop) in wanted:  # a generator's brackets are counted, or not
            around = start - first_column in (0, 1) and last_column - stop in (0, 1)
            if around and (first, end) == (frame.line, last):
                found.append(one)
    return found


def at_once(context: Context, found: Rounds) -> Fix:
    """Call a round's work by ``torch.vmap``. Raises Refused where the record does not show that the rounds
    take all pieces of tensors, or they do more than compute a result that is stacked or joined."""
    source, loop = found.source, found.loop
    if found.whole:
        raise Refused(
            "create a tensor of all numbers (`torch.arange(n)[:, None]`) and compute all "
            "iterations at once, or combine rows by their number with `index_add_` or "
            "`scatter_reduce_`"
        )
    if isinstance(loop, cst.While):
        raise Refused("the condition of the `while` may end it early: work on the whole tensor by hand")
    if found.uneven:
        raise Refused(
            "combine rows by their piece's number with `index_add_` or `scatter_reduce_`, or pad the pieces"
        )
    graph = whole_graph(context.profile.facts.dataflow)
    if graph is None:
        raise Refused(_BY_HAND)
    _refuse_effects(context, found, graph)
    one, edits = _Round(source, graph), Edits(source)
    if isinstance(loop, cst.For):
        _statement(one, edits, loop)
    elif isinstance(loop, cst.Call):
        _pieces(one, [(f"piece_{at}", arg.value) for at, arg in enumerate(loop.args[1:])], loop)
        put_joined(source, edits, loop, _mapped(edits, one, source.code(loop.args[0].value)))
    elif isinstance(loop, cst.DictComp) or loop.for_in.ifs or loop.for_in.inner_for_in is not None:
        raise Refused(_BY_HAND)
    else:
        _take(one, loop.for_in.target, loop.for_in.iter, loop)
        _index(one, loop.for_in.target, loop.for_in.iter, loop.elt)
        put_joined(source, edits, loop, _mapped(edits, one, _function(one, loop.elt)))
    return edits.fix("Work on the whole tensor at once", "unsafe")


# -- what a round is given ----------------------------------------------------------------------


def _take(one: _Round, target: cst.BaseExpression, taken: cst.BaseExpression, *around: cst.CSTNode) -> None:
    """The pieces that the head of a loop takes."""
    if isinstance(taken, cst.Call) and isinstance(taken.func, cst.Name):
        name, given = taken.func.value, [arg.value for arg in taken.args if arg.keyword is None]
        targets = [item.value for item in target.elements] if isinstance(target, cst.Tuple) else []
        if name == "range":
            return
        if name == "enumerate" and len(targets) == 2 and len(taken.args) == 1:
            _take(one, targets[1], given[0], taken, *around)
            return
        if name == "zip" and len(targets) == len(given) == len(taken.args):
            _pieces(one, [(_name(each), of) for each, of in zip(targets, given, strict=True)], taken, *around)
            return
    _pieces(one, [(_name(target), taken)], *around)


def _pieces(one: _Round, pairs: list[tuple[str, cst.BaseExpression]], *around: cst.CSTNode) -> None:
    """``pairs``: a parameter and what its pieces are of: a tensor, or a call that takes it apart."""
    own = [_unbound(one.source, taken) for _, taken in pairs]
    # A call may take a tensor apart itself, as `list(x)` does.
    iterated = [taken for _, taken in pairs if not isinstance(taken, cst.Call)]
    together = one.at("unbind", *around, *iterated)
    shared = own.count(None)
    if shared and len(together) % shared:
        raise Refused(_BY_HAND)
    for at, ((name, taken), tensor) in enumerate(zip(pairs, own, strict=True)):
        if tensor is not None:
            _give(one, name, one.source.code(tensor), one.at("unbind", taken))
        else:  # `zip` takes one tensor after the other
            _give(one, name, one.source.code(taken), together[own[:at].count(None) :: shared])


def _unbound(source: Source, taken: cst.BaseExpression) -> cst.BaseExpression | None:
    """What ``x.unbind(…)`` takes apart; None for another expression."""
    if not isinstance(taken, cst.Call) or not isinstance(taken.func, cst.Attribute):
        return None
    own = taken.func.attr.value == "unbind" and source.name(taken.func) != "torch.unbind"
    return taken.func.value if own else None


def _index(one: _Round, target: cst.BaseExpression, taken: cst.BaseExpression, *body: cst.CSTNode) -> None:
    """The pieces that a round takes by its number: ``x[i]``, ``y[:, i]``."""
    if not isinstance(taken, cst.Call) or not one.source.is_named(taken.func, "range", "enumerate"):
        return
    number = _name(target.elements[0].value if isinstance(target, cst.Tuple) else target)
    own = {name for node in body for name in _bound(node)} | set(one.given) | {number}
    for part in body:
        for name in one.source.uses(number, part):
            piece = one.source.enclosing(name, cst.Subscript)
            inside = piece is not None and not one.source.inside(name, piece.value)
            if piece is None or not inside or own & names_in(piece.value):
                raise Refused("the number of an iteration is used for more than its slice")
            base = one.source.code(piece.value)
            parameter = f"{base.rpartition('.')[2]}_{number}"
            if not parameter.isidentifier() or parameter in names_in(one.source.module):
                raise Refused(_BY_HAND)
            if one.at("slice", piece):
                raise Refused("an iteration takes a part of its slice")
            nodes = one.at("select", piece)
            numbers: dict[int, list[int]] = {}
            for node in nodes:
                numbers.setdefault(node.inputs[0], []).append(node.arguments[2])
            first = {node.inputs[0]: node for node in reversed(nodes)}
            whole = all(
                sorted(numbers[at]) == [*range(entries(one.graph, node))] for at, node in first.items()
            )
            _give(one, parameter, base, [first[at] for at in numbers] if whole else [])
            one.replaced[piece] = parameter


def _give(one: _Round, name: str, tensor: str, nodes: list[Node]) -> None:
    """A parameter, if the record shows that its pieces are all of a tensor's along one dimension."""
    dims = {dim_of(one.graph, node) for node in nodes}
    given = (tensor, min(dims, default=0), [entries(one.graph, node) for node in nodes])
    others = [sizes for _, _, sizes in one.given.values()]
    if len(dims) != 1 or any(sizes != given[2] for sizes in others) or one.given.get(name, given) != given:
        raise Refused("the loop may not run over the whole of a dimension")
    one.given[name] = given


# -- what a round does --------------------------------------------------------------------------


def _refuse_effects(context: Context, found: Rounds, graph: Graph) -> None:
    """Raises Refused where a round, or a function that it calls, does more than compute."""
    lines = {cost.place: cost for cost in context.costs_of(found.source, found.loop)}
    called: dict[cst.FunctionDef, Source] = {}
    for cost in [*lines.values()]:
        for line in below(context, cost):
            file = context.source(line.file)
            function = function_at(file, line.line) if line.place not in lines else None
            lines[line.place] = line
            if function is not None:
                called[function] = file
    for function, file in called.items():
        if own_gradient(file, function) is not None or does_more(function):
            raise Refused(f"`{function.name.value}` does more than compute its result")
    ran = {node.name for node in graph.nodes if graph.place(node) in lines}
    if ran & RANDOM:
        raise Refused("its iterations draw random numbers")
    if context.autocast and "_to_copy" in ran:  # `vmap` leaves some calls without their casts
        raise Refused(
            "autocast changes the types of what an iteration computes: work on the whole tensor by hand"
        )
    if leaves_torch(found.loop) and _of_numbers(found, graph, lines):
        raise Refused(_NUMBERS)
    if any(descend(found.loop, *EFFECTS)) or leaves_torch(found.loop):
        raise Refused("an iteration does more than compute its result")


def _of_numbers(found: Rounds, graph: Graph, lines: Collection[tuple[str, int]]) -> bool:
    """Whether all that the rounds compute are tensors of one number, whose gradients nothing takes."""
    nodes = [node for node in graph.nodes if graph.place(node) in lines]
    sizes = {graph.size(value) for node in nodes for value in node.outputs}
    return sizes == {1} and not any(cost.backward_ms for cost in found.costs)


def _statement(one: _Round, edits: Edits, loop: cst.For) -> None:
    """The loop as a function, whose results ``torch.vmap`` gives the list's name."""
    source, small = one.source, plain_lines(loop.body)
    if small is None or loop.orelse is not None:
        raise Refused("iterations may differ")
    kept = small[-1]
    end = _end(one, kept)
    start = list_above(source, loop, end.pieces) if end.pieces else None
    _refuse_carried(source, loop, small, end)
    _take(one, loop.target, loop.iter, loop)
    _index(one, loop.target, loop.iter, *small[:-1], end.value if end.filled else kept)
    if not one.given:
        raise Refused(_BY_HAND)
    if len(small) == 1:
        edits.replace_statement(loop, end.text(_mapped(edits, one, _function(one, end.value))))
    else:
        name = f"each_{next(iter(one.given))}"
        if name in names_in(source.module):
            raise Refused(_BY_HAND)
        edits.replace_head(loop, f"def {name}({', '.join(one.given)})")
        for node, text in one.replaced.items():
            if not source.inside(node, kept):
                edits.replace(node, text)
        edits.replace(kept, f"return {one.code(end.value)}")
        edits.insert_after(loop, end.text(_mapped(edits, one, name)))
    if start is not None:
        edits.remove(start)
        put_stacked(source, edits, loop, end.pieces, 3)


@dataclass(frozen=True, slots=True)
class _End:
    """What the last statement of a round does with its ``value``: it goes into the list ``pieces``, or into
    the tensor ``filled``, at its own place along dimension ``dim``; else it is added to the name
    ``total``, by a statement that begins with ``head``."""

    value: cst.BaseExpression
    pieces: str = ""
    total: str = ""
    head: str = ""
    filled: str = ""
    dim: int = 0

    def text(self, values: str) -> str:
        """The statement that adds up, collects or stores all values at once."""
        if self.filled:
            return f"{self.filled}[:] = {values}" + (f".movedim(0, {self.dim})" if self.dim else "")
        return f"{self.pieces} = {values}" if self.pieces else f"{self.head} {values}.sum(0)"


def _end(one: _Round, kept: cst.BaseSmallStatement) -> _End:
    """Raises Refused for another statement, and where the record shows no sum of tensors."""
    source, added = one.source, appended(kept)
    if added is not None:
        return _End(added[1], pieces=source.code(added[0]))
    target = only_target(kept)
    if isinstance(kept, cst.Assign) and isinstance(target, cst.Subscript):
        return _End(kept.value, filled=source.code(target.value), dim=_filled(one, target))
    if isinstance(kept, cst.AugAssign) and isinstance(kept.operator, cst.AddAssign):
        total, nodes = source.code(kept.target), one.at("add", kept)
        found = _End(kept.value, total=total, head=f"{total} +=")
    elif isinstance(kept, cst.Assign) and isinstance(kept.value, cst.BinaryOperation):
        total, nodes = source.code(kept.value.left), one.at("add", kept.value)
        nodes = nodes if [source.code(one.target) for one in kept.targets] == [total] else []
        found = _End(kept.value.right, total=total, head=f"{total} = {total} +")
    else:
        raise Refused(_NEITHER)
    # The first is added to a number, where the sum begins with one.
    if not total.isidentifier() or 2 * sum(len(node.inputs) == 2 for node in nodes) <= len(nodes):
        raise Refused(_NEITHER)
    return found


def _filled(one: _Round, target: cst.Subscript) -> int:
    """The dimension along which the rounds fill all of a tensor: ``out[i] = …`` or ``out[:, i] = …``. Raises
    Refused where the record does not show that, or a value is spread over several entries."""
    source, name = one.source, target.value
    indices = [part.slice.value for part in target.slice if isinstance(part.slice, cst.Index)]
    taken, put = one.at("select", target), one.at("copy", target)
    dims = {(dim_of(one.graph, node), entries(one.graph, node)) for node in taken}
    alike = all(len({one.graph.shape(value) for value in node.inputs[:2]}) == 1 for node in put)
    named = isinstance(name, cst.Name) and all(isinstance(value, cst.Name) for value in indices)
    if not (named and alike and len(indices) == len(dims) == 1 and len(put) == len(taken)):
        raise Refused(_NEITHER)
    (dim, most) = dims.pop()
    loops = source.loops(target)
    if any(node.arguments[2] != at % most for at, node in enumerate(taken)) or len(taken) % most:
        raise Refused("the loop may not fill all of the tensor")
    if source.bindings(source.code(name), loops[0]):
        raise Refused("an iteration does more than compute its result")
    return dim


def is_recurrence(source: Source, loop: cst.CSTNode) -> bool:
    """Whether a round computes more than a linear function of what the one before gave. Sums, products,
    discounted sums and filters (``level = 0.9 * level + x[t]``) of all rounds can be computed at once."""
    small = plain_lines(loop.body) if isinstance(loop, (cst.For, cst.While)) else None
    bound = _bound(loop.body) if isinstance(loop, (cst.For, cst.While)) else set[str]()
    for line in small or ():
        for name in (one for one in descend(line, cst.Name) if one.value in bound and not source.binds(one)):
            around = (one for one in source.ancestors(name) if source.inside(one, line))
            kinds = {type(one.operator) for one in around if isinstance(one, cst.BinaryOperation)}
            if len({_LIKE.get(kind, kind) for kind in kinds}) > 1 and not _is_linear(source, name, bound):
                return True
        bound -= _bound(line)
    return False


#: What the same is true of.
_LIKE: dict[type, type] = {cst.Subtract: cst.Add, cst.Divide: cst.Multiply}


def _is_linear(source: Source, name: cst.Name, bound: Collection[str]) -> bool:
    """Whether a statement only adds to ``name``, and multiplies it by what reads no name of ``bound``."""
    node: cst.CSTNode = name
    while isinstance(above := source.parent(node), cst.BinaryOperation):
        first = node is above.left
        if isinstance(above.operator, (cst.Multiply, cst.Divide)):
            by = above.right if first else above.left
            if names_in(by) & set(bound) or not (first or isinstance(above.operator, cst.Multiply)):
                return False
        elif not isinstance(above.operator, (cst.Add, cst.Subtract)):
            return False
        node = above
    return isinstance(above, (cst.Assign, cst.AnnAssign, cst.AugAssign))


def _refuse_carried(source: Source, loop: cst.For, small: list[cst.BaseSmallStatement], end: _End) -> None:
    """Raises Refused where a round reads what the one before it gave, or something else what a round gave;
    but for the sum that it ends with."""
    known: set[str] = set()
    bound = _bound(loop.body) | ({end.filled} if end.filled else set())
    for line in small:
        if not isinstance(line, (cst.Assign, cst.AnnAssign)) and line is not small[-1]:
            raise Refused("an iteration does more than compute its result")
        if ((names_in(end.value) if line is small[-1] else _read(line)) & bound) - known:
            raise Refused("each iteration needs the result of the previous one")
        stored = any(isinstance(one, (cst.Attribute, cst.Subscript)) for one in _targets(line))
        if stored and not (end.filled and line is small[-1]):
            raise Refused("an iteration does more than compute its result")
        known |= _bound(line) - {end.total}
    for name in sorted((bound | names_in(loop.target)) - {end.total, end.filled}):
        if not all(source.inside(use, loop) for use in source.uses(name, source.scope(loop))):
            raise Refused(f"`{name}` is used outside the loop, too")


# -- the new text -------------------------------------------------------------------------------


def _function(one: _Round, value: cst.BaseExpression) -> str:
    """A function that gives ``value`` of a round's parameters."""
    if isinstance(value, cst.Call) and not one.replaced:
        plain = [arg.value.value for arg in value.args if isinstance(arg.value, cst.Name) and not arg.keyword]
        if plain == [*one.given] and len(plain) == len(value.args) and not names_in(value.func) & set(plain):
            return one.source.code(value.func)
    return f"lambda {', '.join(one.given)}: {one.code(value)}"


def _mapped(edits: Edits, one: _Round, function: str) -> str:
    dims = [dim for _, dim, _ in one.given.values()]
    options = [function]
    if any(dims):
        options.append(f"in_dims={dims[0] if len(dims) == 1 else tuple(dims)}")
    name = edits.add_import("torch.vmap", "import torch")
    return f"{name}({', '.join(options)})({', '.join(tensor for tensor, _, _ in one.given.values())})"


def put_joined(
    source: Source, edits: Edits, loop: Comprehension | cst.Call, text: str, laid: str = ""
) -> None:
    """Put ``text``, which gives one tensor of all results, where those are stacked, or get a name. ``laid``:
    what is called on a result with moved dimensions. Raises Refused."""
    node: cst.CSTNode = loop
    while True:
        around = source.enclosing(node, cst.Call, cst.Assign)
        if not isinstance(around, cst.Call) or source.code(around.func) not in ("list", "tuple"):
            break
        node = around
    if isinstance(around, cst.Assign) and around.value is node and len(around.targets) == 1:
        edits.replace(node, text)
        put_stacked(source, edits, loop, source.code(around.targets[0].target), 2, laid)
    elif isinstance(around, cst.Call) and around.args and around.args[0].value is node:
        edits.replace(around, _after(source, around, text, laid))
    else:
        raise Refused("the results are not stacked")


def list_above(source: Source, loop: cst.For, pieces: str) -> Statement:
    """The statement above a loop, in its block, that makes the empty list ``pieces``. Raises Refused."""
    block = source.block(loop)
    for line in block[: block.index(loop)]:
        if source.code(line).strip() == f"{pieces} = []":
            return line
    raise Refused("the list of results is not created directly above the loop")


def put_stacked(
    source: Source, edits: Edits, loop: cst.CSTNode, pieces: str, uses: int, laid: str = ""
) -> None:
    """Replace the stack of the list ``pieces``, which its function names so often beside its length, which
    the tensor has as well, by its name. Raises Refused."""
    scope = source.scope(loop)
    named = [
        each for each in source.nodes(cst.Name, cst.Attribute, within=scope) if source.code(each) == pieces
    ]
    given = [
        call
        for call in source.nodes(cst.Call, within=scope)
        if call.args and source.code(call.args[0].value) == pieces
    ]
    calls = [call for call in given if source.is_named(call.func, *_JOINING) or _adds_up(source, call)]
    after = source.extent(loop)[-1]
    lengths = [call for call in given if source.code(call.func) == "len" and source.line(call) > after]
    if len(named) != uses + len(lengths) or len(calls) != 1:
        raise Refused("the list of results is used elsewhere, too, or not stacked")
    edits.replace(calls[0], _after(source, calls[0], pieces, laid))


#: What makes one tensor of a list.
_JOINING = ("torch.stack", "torch.cat", "torch.concat", "torch.concatenate")


def _after(source: Source, call: cst.Call, text: str, laid: str) -> str:
    """What takes the place of ``call``, which joins the pieces that ``text`` gives as one tensor."""
    if _adds_up(source, call) and not laid:  # windows of integers would be added up in another type
        return f"{text}.sum(0)"
    if not source.is_named(call.func, *_JOINING):
        raise Refused("the results are not stacked")
    given = source.argument(call, "dim", 1)
    dim = source.literal(given.value) if given is not None else 0
    if len(call.args) > (1 if given is None else 2) or not isinstance(dim, int):
        raise Refused("the results are not stacked along a dimension that is a plain number")
    if source.is_named(call.func, "torch.stack"):
        return text if dim == 0 else f"{text}.movedim(0, {dim}){laid}"
    if dim != 0:
        raise Refused("the results are joined along another dimension than the first")
    return f"{text}.flatten(0, 1)"


def _adds_up(source: Source, call: cst.Call) -> bool:
    """Whether it is Python's ``sum`` of a list."""
    return source.name(call.func) == "sum" and len(call.args) == 1


# -- names --------------------------------------------------------------------------------------


def _name(target: cst.CSTNode) -> str:
    if not isinstance(target, cst.Name):
        raise Refused(_BY_HAND)
    return target.value


def _targets(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What assignments in ``node`` give a value, each part of what they unpack to."""
    waiting = [item.target for item in descend(node, cst.AssignTarget, cst.AugAssign, cst.AnnAssign)]
    for target in waiting:
        if isinstance(target, (cst.Tuple, cst.List)):
            waiting += [one.value for one in target.elements]
        else:
            yield target


def _bound(node: cst.CSTNode) -> set[str]:
    return {one.value for one in _targets(node) if isinstance(one, cst.Name)}


def _read(line: cst.CSTNode) -> set[str]:
    """Names that a statement reads, also those that it changes."""
    values = [item.value for item in descend(line, cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Expr)]
    added = [item.target for item in descend(line, cst.AugAssign)]
    return {name for value in (*values, *added) if value is not None for name in names_in(value)}
