"""Lines that keep tensors of a step: appended to a list, added to a sum, put into a dict."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.calling import below, function_of
from warpline.rulekit.compiled_reach import lines_in
from warpline.rulekit.context import Context
from warpline.rulekit.graph import whole_graph
from warpline.rulekit.graph.storages import VIEWS, storages
from warpline.rulekit.origins import assignments, parameters
from warpline.syntax.source import NOT_LITERAL, Source, called_name, is_method, only_target, receiver

_KEEPS = ("append", "appendleft", "add", "insert", "extend", "setdefault", "put", "push")
_CONTAINERS = ("list", "dict", "deque", "defaultdict", "OrderedDict", "set")
_EMPTIES = ("clear", "pop", "popleft", "popitem")
#: What is read off a tensor, or parted from its graph, keeps nothing of it.
_PARTED = ("detach", "item", "float", "int", "tolist", "numpy", "str", "len", "cpu", "backward", "step")
#: Those that give no graph whatever is computed with them.
_READ = ("detach", "item", "tolist", "numpy")
_COPIES = ("clone", "copy")
_BACKWARD = ("backward", "manual_backward")
#: A view of at most a half of a tensor is a part of it.
_TIMES = 2
#: Calls a step from which on a line runs in each.
_EACH = 0.5
_DEPTH = 3  # functions that a value is passed through
#: A name, and the code that has it.
_Bound = tuple[str, "cst.CSTNode | None"]


def endless_caches(context: Context, made: LineCost) -> list[tuple[Source, cst.Decorator]]:
    """``lru_cache`` without a largest size, around a function whose body each step runs, for something new,
    and which leads to the line ``made``: it keeps all results."""
    found = []
    for source in context.sources():
        for function in source.nodes(cst.FunctionDef):
            endless = [one for one in function.decorators if _is_endless(source, one.decorator)]
            own = lines_in(context, source, function) if endless else ()
            inside = {one.place for cost in own if cost.calls >= _EACH for one in below(context, cost)}
            found += [(source, one) for one in endless if made.place in inside]
    return found


def _is_endless(source: Source, decorator: cst.BaseExpression) -> bool:
    if not isinstance(decorator, cst.Call):
        return source.is_named(decorator, "functools.cache")
    unlimited = source.passed(decorator, "maxsize", 0, NOT_LITERAL) is None
    named = source.is_named(decorator.func, "lru_cache")
    return (named and unlimited) or source.is_named(decorator.func, "functools.cache")


def keepers(context: Context, *, graph: bool = True) -> Iterator[tuple[Source, cst.BaseExpression, str]]:
    """Values that a line of each step keeps, where the step itself makes the value, with the last name of
    what keeps them. ``graph``: only values with a graph; else any, and not what is added to a sum, which
    takes no more memory."""
    for source, statement, small in _keeping(context):
        for keeper, value in _kept(source, small, sums=graph) or _gathered(context, source, small):
            if (
                _is_made(context, source, value, graph)
                and not _emptied(context, keeper)
                and not (graph and _sent_back(context, source, keeper, statement))
                and not (graph and _goes_back(source, keeper))
            ):
                yield source, value, keeper


def _keeping(context: Context) -> Iterator[tuple[Source, cst.SimpleStatementLine, cst.BaseSmallStatement]]:
    """The small statements of each step, but those that only call a function of the user's: a line in that
    keeps what it is given."""
    own = {cost.function.rpartition(".")[2] for cost in context.profile.lines if cost.calls >= _EACH}
    for _, source, statement in context.each_step:
        for small in statement.body:
            call = small.value if isinstance(small, cst.Expr) else None
            if not isinstance(call, cst.Call) or called_name(call) not in own:
                yield source, statement, small


def _gathered(
    context: Context, source: Source, small: cst.BaseSmallStatement
) -> list[tuple[str, cst.BaseExpression]]:
    """What a generator yields, where all that it yields is put into a list: ``list(records(model))``."""
    given = small.value if isinstance(small, cst.Expr) else None
    value = given.value if isinstance(given, cst.Yield) else None
    function = source.enclosing(small, cst.FunctionDef)
    if not isinstance(value, cst.BaseExpression) or function is None:
        return []
    for other, call in context.calls(function.name.value):
        around = other.taking(call)
        if around is not None and other.name(around.func) in ("list", "tuple"):
            return [("", part) for part in _parts(value)]
    return []


def kept_for_nothing(context: Context) -> Iterator[tuple[Source, cst.BaseExpression, str]]:
    """Tensors of the step that are kept for good, where nothing reads more than the newest of them and their
    number."""
    for source, value, keeper in kept_for_good(context):
        inner = value
        while is_method(inner, "detach", "cpu"):  # they share the storage
            inner = receiver(inner) or inner
        if _is_made(context, source, inner, graph=False) and not any(
            _reads(*use) for use in uses_of(context, keeper)
        ):
            yield source, value, keeper


def uses_of(context: Context, keeper: str) -> list[tuple[Source, cst.Name]]:
    """Where the files name ``keeper``. Of an attribute, local names that are the same are others."""
    uses = [
        (source, name)
        for source in context.sources()
        for name in source.nodes(cst.Name)
        if name.value == keeper and not _is_keyword(source, name)
    ]
    return [(source, name) for source, name in uses if not source.is_value(name)] or uses


def _reads(source: Source, name: cst.Name, seen: frozenset[_Bound] = frozenset()) -> bool:
    """Whether the use of a name reads more of what it holds than its length and its newest entries. ``seen``:
    names that were followed to it."""
    node = whole_name(source, name)
    above = source.parent(node)
    if isinstance(above, (cst.AssignTarget, cst.AnnAssign)) and above.target is node:
        value = given_to(source, above)
        fresh = isinstance(value, cst.Call) and called_name(value) in _CONTAINERS
        return not fresh and not isinstance(value, (cst.List, cst.Dict))  # else another name's as well
    if isinstance(above, cst.Attribute):  # `kept.append`, `kept.values()`
        looped = _bound_by(source, source.parent(above)) if above.attr.value in ("values", "items") else None
        return above.attr.value not in _KEEPS if looped is None else _is_read(source, looped, seen)
    if (call := source.taking(node)) is not None:
        return source.name(call.func) != "len"
    if not isinstance(above, cst.Subscript) or above.value is not node:
        return True
    inner = source.parent(above)
    while isinstance(inner, cst.Subscript) and inner.value is above:  # `kept[name][-1]`
        above, inner = inner, source.parent(inner)
    if isinstance(inner, cst.AssignTarget) or _is_newest(source, above):
        return False
    named = _bound_by(source, above)
    return named is None or _is_read(source, named, seen)


def whole_name(source: Source, name: cst.Name) -> cst.Name | cst.Attribute:
    """``self.kept`` of its last name, which is what stands there; else the name itself."""
    above = source.parent(name)
    return above if isinstance(above, cst.Attribute) and above.attr is name else name


def given_to(source: Source, target: cst.AssignTarget | cst.AnnAssign) -> cst.BaseExpression | None:
    """What an assignment gives its target."""
    assign = source.parent(target) if isinstance(target, cst.AssignTarget) else target
    return assign.value if isinstance(assign, (cst.Assign, cst.AnnAssign)) else None


def _bound_by(source: Source, node: cst.CSTNode | None) -> _Bound | None:
    """The name that stands for ``node``, or for what a loop over it gives last, and the code that has it."""
    above = source.parent(node) if node is not None else None
    scope: cst.CSTNode | None = source.enclosing(above, cst.FunctionDef) if above is not None else None
    target = only_target(above)
    if isinstance(above, (cst.For, cst.CompFor)):
        target = list(_parts(above.target))[-1]
        scope = above.body if isinstance(above, cst.For) else source.parent(above)
    return (target.value, scope) if isinstance(target, cst.Name) else None


def _is_read(source: Source, named: _Bound, seen: frozenset[_Bound]) -> bool:
    if named in seen:
        return False
    name, scope = named
    uses = [one for one in source.nodes(cst.Name, within=scope) if one.value == name]
    bound = (cst.AssignTarget, cst.For, cst.CompFor, cst.Element)
    return any(
        not isinstance(source.parent(one), bound) and _reads(source, one, seen | {named}) for one in uses
    )


def _is_newest(source: Source, part: cst.Subscript) -> bool:
    """Whether it is an entry, or some, counted from the end: ``kept[-1]``, ``kept[max(-2, -len(kept))]``."""
    index = part.slice[0].slice if len(part.slice) == 1 else None
    first = index.value if isinstance(index, cst.Index) else getattr(index, "lower", None)
    least = [arg.value for arg in first.args] if isinstance(first, cst.Call) else [first]
    if isinstance(first, cst.Call) and source.name(first.func) != "max":
        return False
    given = [source.literal(one) for one in least]
    return any(isinstance(one, int) and one < 0 for one in given)


def detached(context: Context, made: LineCost) -> list[tuple[Source, cst.Call]]:
    """Calls of ``detach`` on what the line ``made`` assigns, where a line of each step keeps the result: it
    shares the storage."""
    assigns = context.source(made.file).at(made.line, cst.Assign)
    names = {_last(one.target) for assign in assigns for one in assign.targets} - {""}
    return [
        (source, value)
        for _, source, statement in context.each_step
        for small in statement.body
        for keeper, value in _kept(source, small, sums=False)
        if is_method(value, "detach") and _last(receiver(value)) in names and not _emptied(context, keeper)
    ]


def kept_for_good(
    context: Context, *, epochs: bool = False
) -> Iterator[tuple[Source, cst.BaseExpression, str]]:
    """Values that a line of each step puts where nothing is ever taken out, with the last name of that: not
    emptied, cut or made again anywhere, and without a largest length. ``epochs``: it may be emptied or made
    again as a whole, but not in each step."""
    for source, _, small in _keeping(context):
        for keeper, value in _kept(source, small, sums=False):
            if not keeper or isinstance(small, cst.Assign):
                continue
            if not _bounded(context, keeper, source, small, epochs=epochs):
                yield source, value, keeper


def joined_for_good(
    context: Context, longer: Iterable[LineCost]
) -> Iterator[tuple[Source, cst.BaseExpression, str]]:
    """The same for a tensor that a training step replaces by a longer one on one of the lines ``longer``:
    ``self.keys = torch.cat([fresh, self.keys])``."""
    if not any(cost.backward_ms for cost in context.profile.lines):
        return  # what a generated text looks back at gets longer, too
    for cost in longer:
        source = context.source(cost.file)
        statement = source.statement_at(cost.line)
        for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
            kept = _added(source, small) if isinstance(small, cst.Assign) else ()
            for keeper, value in kept:
                if not _bounded(context, keeper, source, small):
                    yield source, value, keeper


def _bounded(
    context: Context, keeper: str, here: Source, growing: cst.BaseSmallStatement, *, epochs: bool = False
) -> bool:
    """Whether what has that last name may get shorter, or not longer than some number; ``growing`` is the
    statement that makes it longer. ``epochs``: other than by beginning again, which not each step does."""
    first = next((one for one in here.nodes(cst.Name, within=growing) if one.value == keeper), None)
    attribute = first is not None and not here.is_value(first)
    scope = None if first is None or attribute else _scope(here, first)
    values = []
    for source in context.sources():
        if any(keeper in _names(source, gone) for gone in source.nodes(cst.Del)):
            return True
        if any(
            is_method(call, *_EMPTIES, "remove") and _last(receiver(call)) == keeper
            for call in source.nodes(cst.Call)
            if not (epochs and is_method(call, "clear") and not _each_step(context, source, call))
        ):
            return True
        given = [
            (target, value)
            for target, value in assignments(source)
            if _last(target) == keeper and not (attribute and _is_local(source, target))
            if source.enclosing(target, cst.Assign) is not growing
            if scope is None or _scope_around(source, target) is scope
        ]
        if any(isinstance(target, cst.Subscript) for target, _ in given):
            return True
        values += [(source, value) for _, value in given]
    if epochs:
        return not values or any(
            not _is_empty(source, value) or _each_step(context, source, value) for source, value in values
        )
    if len(values) != 1:
        return True
    source, value = values[0]
    again = _each_step(context, source, value) or _made_often(context, source, value)
    return "maxlen" in source.code(value) or again


def _scope(source: Source, name: cst.Name) -> cst.CSTNode | None:
    """The function, or the file, that has a plain ``name``: what others call so is something else. None where
    the text does not tell: a parameter, or a name that another function may bind."""
    declared: list[cst.Global | cst.Nonlocal] = [*source.nodes(cst.Global), *source.nodes(cst.Nonlocal)]
    if any(item.name.value == name.value for one in declared for item in one.names):
        return None
    around = _scope_around(source, name)
    bound = {_scope_around(source, one) for one in source.bindings(name.value)}
    given = isinstance(around, cst.FunctionDef) and name.value in parameters(around)
    found = around if around in bound else source.module
    return found if found in bound and not given else None


def _scope_around(source: Source, node: cst.CSTNode) -> cst.CSTNode:
    return source.enclosing(node, cst.FunctionDef) or source.module


def _each_step(context: Context, source: Source, node: cst.CSTNode) -> bool:
    cost = context.cost(source.path, source.line(node))
    return cost is not None and cost.calls >= _EACH


def _is_empty(source: Source, value: cst.BaseExpression) -> bool:
    """Whether it is a new list or the like with nothing in it, and without a largest length."""
    if isinstance(value, (cst.List, cst.Dict)):
        return not value.elements
    return isinstance(value, cst.Call) and called_name(value) in _CONTAINERS and not value.args


def _is_local(source: Source, target: cst.BaseExpression) -> bool:
    """Whether a target is a name of a function or a file, which is no attribute that has the same name."""
    return isinstance(target, cst.Name) and not isinstance(
        source.enclosing(target, cst.FunctionDef, cst.ClassDef), cst.ClassDef
    )


def _made_often(context: Context, source: Source, value: cst.CSTNode) -> bool:
    """Whether the function or class around ``value`` is called in a loop, each time with a new one."""
    function, owner = source.enclosing(value, cst.FunctionDef), source.enclosing(value, cst.ClassDef)
    around = owner if function is None or function.name.value == "__init__" else function
    name = around.name.value if around is not None else ""
    return bool(source.loops(value)) or any(
        called_name(call) == name
        and (where.loops(call) or where.enclosing(call, cst.ListComp, cst.GeneratorExp))
        for where, call in (context.calls() if name else ())
    )


def parts_kept(context: Context, made: LineCost) -> list[tuple[Source, cst.BaseExpression, int]]:
    """Values that are views of a part of what the line ``made`` made, and so keep the storage of all of it,
    each with how many times as large that is."""
    graph = whole_graph(context.profile.facts.dataflow)
    if graph is None:
        return []
    storage, found = storages(graph), []
    for source, value, _ in keepers(context, graph=False):
        if is_method(value, *_COPIES):
            continue
        scope = source.enclosing(value, cst.FunctionDef)
        given = source.assigned(source.code(value), scope) if isinstance(value, cst.Name) else []
        nodes = graph.at(source.place(given[-1] if given else value))
        if not nodes or nodes[-1].name not in VIEWS or not nodes[-1].outputs:
            continue
        whole, part = storage(nodes[-1].outputs[0]), nodes[-1].outputs[0]
        times = graph.size(whole) // max(1, graph.size(part))
        maker = graph.producer.get(whole)
        if times >= _TIMES and maker is not None and graph.place(maker) == made.place:
            found.append((source, value, times))
    return found


def _is_made(
    context: Context, source: Source, value: cst.BaseExpression, graph: bool, depth: int = _DEPTH
) -> bool:
    """Whether a step computes ``value``; ``depth``: functions that it may be passed through."""
    while isinstance(value, cst.Subscript):
        value = value.value
    if isinstance(value, cst.Name):
        return _made(context, source, value, depth, graph)
    if isinstance(value, cst.Call):
        if not graph and is_method(value, "detach"):
            return _is_made(context, source, receiver(value) or value, graph)  # it shares the storage
        return not _parted(source, value) and _ran(context, source, value, graph)
    # `0.9 * mean + 0.1 * loss`: that its line adds to autograd's graph says that the result has one, unless
    # what was added is read off, as in `0.9 * mean + 0.1 * criterion(scores, labels).item()`.
    made = isinstance(value, (cst.BinaryOperation, cst.IfExp)) and not any(
        source.is_named(call.func, *_READ) or source.name(call.func) in ("float", "int")
        for call in source.nodes(cst.Call, within=value)
    )
    cost = context.cost(source.path, source.line(value)) if graph and made else None
    return cost is not None and cost.nodes > 0


def _emptied(context: Context, keeper: str) -> bool:
    """Whether each step makes ``keeper`` (its last name) again, or takes something out of it."""
    for cost, source, statement in context.each_step if keeper else ():
        targets = [one.target for one in source.nodes(cst.AssignTarget, within=statement)]
        anew = any(not isinstance(one, cst.Subscript) and _last(one) == keeper for one in targets)
        if anew and keeper not in _names(source, statement):
            return True
        if any(_last(receiver(call)) == keeper for call in source.calls(cost.line, *_EMPTIES)):
            return True
    return False


def _sent_back(context: Context, source: Source, keeper: str, statement: cst.SimpleStatementLine) -> bool:
    """Whether each step uses ``keeper`` (its last name) for what the backward pass goes through, as with an
    auxiliary loss or a residual connection: the graph is then needed, and freed with the step."""
    function = source.enclosing(statement, cst.FunctionDef)
    for back in source.nodes(cst.Return, within=function) if function is not None else ():
        cost = context.cost(source.path, source.line(back))
        if cost is None or cost.calls < _EACH:
            continue  # at the end of a training loop, its history comes back
        if keeper in _names(source, back, parted=False):
            return True
    own = source.place(statement)
    return any(
        cost.nodes > cost.unused_nodes and cost.place != own and keeper in _names(other, found, parted=False)
        for cost, other, found in context.each_step
    )


def _goes_back(source: Source, keeper: str) -> bool:
    """Whether a backward pass, of a later step perhaps, may go through what ``keeper`` (its last name) holds:
    its name is followed through the assignments and loops of the file. Losses of an episode are kept so."""
    moves: list[tuple[set[str], set[str]]] = []  # names that get something, names that it comes from
    for assign in source.nodes(cst.Assign):
        made = {_last(each) for target in assign.targets for each in _parts(target.target)}
        moves.append((made, _values(source, assign.value)))
    for summed in source.nodes(cst.AugAssign):
        moves.append(({_last(summed.target)}, _values(source, summed.value)))
    loops: list[cst.For | cst.CompFor] = [*source.nodes(cst.For), *source.nodes(cst.CompFor)]
    for loop in loops:
        moves.append(({_last(each) for each in _parts(loop.target)}, _values(source, loop.iter)))
    backward: set[str] = set()
    for call in source.nodes(cst.Call):
        held = receiver(call)
        if held is not None:
            given = _values(source, *(arg.value for arg in call.args))
            if called_name(call) in _KEEPS:
                moves.append(({_last(held)}, given))
            if called_name(call) in _BACKWARD:
                backward |= given | _values(source, held)
    known = {keeper} - {""}
    while new := {name for made, of in moves if of & known for name in made} - known - {""}:
        known |= new
    return bool(backward & known)


def _values(source: Source, *nodes: cst.CSTNode) -> set[str]:
    """Last names of all that ``nodes`` read, but for the functions that they call, and for what they part
    from its graph."""
    called = {call.func for node in nodes for call in source.nodes(cst.Call, within=node)}
    return {name for node in nodes for name in _names(source, node, without=called, parted=False)}


def _is_keyword(source: Source, name: cst.Name) -> bool:
    above = source.parent(name)
    return isinstance(above, cst.Arg) and above.keyword is name


def _names(
    source: Source, node: cst.CSTNode, *, without: Collection[cst.CSTNode] = (), parted: bool = True
) -> set[str]:
    """Last names of all that ``node`` reads but what is ``without``; ``parted``: also of what it parts from
    its graph."""
    others = {*without, *(one.target for one in source.nodes(cst.AssignTarget, within=node))}
    return {
        name.value
        for name in source.nodes(cst.Name, within=node)
        if whole_name(source, name) not in others and not _is_keyword(source, name)
        if parted or not _is_parted(source, name)
    }


def _is_parted(source: Source, name: cst.Name) -> bool:
    """Whether it is the last name of what ``detach`` or the like is called on."""
    method = source.parent(whole_name(source, name))
    return isinstance(method, cst.Attribute) and is_method(source.parent(method), *_READ)


def _last(node: cst.CSTNode | None) -> str:
    """``seen`` of ``self.seen[0]`` and of ``self.seen.setdefault(name, [])``."""
    while isinstance(node, (cst.Subscript, cst.Call)):
        inner = node.func if isinstance(node, cst.Call) else node
        if not isinstance(inner, (cst.Attribute, cst.Subscript)):
            return ""
        node = inner.value
    return node.attr.value if isinstance(node, cst.Attribute) else getattr(node, "value", "")


def _kept(
    source: Source, small: cst.BaseSmallStatement, *, sums: bool
) -> list[tuple[str, cst.BaseExpression]]:
    """The last name of what keeps something, and what it keeps."""
    if isinstance(small, cst.Expr):
        held = receiver(small.value) if is_method(small.value, *_KEEPS) else None
        if isinstance(small.value, cst.Call) and held is not None:
            keeper = _last(_meant(source, held))
            return [(keeper, part) for arg in small.value.args for part in _parts(arg.value)]
    elif isinstance(small, cst.AugAssign):
        if sums and isinstance(small.operator, cst.AddAssign):
            plain = isinstance(small.value, (cst.Name, cst.Call, cst.Tuple, cst.List, cst.Dict))
            if plain or _outlives(source, small.target):
                return [(_last(small.target), part) for part in _parts(small.value)]
    elif isinstance(small, cst.Assign):
        found = [
            (_last(target.target), part)
            for target in small.targets
            if isinstance(target.target, cst.Subscript)
            for part in _parts(small.value)
        ]
        return [*found, *_added(source, small)] if sums else found
    return []


def _meant(source: Source, node: cst.BaseExpression) -> cst.BaseExpression:
    """``self.frames[name]`` for the ``seen`` of ``seen = self.frames[name]``; else the node itself."""
    function = source.enclosing(node, cst.FunctionDef)
    given = source.assigned(node.value, function) if isinstance(node, cst.Name) else []
    entry = len(given) == 1 and (isinstance(given[0], cst.Subscript) or is_method(given[0], "setdefault"))
    return given[0] if entry else node


def _added(source: Source, small: cst.Assign) -> Iterator[tuple[str, cst.BaseExpression]]:
    """What a running sum or mean gets of a step: ``x`` in ``self.sum = self.sum + x``, and all of
    ``mean = 0.9 * mean + 0.1 * x``: the old value has a graph as well."""
    value = small.value
    for target in (item.target for item in small.targets if _outlives(source, item.target)):
        kept = source.code(target)
        sides = [value.left, value.right] if isinstance(value, cst.BinaryOperation) else []
        added = [side for side in sides if source.code(side) != kept]
        if (
            isinstance(value, cst.BinaryOperation)
            and isinstance(value.operator, cst.Add)
            and len(added) == 1
            and isinstance(added[0], (cst.Name, cst.Call, cst.Tuple, cst.List))
        ):
            yield from ((_last(target), part) for part in _parts(added[0]))
        elif any(source.code(node) == kept for node in source.nodes(type(target), within=value)):
            yield _last(target), value


def _outlives(source: Source, target: cst.BaseExpression) -> bool:
    """Whether what is assigned there outlives the step: it is an object's, or a name in the loop that has the
    backward pass."""
    if not isinstance(target, cst.Name):
        return isinstance(target, (cst.Attribute, cst.Subscript))
    return any(
        is_method(call, *_BACKWARD)
        for loop in source.loops(target)[:1]
        for call in source.nodes(cst.Call, within=loop)
    )


def _parts(value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(value, (cst.Tuple, cst.List, cst.Dict)):
        yield from (part for element in value.elements for part in _parts(element.value))
    else:
        yield value


def _made(context: Context, source: Source, name: cst.Name, depth: int, graph: bool) -> bool:
    """Whether a line that runs in each step computes what ``name`` stands for; with ``graph``, and adds to
    autograd's graph."""
    function = source.enclosing(name, cst.FunctionDef)
    scope = function if function is not None else source.module
    assigned = [
        node
        for node in source.nodes(cst.Assign, within=scope)
        for target in node.targets
        for each in source.nodes(cst.Name, within=target)
        if each.value == name.value and source.enclosing(node, cst.FunctionDef) is function
    ]
    if assigned:
        return any(
            source.nodes(cst.Call, within=node.value)
            and not _parted(source, node.value)
            and _ran(context, source, node, graph)
            for node in assigned
        )
    if function is None or depth == 0:
        return False
    wanted = _looped(source, function, name.value)
    star = function.params.star_kwarg
    if star is not None and star.name.value == wanted:
        return _all_given(context, source, function, depth - 1, graph)
    names = parameters(function)
    if name.value not in names:
        return False
    called = False
    for cost in context.profile.lines:
        other = context.source(cost.file)
        for call in other.calls(cost.line, function.name.value) if cost.calls >= _EACH else ():
            called = True
            given = other.argument(call, name.value, names.index(name.value))
            if given is not None and _is_made(context, other, given.value, graph, depth - 1):
                return True
    return not called and not graph  # a hook: torch calls it with tensors


