"""Where the user's code asks for a tensor that is the same in each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.calling import Function, below, callers, function_of, is_forward
from warpline.rulekit.context import Context
from warpline.rulekit.graph.attention import PRODUCTS
from warpline.rulekit.graph.constants import READS, constant_values
from warpline.rulekit.graph.graph import Graph, Node
from warpline.rulekit.graph.parts import Part
from warpline.rulekit.graph.storages import VIEWS, storages
from warpline.rulekit.terms import function_at
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, called_name, methods

FileLine = tuple[str, int]
#: The head of a loop that each step begins again runs once more than its body: at least so often.
_BEGUN_AGAIN = 1.9
BY_HAND = (
    "compute it once before the loop, or in `__init__` with `register_buffer`, if its inputs never change"
)
#: Bases that no other class of the script is.
_UNRELATED = ("Module", "object", "Dataset", "IterableDataset", "Sampler", "Function", "Optimizer")
_OF_NUMBERS = (cst.Divide, cst.FloorDivide, cst.Subtract, cst.Power)  # and of no list
_DEPTH = 4  # functions that only call such functions


def made_at(
    context: Context, graph: Graph, name: str, nodes: Sequence[Node], own: Sequence[Part]
) -> FileLine | None:
    """The line to take out of the step: the call of the function ``name`` that computes nothing but ``nodes``
    where one line calls it, its ``def`` where several do, else the line of ``own`` that takes longest. Also
    that in a property, which reads as an attribute, and where a module's ``forward`` computes it of the
    module's buffers alone: another attribute or buffer replaces it.

    None where a name on that line is counted by the loop around it, so the next step has another value; not
    by a loop that each step runs from its start, where the next step was seen to compute the same.
    """
    if not own:
        return None
    hottest = max(own, key=lambda part: part.step_ms)
    place = hottest.place
    source = context.source(place[0])
    statement = source.statement_at(place[1])
    # The other parts of a line that computes more than constants may use the loop's names as they like.
    seen = {node.index for node in nodes} <= set(graph.flow.again)
    counts = partial(_counts, context if seen else None)
    if statement is not None and hottest.share == 1 and counts(source, statement):
        return None
    function, constant = name, constant_values(graph)
    for _ in range(_DEPTH):
        if not _computes_nothing_else(context, graph, (place[0], function), constant):
            return place
        if is_forward((place[0], function)) and _of_buffers(graph, nodes):
            return place
        if _is_property(context.source(place[0]), place[1]):
            return place
        found = _callers(context, place[0], function)
        if any(counts(caller.source, caller.call) for caller in found):
            return None
        places = {caller.place for caller in found}
        if len(places) != 1:
            return _defined(context, place) if places else place
        place, function = found[0].place, found[0].function
    return place


def _defined(context: Context, place: FileLine) -> FileLine:
    """The ``def`` of the function around a line; the line itself where none is."""
    source = context.source(place[0])
    function = function_at(source, place[1])
    return source.place(function.name) if function is not None else place


def as_buffer(context: Context, graph: Graph, name: str, place: FileLine, nodes: Sequence[Node]) -> Fix:
    """Register what a call computes of a module's own buffers and settings as another buffer, at the end of
    its ``__init__``. Raises Refused where that is not what the line calls, or the result may change later."""
    source = context.source(place[0])
    if context.autocast and any(node.name in PRODUCTS for node in nodes):
        raise Refused("autocast gives its products another type than they have elsewhere")
    if _is_property(source, place[1]):
        return _cached(context, source, place[1])
    method = _method_at(context, source, place)
    if method is not None:
        return _kept_by_object(context, graph, source, method, place[1])
    function = function_at(source, place[1])
    if function is not None and source.line(function.name) == place[1]:
        return _with_cache(context, graph, source, function)
    name = name.rpartition(".")[2]
    calls = [call for call in source.calls(place[1], name) if isinstance(call.func, cst.Name)]
    if len(calls) != 1 or any(arg.star for arg in calls[0].args):
        raise Refused(BY_HAND)
    (call,) = calls
    owner, init = _made_in(source, call)
    names = [one for arg in call.args for one in source.nodes(cst.Name, within=arg) if source.is_value(one)]
    settled = all(one.value == "self" or source.constant(one.value) is not None for one in names)
    read = _own(source, call)
    registered = _registered(source, init)
    numbers = _is_module(source, owner, registered) and _of_numbers(context, graph, source, name)
    if not settled or not (registered & (read or set()) or numbers):
        raise Refused(BY_HAND)
    _refuse_changes(context, source, owner, init, read)
    return _kept(source, init, [call], "self", source.code(call), module=True)


def _with_cache(context: Context, graph: Graph, source: Source, function: cst.FunctionDef) -> Fix:
    """Keep what a function computes of each of its arguments. Raises Refused where these are not seen to be
    numbers, or where it reads anything else that may change, or may be called first where nothing can be
    trained of the result."""
    params, every = function.params.params, source.nodes(cst.Param, within=function.params)
    frozen = any(True for _ in context.calls("inference_mode"))
    if function.asynchronous or frozen or len(params) != len(every) or function.decorators:
        raise Refused(BY_HAND)
    if source.enclosing(function, cst.FunctionDef, cst.ClassDef) is not None:
        raise Refused(BY_HAND)
    names = [one for one in source.nodes(cst.Name, within=function.body) if source.is_value(one)]
    own = {one.name.value for one in params}
    made = {one.value for one in names if source.binds(one)}
    if made & own or not all(_is_number(source, [one for one in names if one.value == name]) for name in own):
        raise Refused("a cache needs arguments that can be compared: " + BY_HAND)
    if not all(_is_settled(source, one) for one in names if one.value not in own | made):
        raise Refused(BY_HAND)
    if not _of_numbers(context, graph, source, function.name.value):
        raise Refused(BY_HAND)
    edits = Edits(source)
    cache = edits.add_import("functools.cache", "from functools import cache")
    edits.insert_before(function, f"@{cache}")
    return edits.fix("Compute it once for each of its arguments", "unsafe")


def _is_settled(source: Source, name: cst.Name) -> bool:
    """Whether a name of the file, read in a function, stands for the same each time."""
    part = isinstance(source.parent(name), (cst.Attribute, cst.Subscript))
    bound = [one for one in source.nodes(cst.Name) if one.value == name.value and source.binds(one)]
    if bound and all(source.enclosing(one, cst.Import, cst.ImportFrom) for one in bound):
        return not part or source.name(name).partition(".")[0] in ("torch", "math", "numpy")
    return not part and (not bound or source.constant(name.value) is not None)


def _is_number(source: Source, uses: Sequence[cst.Name]) -> bool:
    """Whether a parameter is only used as a number, or as the name of a device: none of its parts is read."""
    above = [source.parent(one) for one in uses]
    parts = (cst.Attribute, cst.Subscript, cst.StarredElement, cst.For, cst.CompFor)
    named = all(isinstance(one, cst.Arg) and _named(one) in ("device", "dtype") for one in above)
    pairs = zip(uses, above, strict=True)
    counted = any(isinstance(both, cst.BinaryOperation) and _counts_with(both, one) for one, both in pairs)
    return not any(isinstance(one, parts) for one in above) and (counted or named)


def _named(arg: cst.Arg) -> str:
    return arg.keyword.value if arg.keyword is not None else ""


def _counts_with(both: cst.BinaryOperation, one: cst.Name) -> bool:
    """Whether an operation takes no list there."""
    other = both.right if both.left is one else both.left
    times = isinstance(both.operator, cst.Multiply) and not isinstance(other, (cst.Name, cst.Integer))
    return times or isinstance(both.operator, _OF_NUMBERS)


def _made_in(source: Source, node: cst.CSTNode) -> tuple[cst.ClassDef, cst.FunctionDef]:
    """The class around ``node`` and its ``__init__``. Raises Refused."""
    owner = source.enclosing(node, cst.ClassDef)
    init = methods(owner).get("__init__") if owner is not None else None
    if owner is None or init is None:
        raise Refused(BY_HAND)
    return owner, init


def _refuse_changes(
    context: Context, source: Source, owner: cst.ClassDef, init: cst.FunctionDef, read: set[str] | None
) -> None:
    """Raises Refused where the attributes ``read`` are not all made by ``init``, or may change later; and
    where what is read is not known."""
    loads = any(True for _ in context.calls("load_state_dict", "torch.load", "buffers", "named_buffers"))
    if read is None or read - _registered(source, init) - _stored(source, init) or loads:
        raise Refused(BY_HAND)
    if changed(context, read, init, owner):
        raise Refused(BY_HAND)


def _of_numbers(context: Context, graph: Graph, source: Source, name: str) -> bool:
    """Whether all that the file's own function computes, it computes of numbers, and returns one tensor."""
    functions = source.functions(name)
    if len(functions) != 1 or functions[0].decorators:
        return False
    backs = [one.value for one in source.nodes(cst.Return, within=functions[0])]
    inside = _inside(context, graph, _functions(context, source, functions[0]))
    storage = storages(graph)  # what is written row by row is another value each time
    made = {storage(value) for node in inside for value in node.outputs}
    free = any(storage(value) not in made for node in inside for value in node.inputs)
    several = not backs or any(map(partial(_is_several, source), backs))
    return not free and not several and _constant_as_a_whole(context, graph, source, functions[0])


