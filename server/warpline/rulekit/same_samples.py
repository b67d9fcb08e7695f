"""Calls that give the same for each sample: a helper that makes a window or a filter bank again and again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.constants import changed
from warpline.rulekit.context import Context
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, called_name, methods, receiver

FileLine = tuple[str, int]
BY_HAND = "compute it once, in `__init__` of the dataset or transform, if nothing changes what it is made of"
#: Libraries whose functions compute the same of the same arguments, but for those that draw numbers.
_COMPUTE = ("numpy", "scipy", "torch", "math", "cmath")
_DRAW = ("rand", "normal", "bernoulli", "multinomial", "poisson", "dropout", "uniform", "rvs", "empty")
_BUILTINS = frozenset({
    "None", "True", "False", "abs", "bool", "complex", "dict", "enumerate", "float", "int", "len", "list",
    "max", "min", "pow", "range", "reversed", "round", "set", "slice", "sorted", "sum", "tuple", "zip",
})  # fmt: skip
#: Methods of arrays, tensors and lists that change nothing.
_METHODS = frozenset({
    "abs", "all", "any", "argmax", "argmin", "argsort", "astype", "clone", "conj", "copy", "cos", "cumprod",
    "cumsum", "diagonal", "dot", "double", "exp", "flatten", "float", "int", "item", "items", "keys", "log",
    "long", "matmul", "max", "mean", "min", "numel", "numpy", "permute", "prod", "ravel", "repeat", "reshape",
    "round", "sin", "size", "sqrt", "squeeze", "std", "sum", "swapaxes", "take", "tolist", "transpose",
    "tril", "triu", "type", "unsqueeze", "values", "var", "view",
})  # fmt: skip
#: What may do something else than compute a value.
_OTHERWISE = (cst.Await, cst.Yield, cst.Global, cst.Nonlocal, cst.With, cst.Try, cst.Lambda)
_OF_LISTS = ("append", "extend")
#: Functions that only read their arguments, and return something new.
_READ = frozenset({
    "add", "bmm", "conv1d", "conv2d", "convolve", "correlate", "divide", "dot", "einsum", "fftconvolve",
    "inner", "lfilter", "linear", "matmul", "mm", "mv", "multiply", "oaconvolve", "outer", "sosfilt",
    "subtract", "tensordot",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class SameCall:
    """``call`` runs all of ``functions``, which nothing else calls."""

    source: Source
    call: cst.Call
    functions: tuple[tuple[Source, cst.FunctionDef], ...]

    def runs(self, place: FileLine) -> bool:
        return any(
            place[0] == source.path and place[1] in source.extent(one) for source, one in self.functions
        )


@dataclass(slots=True)
class _Reads:
    """What a call reads: the user's functions, constants, and attributes of the object that calls it."""

    functions: dict[cst.FunctionDef, Source] = field(default_factory=dict)
    attributes: set[str] = field(default_factory=set)
    constants: set[cst.CSTNode] = field(default_factory=set)


def same_calls(context: Context, places: Iterable[FileLine]) -> Iterator[SameCall]:
    """The calls at these lines of functions of the user's that return the same each time, as far as the text
    says: they compute of numbers, and of attributes that only ``__init__`` gives."""
    for file, line in sorted(set(places)):
        source = context.source(file)
        for call in source.calls(line):
            if source.line(call) != line or source.enclosing(call, cst.Lambda) is not None:
                continue
            reads = _reads(context, source, call)
            if reads is not None and reads.functions:
                own = [(where, one) for one, where in reads.functions.items()]
                yield SameCall(source, call, tuple(_called_here(context, call, own)))


def kept_in_init(same: SameCall) -> Fix:
    """Make the call at the end of the class's ``__init__``, and read what it gave. Raises Refused."""
    source, call = same.source, same.call
    owner, function = source.enclosing(call, cst.ClassDef), source.enclosing(call, cst.FunctionDef)
    init = methods(owner).get("__init__") if owner is not None else None
    if owner is None or init is None or function is None or function not in methods(owner).values():
        raise Refused(BY_HAND)
    own = [one.name.value for one in function.params.params[:1]]
    if own != ["self"] or source.nodes(cst.Return, within=init) or not _is_only_read(source, call):
        raise Refused(BY_HAND)
    assign = source.parent(call)
    target = assign.targets[0].target if isinstance(assign, cst.Assign) else None
    used = {one.attr.value for one in source.nodes(cst.Attribute)} | set(methods(owner))
    names = [*([target.value] if isinstance(target, cst.Name) else []), f"kept_{called_name(call)}"]
    kept = next((name for name in names if name not in used), None)
    last = source.block(init.body.body[0])[-1] if isinstance(init.body, cst.IndentedBlock) else None
    if kept is None or last is None:
        raise Refused(BY_HAND)
    edits = Edits(source)
    edits.replace(call, f"self.{kept}")
    edits.insert_after(last, f"self.{kept} = {source.code(call)}")
    return edits.fix("Compute it once, in `__init__`", "unsafe")


def _called_here(
    context: Context, call: cst.Call, functions: list[tuple[Source, cst.FunctionDef]]
) -> Iterator[tuple[Source, cst.FunctionDef]]:
    """The functions that are called by ``call`` or by each other alone: all of their time is the call's."""
    for where, one in functions:
        used = [
            (other, name)
            for other in context.sources()
            for name in other.nodes(cst.Name)
            if name.value == one.name.value and not other.binds(name) and not other.inside(name, call)
        ]
        if all(
            any(other is own and own.inside(name, body) for own, body in functions) for other, name in used
        ):
            yield where, one