def _calling(context: Context, source: Source, function: cst.FunctionDef) -> list[LineCost]:
    """Lines that called the function in the captured steps, by whatever name."""
    own = {function_of(cost) for cost in lines_in(context, source, function)}
    own = {one for one in own if one[1].rpartition(".")[2] == function.name.value}
    return [cost for cost in context.profile.lines if own & set(cost.called)]


def _all_given(context: Context, source: Source, function: cst.FunctionDef, depth: int, graph: bool) -> bool:
    """Whether a step computes all that is passed by other names than the function's own (``**points``); also
    where an object is called as a function."""
    own = {param.name.value for param in (*function.params.params, *function.params.kwonly_params)}
    for cost in _calling(context, source, function):
        other = context.source(cost.file)
        named = [
            [arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value not in own]
            for call in other.calls(cost.line)
            if function.name.value in (called_name(call), "__call__")
        ]
        values = max(named, key=len, default=[])
        if values and all(_is_made(context, other, value, graph, depth) for value in values):
            return True
    return False


def _looped(source: Source, function: cst.FunctionDef, name: str) -> str:
    """``points`` for the ``point`` of ``for key, point in points.items()``; else the name itself."""
    for loop in source.nodes(cst.For, within=function):
        last, over = list(_parts(loop.target))[-1], receiver(loop.iter)
        named = isinstance(last, cst.Name) and last.value == name and is_method(loop.iter, "items", "values")
        if named and isinstance(over, cst.Name):
            return over.value
    return name


