"""What makes float64 numbers in the text of a file, and the edit that makes float32 of them."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.origins import called_as, parameters
from warpline.rulekit.terms import descend
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, is_method, taken

_COMPREHENSIONS = (cst.ListComp, cst.SetComp, cst.GeneratorExp, cst.DictComp)
#: Names of names that are followed: chosen, so that a circle ends.
_DEPTH = 4

#: Functions of torch's that make tensors of arrays.
MAKERS = ("torch.from_numpy", "torch.as_tensor", "torch.tensor")
#: Words by which NumPy is asked for other numbers than those of float64.
_OTHER_TYPE = re.compile(r"\b(?:u?int(?:8|16|32|64)?|integers|bool_?|half|single|float(?:16|32))\b")
#: Functions of NumPy's that give places, counts or truth values; `arange` mostly gives whole numbers.
_WHOLE = re.compile(
    r"\b(?:arange|permutation|randint|choice|shuffle|arg(?:max|min|sort|where|partition)|(?:flat|count_)?nonzero"
    r"|where|searchsorted|digitize|bincount|lexsort|unique|isin|is(?:nan|inf|finite)|(?:tril|triu|diag)?_?indices"
    r"|binomial|poisson|multinomial|geometric|logical_\w+)\b"
)
#: These have the type of what they are given, or of a file.
_OF_ANY_TYPE = ("array", "asarray", "ascontiguousarray", "stack", "concatenate", "vstack", "hstack", "load",
                "fromfile", "frombuffer", "fromiter", "memmap", "zeros_like", "ones_like", "empty_like",
                "full_like", "full", "tile", "repeat")  # fmt: skip
#: Python's own numbers: torch makes float32 of them.
_NUMBERS = ("pi", "e", "inf", "nan", "newaxis")
#: Numbers that are written out: of them torch makes tensors of its default type.
_WRITTEN = (cst.Integer, cst.Float, cst.UnaryOperation, cst.List, cst.Tuple)


def doubles(source: Source) -> list[cst.BaseExpression]:
    """Where the file asks for float64; else where it makes tensors of NumPy's arrays, mostly float64."""
    return asked_for(source) or _from_numpy(source)


def asks_for_doubles(source: Source) -> bool:
    """Whether the file asks for float64, and does not only get it from NumPy's arrays."""
    return bool(asked_for(source))


def unclear(source: Source) -> list[cst.Call]:
    """Calls whose tensors may be float64 whatever torch's default type is, as far as the text shows: those
    of a file, or of something that is neither an array of NumPy's nor numbers that are written there."""
    arrays = _from_numpy(source)
    found = source.calls_of("torch.load")
    for call in source.nodes(cst.Call):
        maker, values = _made_by(source, call)
        known = (call, maker) if maker is not None else ()
        if values is None or _is_cast(source, call) or any(one in arrays for one in known):
            continue
        if not all(_is_other_made(source, one) or isinstance(one, _WRITTEN) for one in values):
            found.append(call)
    return found


def arrays_beside(source: Source, nodes: list[cst.BaseExpression]) -> list[cst.BaseExpression]:
    """Tensors made of NumPy's arrays, where ``nodes`` ask for float64 by name: the two meet in products."""
    return [node for node in _from_numpy(source) if node not in nodes]


def asked_for(source: Source) -> list[cst.BaseExpression]:
    """``.double()``, ``torch.float64`` and ``torch.double``, and ``dtype=float``, which means the same."""
    calls = [call for call in source.nodes(cst.Call) if _is_double(call)]
    names = [
        node
        for node in source.nodes(cst.Attribute)
        if source.name(node) in ("torch.float64", "torch.double") and not _is_told_apart(source, node)
    ]
    plain: list[cst.BaseExpression] = [
        arg.value
        for arg in source.nodes(cst.Arg)
        if arg.keyword is not None
        and arg.keyword.value == "dtype"
        and source.code(arg.value) == "float"
        and _to_torch(source, arg)
    ]
    return sorted([*calls, *names, *plain], key=source.line)


def _is_told_apart(source: Source, node: cst.CSTNode) -> bool:
    """Whether the type is compared with others, or is one entry of a table of types."""
    entry = source.enclosing(node, cst.Comparison, cst.DictElement, cst.Call)
    if isinstance(entry, cst.DictElement):
        return bool(re.search("64|double", source.code(entry.key)))
    return isinstance(entry, cst.Comparison)


def _to_torch(source: Source, arg: cst.Arg) -> bool:
    call = source.parent(arg)
    return isinstance(call, cst.Call) and source.name(call.func).startswith("torch.")


def _is_double(node: cst.CSTNode) -> bool:
    return is_method(node, "double") and not node.args


def _from_numpy(source: Source) -> list[cst.BaseExpression]:
    """What makes tensors of NumPy's arrays, whose numbers are float64 unless it is said otherwise: calls, and
    functions that ``map`` is given."""
    found: list[cst.BaseExpression] = []
    for call in source.nodes(cst.Call):
        maker, arrays = _made_by(source, call)
        if maker is None or arrays is None or _is_cast(source, call):
            continue
        others = [_is_other_made(source, one) for one in arrays]
        doubled = [
            source.is_named(maker, "torch.from_numpy") or _is_array(source, one, set()) for one in arrays
        ]
        if not all(others) and all(map(operator.or_, doubled, others)):
            found.append(call if maker is call.func else maker)
    return found