def _own(source: Source, node: cst.CSTNode) -> set[str] | None:
    """The attributes of ``self`` in it; None where the object itself is passed on."""
    above = [source.parent(one) for one in source.nodes(cst.Name, within=node) if one.value == "self"]
    found = {one.attr.value for one in above if isinstance(one, cst.Attribute)}
    return found if all(isinstance(one, cst.Attribute) for one in above) else None


def _is_module(source: Source, owner: cst.ClassDef, registered: set[str]) -> bool:
    return bool(registered) or any(source.is_named(base.value, "Module") for base in owner.bases)


def _kept(
    source: Source, init: cst.FunctionDef, calls: Sequence[cst.Call], holder: str, code: str, *, module: bool
) -> Fix:
    """Compute ``code`` at the end of ``init``, keep it as a buffer or an attribute, and read that for the
    ``calls``. ``holder`` is what has it where the only call is. Raises Refused."""
    assign = source.parent(calls[0]) if len(calls) == 1 else None
    target = assign.targets[0].target if isinstance(assign, cst.Assign) else None
    names = [*([target.value] if isinstance(target, cst.Name) else []), f"kept_{called_name(calls[0])}"]
    used = {one.attr.value for one in source.nodes(cst.Attribute)} | _registered(source, init)
    kept = next((name for name in names if name not in used), None)
    last = source.block(init.body.body[0])[-1] if isinstance(init.body, cst.IndentedBlock) else None
    if kept is None or last is None or source.nodes(cst.Return, within=init):
        raise Refused(BY_HAND)
    edits = Edits(source)
    for one in calls:
        edits.replace(one, f"{holder}.{kept}")
    buffer = f'self.register_buffer("{kept}", {code}, persistent=False)'
    edits.insert_after(last, buffer if module else f"self.{kept} = {code}")
    return edits.fix("Compute it once" + (", as a buffer" if module else ""), "unsafe")