def _ran(context: Context, source: Source, node: cst.CSTNode, graph: bool) -> bool:
    """Whether each step runs the line of ``node``; with ``graph``, whether that line or a function of the
    user's that it calls adds nodes to autograd's graph. A line's own cost leaves out what it calls."""
    cost = context.cost(source.path, source.line(node))
    calls = source.nodes(cst.Call, within=node)
    if cost is None or not graph:
        # Of Python's own modules (a clock, a counter) nothing takes memory of the device.
        modules = {source.name(call.func).partition(".")[0] for call in calls}
        return cost is not None and cost.calls >= _EACH and not modules <= sys.stdlib_module_names
    names = {called_name(call) for call in calls}
    return cost.nodes > 0 or any(
        one.nodes > 0 and one.function.rpartition(".")[2] in names and _gives_tensor(context, one)
        for one in context.profile.lines
    )


def _gives_tensor(context: Context, cost: LineCost) -> bool:
    """Whether the function of a line may return a tensor with its graph: no number, and no tuple."""
    source, name = context.source(cost.file), cost.function.rpartition(".")[2]
    around = [one for one in source.at(cost.line, cst.FunctionDef) if one.name.value == name]
    backs = [
        back.value
        for one in around[:1]
        for back in source.nodes(cst.Return, within=one)
        if source.enclosing(back, cst.FunctionDef) is one
    ]
    return bool(backs) and not any(
        back is None
        or isinstance(back, (cst.Tuple, cst.List, cst.Dict))
        or _parted(source, back)
        or any(source.is_named(one.func, *_READ) for one in source.nodes(cst.Call, within=back))
        for back in backs
    )


def _parted(source: Source, value: cst.BaseExpression) -> bool:
    outer = value.func if isinstance(value, cst.Call) else value
    return source.is_named(outer, *_PARTED)