def _reads(context: Context, source: Source, call: cst.Call) -> _Reads | None:
    """What ``call`` computes of; None where that may differ from sample to sample."""
    reads = _Reads()
    if not _is_same(context, source, call, frozenset(), reads):
        return None
    owner = source.enclosing(call, cst.ClassDef)
    init = methods(owner).get("__init__") if owner is not None else None
    if not reads.attributes:
        return reads
    if owner is None or init is None or changed(context, reads.attributes, init, owner):
        return None
    if any(_changes(call, reads.attributes) for _, call in context.calls()):
        return None
    made = {one.attr.value for one in source.nodes(cst.Attribute, within=init) if source.binds(one)}
    return reads if reads.attributes <= made else None


def _is_same(context: Context, source: Source, node: cst.CSTNode, own: frozenset[str], reads: _Reads) -> bool:
    """Whether ``node`` computes the same each time. ``own``: names of the function around it."""
    if source.nodes(*_OTHERWISE, within=node):
        return False
    for call in source.nodes(cst.Call, within=node):
        held, name = receiver(call), called_name(call)
        whose = source.name(held) if held is not None else ""
        if isinstance(call.func, cst.Name) and call.func.value in own:
            return False
        if held is not None and not _is_library(source, call.func) and whose != "self":
            lists = name in _OF_LISTS and whose in own
            if name not in _METHODS and not lists:
                return False
    return all(
        _is_same_name(context, source, name, reads)
        for name in source.nodes(cst.Name, within=node)
        if source.is_value(name) and name.value not in own
    )


def _is_same_name(context: Context, source: Source, name: cst.Name, reads: _Reads) -> bool:
    above = source.parent(name)
    if name.value == "self":
        if not isinstance(above, cst.Attribute):
            return False
        called = source.parent(above)
        if isinstance(called, cst.Call) and called.func is above:
            return _is_same_function(context, above.attr.value, reads)
        reads.attributes.add(above.attr.value)
        return True
    if name.value in _BUILTINS:
        return True
    outer: cst.CSTNode = name
    while isinstance(above, cst.Attribute):
        outer, above = above, source.parent(above)
    if _is_library(source, name):
        return not any(part.startswith(_DRAW) for part in source.name(outer).split("."))
    value = source.constant(name.value)
    if value in reads.constants:  # it is being followed
        return True
    if value is not None:
        reads.constants.add(value)
        return not _is_written(source, name.value) and _is_same(context, source, value, frozenset(), reads)
    return _is_same_function(context, source.name(name).rpartition(".")[2], reads)


def _is_same_function(context: Context, name: str, reads: _Reads) -> bool:
    """Whether the user's only function of this name returns the same for the same arguments."""
    found = [(other, one) for other in context.sources() for one in other.functions(name)]
    if len(found) != 1 or found[0][1].decorators:
        return False
    ((other, function),) = found
    if function in reads.functions:
        return True
    reads.functions[function] = other
    given = {one.name.value for one in other.nodes(cst.Param, within=function)}
    bound = {one.value for one in other.nodes(cst.Name, within=function.body) if other.binds(one)}
    return not any(_is_written(other, one, function) for one in given) and _is_same(
        context, other, function.body, frozenset((given | bound) - {"self"}), reads
    )


def _is_library(source: Source, node: cst.CSTNode) -> bool:
    return source.name(node).startswith(tuple(f"{one}." for one in _COMPUTE)) or source.name(node) in _COMPUTE


def _is_written(source: Source, name: str, within: cst.CSTNode | None = None) -> bool:
    """Whether something is stored in what has this name, which may be an array or a list."""
    added = [one.target for one in source.nodes(cst.AugAssign, within=within)]
    targets = [one.target for one in source.nodes(cst.AssignTarget, within=within)]
    stored = [one.value for one in targets if isinstance(one, (cst.Subscript, cst.Attribute))]
    called = any(_changes(call, {name}) for call in source.nodes(cst.Call, within=within))
    return called or any(source.uses(name, one) for one in (*stored, *added))


def _changes(call: cst.Call, names: set[str]) -> bool:
    """Whether it calls a method that may change the thing of one of these names, or attributes."""
    held = receiver(call)
    held = held.attr if isinstance(held, cst.Attribute) else held
    return isinstance(held, cst.Name) and held.value in names and called_name(call) not in _METHODS


def _is_only_read(source: Source, node: cst.CSTNode, seen: frozenset[cst.CSTNode] = frozenset()) -> bool:
    """Whether nothing can write into what ``node`` gives, or return it: later samples would see that.
    ``seen``: assignments that were followed to it."""
    above = source.parent(node)
    if above in seen:
        return True
    if isinstance(above, cst.Assign):
        target = above.targets[0].target
        if len(above.targets) != 1 or not isinstance(target, cst.Name):
            return False
        uses, seen = source.uses(target.value, source.scope(node)), seen | {above}
        return all(
            one is target or (not source.binds(one) and _is_only_read(source, one, seen)) for one in uses
        )
    if isinstance(above, cst.Arg):
        call = source.parent(above)
        named = isinstance(call, cst.Call) and called_name(call) in _READ and _is_library(source, call.func)
        return named and above.keyword is None
    if isinstance(above, (cst.Subscript, cst.Attribute)):
        return above.value is node and _is_only_read(source, above, seen)
    return isinstance(above, (cst.BinaryOperation, cst.UnaryOperation))