def _method_at(context: Context, source: Source, place: FileLine) -> cst.FunctionDef | None:
    """The method without arguments that the line calls, or that it is a line of where several lines call
    it."""
    found = [
        one
        for one in source.nodes(cst.FunctionDef)
        if len(one.params.params) == 1
        and [one.params.params[0].name.value] == ["self"]
        and not (one.decorators or one.asynchronous or one.params.kwonly_params)
        and sum(len(other.functions(one.name.value)) for other in context.sources()) == 1
    ]
    called = {called_name(call) for call in source.calls(place[1]) if not call.args}
    for one in found:
        if one.name.value in called or source.inside(source.statement_at(place[1]) or source.module, one):
            return one
    return None


def _kept_by_object(
    context: Context, graph: Graph, source: Source, method: cst.FunctionDef, line: int
) -> Fix:
    """Call a method without arguments at the end of its class's ``__init__``, and keep what it returns: as a
    buffer of a module, else as an attribute. Raises Refused where it may return something else later."""
    (owner, init), name = _made_in(source, method), method.name.value
    backs = [one.value for one in source.nodes(cst.Return, within=method)]
    if not backs or not _constant_as_a_whole(context, graph, source, method):
        raise Refused(BY_HAND)
    _refuse_changes(context, source, owner, init, _read_by(source, owner, method))
    module = _is_module(source, owner, _registered(source, init))
    if (module and any(map(partial(_is_several, source), backs))) or (owner.bases and not module):
        raise Refused(BY_HAND)
    here = source.calls(line)
    calls: dict[str, list[cst.Call]] = {}
    for one in source.nodes(cst.Call):
        if isinstance(one.func, cst.Attribute) and called_name(one) == name and not one.args:
            holder = source.code(one.func.value)
            own = holder == "self" and source.inside(one, owner)
            if not source.inside(one, init) and (own or one in here):
                calls.setdefault(holder, []).append(one)
    if len(calls) != 1:
        raise Refused(BY_HAND)
    ((holder, found),) = calls.items()
    return _kept(source, init, found, holder, f"self.{name}()", module=module)