def _made_by(
    source: Source, call: cst.Call
) -> tuple[cst.BaseExpression, list[cst.BaseExpression]] | tuple[None, None]:
    """The function of torch's by which a call makes tensors, itself or by ``map``, and the arrays that they
    are made of. None where it is told their type, or makes none."""
    mapped = source.name(call.func) == "map" and len(call.args) == 2
    maker = call.args[0].value if mapped else call.func
    if not source.is_named(maker, *MAKERS) or not call.args:
        return None, None
    if not mapped and source.argument(call, "dtype", 1) is not None:
        return None, None
    value = call.args[-1 if mapped else 0].value
    whole = _whole(value)
    found = values_of(source, whole) if mapped or isinstance(whole, cst.Name) else [whole]
    return maker, [value] if found == [whole] else found


def _whole(value: cst.BaseExpression) -> cst.BaseExpression:
    while isinstance(value, cst.Subscript):
        value = value.value
    return value


def _is_other(source: Source, value: cst.BaseExpression) -> bool:
    """Whether the text says that an array has other numbers than those of float64."""
    if isinstance(value, cst.Call) and source.name(value.func) == "numpy.where" and len(value.args) > 1:
        # With values it gives those, not places.
        return all(
            isinstance(arg.value, cst.Integer) or _is_other(source, arg.value) for arg in value.args[1:]
        )
    code = source.code(value)
    found = _OTHER_TYPE.search(code) or _WHOLE.search(code) or source.nodes(cst.Comparison, within=value)
    return bool(found)


def _is_other_made(source: Source, value: cst.BaseExpression) -> bool:
    """The same, of a name by what it was given last before that."""
    around = source.scope(value)
    made = source.assigned(source.code(value), within=around)
    before = [one for one in made if source.line(one) < source.line(value)]
    return _is_other(source, before[-1] if before else value)


def _is_array(source: Source, value: cst.BaseExpression, seen: set[str]) -> bool:
    """Whether NumPy made the value, of float64 as far as the text shows. ``seen``: names followed already."""
    if _is_other(source, value):
        return False
    for name in source.nodes(cst.Name, within=value):
        if source.name(name).partition(".")[0] == "numpy":
            function = source.parent(name)
            called = function.attr.value if isinstance(function, cst.Attribute) else source.name(name)
            called = called.rpartition(".")[2]
            if called in _NUMBERS or (called in _OF_ANY_TYPE and not _has_fraction(source, value)):
                continue
            return True
        if name.value in seen:
            continue
        seen.add(name.value)
        made = source.assigned(name.value, within=source.scope(value))
        if any(_is_array(source, one, seen) for one in made):
            return True
    return False


def _has_fraction(source: Source, value: cst.BaseExpression) -> bool:
    """Whether numbers with a fraction are written in the value, such as 0.5, 1 / 36 or the name of one."""
    parts = source.nodes(cst.Float, cst.BinaryOperation, cst.Name, within=value)
    return any(_number(source, part) is float for part in parts)


def _number(source: Source, node: cst.BaseExpression, depth: int = 4) -> type[int] | type[float] | None:
    """The type of a number of Python's that is computed from literals; None of anything else."""
    if isinstance(node, cst.Integer):
        return int
    if isinstance(node, cst.Float):
        return float
    if isinstance(node, cst.UnaryOperation):
        return _number(source, node.expression, depth)
    if isinstance(node, cst.BinaryOperation):
        both = {_number(source, side, depth) for side in (node.left, node.right)}
        if None in both:
            return None
        return float if float in both or isinstance(node.operator, cst.Divide) else int
    if isinstance(node, cst.Name) and depth:
        scopes = (source.scope(node), source.module)
        given = next((found for one in scopes if (found := source.values(node.value, one))), [])
        types = {_number(source, one, depth - 1) for one in given}
        return types.pop() if len(types) == 1 else None
    return None


def _is_cast(source: Source, call: cst.Call) -> bool:
    """Whether a method after the call, be it not the next one, gives the numbers another type."""
    node: cst.CSTNode = call
    while isinstance(above := source.parent(node), cst.Attribute):
        outer = source.parent(above)
        if above.attr.value in ("double", "float", "long", "int", "half", "bfloat16", "bool"):
            return True
        if not isinstance(outer, cst.Call):
            return False
        if above.attr.value in ("to", "type") and any(_is_type(source, arg) for arg in outer.args):
            return True
        node = outer
    return False


def _is_type(source: Source, arg: cst.Arg) -> bool:
    if arg.keyword is not None and arg.keyword.value == "dtype":
        return True
    return source.code(arg.value).endswith(
        ("dtype", "float64", "double", "float32", "float16", "half", "bfloat16", "long", "int64",
         "get_default_dtype()")
    )  # fmt: skip