def _constant_as_a_whole(context: Context, graph: Graph, source: Source, method: cst.FunctionDef) -> bool:
    """Whether all that the method computes, and what it calls, is the same in each step, and depends on no
    parameter."""
    constant = constant_values(graph)
    nodes = _inside(context, graph, _functions(context, source, method))
    return bool(nodes) and all(
        is_constant(node, constant) and graph.parameters.isdisjoint(map(graph.origin, node.inputs))
        for node in nodes
    )


def is_constant(node: Node, constant: set[int]) -> bool:
    """Whether an operator gives the same in each step, or only a view, or a number to Python."""
    return bool(node.outputs and constant.issuperset(node.outputs)) or node.name in VIEWS | READS


def _inside(context: Context, graph: Graph, own: set[Function]) -> list[Node]:
    """The operators of some functions, and of those that they call; not of other calls of these, as far as
    the record says who called them."""
    costs = [cost for cost in context.profile.lines if function_of(cost) in own]
    functions = own | {function_of(one) for cost in costs for one in below(context, cost)}
    found = []
    for node in graph.nodes:
        site, ran = graph.site(node), {(frame.file, frame.function) for frame in graph.frames(node)}
        if site is not None and (site.file, site.function) in functions and (len(ran) < 2 or ran & own):
            found.append(node)
    return found


def _functions(context: Context, source: Source, function: cst.FunctionDef) -> set[Function]:
    return {function_of(cost) for cost in context.costs_of(source, function)}


def _read_by(source: Source, owner: cst.ClassDef, method: cst.FunctionDef) -> set[str] | None:
    """The object's own attributes that a method reads, also in methods of the class that it calls. None where
    it changes any, or passes the object on."""
    others = methods(owner)
    read, seen, waiting = set[str](), set[str](), [method.name.value]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        body = others[name].body
        if _stored(source, others[name]) or source.nodes(cst.AugAssign, cst.Yield, cst.Global, within=body):
            return None
        for own in (one for one in source.nodes(cst.Name, within=body) if one.value == "self"):
            above = source.parent(own)
            if not isinstance(above, cst.Attribute):
                return None
            (waiting.append if above.attr.value in others else read.add)(above.attr.value)
    return read


def _is_several(source: Source, value: cst.BaseExpression | None, left: int = _DEPTH) -> bool:
    """Whether a function that returns this may return something else than one tensor."""
    if not left:
        return True
    if isinstance(value, cst.Name):
        given = source.assigned(value.value, source.enclosing(value, cst.FunctionDef))
        return len(given) != 1 or isinstance(given[0], cst.Name) or _is_several(source, given[0], left - 1)
    if isinstance(value, cst.Call) and (back := source.returned(value)) is not None:
        return _is_several(source, back, left - 1)
    plain = (cst.Call, cst.BinaryOperation, cst.UnaryOperation, cst.Subscript, cst.Attribute)
    return not isinstance(value, plain)


def _cached(context: Context, source: Source, line: int) -> Fix:
    """Keep what a property of a module computes. Raises Refused where what it reads may change, or it may be
    computed first where nothing can be trained of it."""
    function = function_at(source, line)
    frozen = any(True for _ in context.calls("inference_mode"))
    if function is None or len(function.decorators) != 1 or frozen:
        raise Refused(BY_HAND)
    named = source.nodes(cst.Attribute, within=function.body)
    read = {one.attr.value for one in named if source.code(one.value) == "self"}
    _refuse_changes(context, source, *_made_in(source, function), read)
    edits = Edits(source)
    name = edits.add_import("functools.cached_property", "from functools import cached_property")
    edits.replace(function.decorators[0].decorator, name)
    return edits.fix("Compute it once", "unsafe")


def _registered(source: Source, init: cst.FunctionDef) -> set[str]:
    """Buffers that ``init`` registers."""
    calls = [one for one in source.nodes(cst.Call, within=init) if one.args]
    own = [one for one in calls if source.code(one.func) == "self.register_buffer"]
    return {source.literal(one.args[0].value) for one in own}


def _stored(source: Source, function: cst.FunctionDef) -> set[str]:
    """Attributes of its own that a method assigns."""
    own = (one for one in source.nodes(cst.Attribute, within=function.body) if source.binds(one))
    return {one.attr.value for one in own if source.code(one.value) == "self"}