def in_float32(
    found: Iterable[tuple[Source | None, list[cst.BaseExpression]]], setting: Edits | None = None
) -> Fix:
    """The edit that makes float32 numbers in each of these files, and by ``setting``. Raises Refused."""
    parts = [setting] if setting is not None else []
    for source, nodes in found:
        if source is None:
            raise Refused("the line that makes the tensors float64 was not found")
        edits = setting if setting is not None and setting.source is source else Edits(source)
        _cast(source, nodes, edits)
        parts.append(edits)
    return parts[0].fix("Compute in float32", "unsafe", *parts)


def _cast(source: Source, nodes: list[cst.BaseExpression], edits: Edits) -> None:
    """Have each of the nodes make float32 numbers."""
    for node in nodes:
        if source.is_named(node, *MAKERS):
            name = "torch.as_tensor" if source.is_named(node, "torch.from_numpy") else source.name(node)
            maker, dtype = edits.add_import(name, "import torch"), _type_of(source, edits, node, "array")
            edits.replace(node, f"lambda array: {maker}(array, dtype={dtype})")
        elif isinstance(node, cst.Attribute):
            edits.replace(node.attr, "float32")
        elif isinstance(node, cst.Name):
            edits.replace(node, edits.add_import("torch.float32", "import torch"))
        elif _is_double(node) and isinstance(node, cst.Call):
            edits.replace(cst.ensure_type(node.func, cst.Attribute).attr, "float")
        elif isinstance(node, cst.Call):
            view = source.is_named(node.func, "torch.from_numpy")
            array = source.code(_whole(node.args[0].value))
            if view and not _has_others(source, node):  # only of float64
                edits.replace(node, f"{source.code(node)}.float()")
                continue
            if view:
                edits.replace(node.func, edits.add_import("torch.as_tensor", "import torch"))
            edits.set_argument(node, "dtype", _type_of(source, edits, node, array))


def _has_others(source: Source, call: cst.Call) -> bool:
    """Whether some of the arrays have other numbers than those of float64, such as labels."""
    _, arrays = _made_by(source, call)
    return any(_is_other_made(source, one) for one in arrays or ())


def _type_of(source: Source, edits: Edits, node: cst.BaseExpression, array: str) -> str:
    """The type to make tensors with: of arrays that have other numbers, their own."""
    call = node if isinstance(node, cst.Call) else source.enclosing(node, cst.Call)
    single = edits.add_import("torch.float32", "import torch")
    if call is not None and _has_others(source, call):
        return f'{single} if {array}.dtype == "float64" else None'
    return single


def values_of(source: Source, value: cst.BaseExpression, depth: int = _DEPTH) -> list[cst.BaseExpression]:
    """The expressions that ``value`` may stand for: the elements of what a loop goes over, the arguments of
    all calls in the file; ``value`` itself where nothing is followed."""
    found: list[cst.BaseExpression] | None = None
    if isinstance(value, (cst.Tuple, cst.List)):
        found = [one.value for one in value.elements]
    elif isinstance(value, cst.Name):
        found = _bound(source, value)
        made = source.assigned(value.value, within=source.scope(value))
        if found is None and len(made) == 1 and isinstance(made[0], (cst.Tuple, cst.List)):
            found = [made[0]]
    if not found or not depth:
        return [value]
    return [inner for one in found for inner in values_of(source, one, depth - 1)]


def _bound(source: Source, name: cst.Name) -> list[cst.BaseExpression] | None:
    """What binds the name, innermost first; None for an assignment, or where that is not known."""
    inner: cst.CSTNode = name
    for outer in source.ancestors(name):
        turns: list[cst.For | cst.CompFor] = []
        if isinstance(outer, _COMPREHENSIONS):
            turns = [*descend(outer.for_in, cst.CompFor)]
        elif isinstance(outer, cst.For) and inner is outer.body:
            turns = [outer]
        for turn in turns:
            targets = source.nodes(cst.Name, within=turn.target)
            if any(one.value == name.value for one in targets) and not source.inside(name, turn.iter):
                pairs = taken(turn.target, turn.iter)
                return next(([over] for part, over in pairs if source.code(part) == name.value), None)
        if isinstance(outer, cst.FunctionDef):
            assigned = source.assigned(name.value, within=outer)
            return None if assigned else _passed(source, outer, name.value)
        inner = outer
    return None


def _passed(source: Source, function: cst.FunctionDef, name: str) -> list[cst.BaseExpression] | None:
    """What the calls in the file pass for a parameter, also one such as ``*arrays``."""
    params, order = function.params, parameters(function)
    calls = source.calls_of(called_as(source, function))
    if isinstance(params.star_arg, cst.Param) and params.star_arg.name.value == name:
        return [arg.value for call in calls for arg in call.args[len(order) :] if arg.keyword is None]
    if name not in (*order, *(one.name.value for one in params.kwonly_params)):
        return None
    position = order.index(name) if name in order else None
    given = [source.argument(call, name, position) for call in calls]
    return [arg.value for arg in given if arg is not None]