def changed(context: Context, names: set[str], init: cst.FunctionDef, owner: cst.ClassDef) -> bool:
    """Whether anything but ``init`` assigns attributes of these names, or writes into them; another class's
    own are others."""
    for source in context.sources():
        for one in source.nodes(cst.Attribute):
            if one.attr.value not in names or source.inside(one, init):
                continue
            if source.code(one.value) == "self" and not related(source.enclosing(one, cst.ClassDef), owner):
                continue
            above = source.parent(one)
            while isinstance(above, (cst.Subscript, cst.Element, cst.Tuple)):
                above = source.parent(above)
            in_place = isinstance(above, cst.Attribute) and above.attr.value.endswith(("_", "data"))
            call = source.enclosing(one, cst.Call) if isinstance(above, cst.Arg) else None
            in_place |= call is not None and called_name(call).endswith("_")  # `nn.init.normal_`
            if in_place or isinstance(above, (cst.AssignTarget, cst.AugAssign)):
                return True
        for call in source.nodes(cst.Call):
            if not source.is_named(call.func, "register_buffer") or source.inside(call, init):
                continue
            own = source.code(call.func) == "self.register_buffer"
            others = own and not related(source.enclosing(call, cst.ClassDef), owner)
            if call.args and source.literal(call.args[0].value) in names and not others:
                return True
    return False


def related(one: cst.ClassDef | None, other: cst.ClassDef) -> bool:
    """Whether an object may be of both classes: one of them has a base that may be the other."""
    if one is None or one.name.value == other.name.value:
        return True
    bases = [base.value for base in (*one.bases, *other.bases)]
    names = [getattr(getattr(base, "attr", base), "value", "") for base in bases]
    return any(name not in _UNRELATED for name in names)


def _computes_nothing_else(context: Context, graph: Graph, function: Function, constant: set[int]) -> bool:
    """Whether the function, and those that it calls, compute only constants."""
    nodes = _inside(context, graph, {function})
    return function[1] not in ("<module>", "") and all(is_constant(node, constant) for node in nodes)


def _is_property(source: Source, line: int) -> bool:
    return source.decorated(function_at(source, line), "property")


def _of_buffers(graph: Graph, nodes: Sequence[Node]) -> bool:
    """Whether all that ``nodes`` read from before the step are buffers of modules."""
    read = {value for node in nodes for value in node.inputs if value not in graph.producer}
    return bool(read) and read <= set(graph.flow.buffers)


@dataclass(frozen=True, slots=True)
class _Caller:
    source: Source
    call: cst.CSTNode
    place: FileLine
    function: str


def _callers(context: Context, file: str, function: str) -> list[_Caller]:
    """The recorded callers of a function. Without any, lines that ran and call a function of its name."""
    name = function.rpartition(".")[2]
    seen = callers(context, (file, function))
    found = []
    for cost in seen or context.profile.lines:
        source = context.source(cost.file)
        calls: list[cst.CSTNode] = [
            call
            for call in source.calls(cost.line)
            if source.is_named(call.func, name) and source.line(call) == cost.line
        ]
        # A module's `forward` is called under the module's name.
        statement = source.statement_at(cost.line) if seen and not calls else None
        found += [
            _Caller(source, call, cost.place, cost.function)
            for call in (calls or ([statement] if statement is not None else []))
        ]
    return found


def _counts(context: Context | None, source: Source, node: cst.CSTNode) -> bool:
    """Whether ``node`` uses a name that a loop around it, or ``+= 1`` in its function, gives a new value.
    With a ``context``, loops that each step begins again do not count."""
    counted = _counted(context, source, node)
    return any(name.value in counted for name in source.nodes(cst.Name, within=node))


def _counted(context: Context | None, source: Source, node: cst.CSTNode) -> set[str]:
    sums = [one for one in source.nodes(cst.AugAssign, within=source.scope(node)) if source.loops(one)]
    targets: list[cst.CSTNode] = [
        one.target for one in sums if isinstance(one.value, (cst.Integer, cst.Float, cst.Name))
    ]
    for loop in source.loops(node):
        head = context.cost(source.path, source.line(loop)) if context is not None else None
        if isinstance(loop, cst.For) and (head is None or head.calls < _BEGUN_AGAIN):
            targets.append(loop.target)
    return {name.value for target in targets for name in source.nodes(cst.Name, within=target)}
