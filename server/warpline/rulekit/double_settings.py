"""The setting that makes numbers float64, such as ``precision: type = np.float64`` of a dataclass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from warpline.rulekit.context import Context
from warpline.rulekit.doubles import MAKERS
from warpline.rulekit.origins import (
    Origin,
    called_as,
    field_names,
    is_self,
    origin,
    overridden,
    table_read,
    unpacked_origin,
)
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import NOT_LITERAL, Source, is_method

_WORDS = ("float64", "double")
#: Other types, as NumPy, torch and texts name them.
_OTHERS = (
    "float32", "float16", "single", "half", "bfloat16", "int8", "int16", "int32", "int64", "long", "int",
    "uint8", "uint16", "bool", "bool_",
)  # fmt: skip
#: Functions of NumPy's whose arrays have the type that they are given, and where that stands among their
#: arguments.
_CASTS = {"numpy.array": 1, "numpy.asarray": 1, "numpy.ascontiguousarray": 1}
_DEPTH = 4  # names of names, and tables of them: chosen, so that a circle ends


@dataclass(frozen=True, slots=True)
class DoubleSetting:
    """``origin``: where float64 is written. ``settled``: calls that make tensors of arrays which have their
    type from there, or another one from another setting."""

    origin: Origin
    settled: tuple[cst.Call, ...]

    def edits(self) -> Edits:
        """The edit that writes float32 there. Raises Refused where it is not known."""
        if self.origin.kind == "unknown":
            raise Refused(f"what {self.origin.words} gets was not found: give it `torch.float32`")
        source, node = self.origin.source, self.origin.node
        edits = Edits(source)
        if isinstance(node, cst.Attribute):
            return edits.replace(node.attr, "float32")
        if isinstance(node, cst.Name):
            module = source.name(node).partition(".")[0]
            return edits.replace(node, edits.add_import(f"{module}.float32", f"import {module}"))
        quote = source.code(node)[-1]
        return edits.replace(node, f"{quote}float32{quote}")


def double_setting(context: Context, source: Source) -> tuple[DoubleSetting | None, list[cst.Call]]:
    """The only setting by which tensors of a file are float64, and calls that make tensors of arrays to which
    a setting gives another type. None where there is none, or where something else may give it another value.
    """
    found: dict[tuple[str, int], Origin] = {}
    settled: list[cst.Call] = []
    others: list[cst.Call] = []
    for call, where, node in _types(context, source):
        one = followed(context, where, node)
        of_torch = source.name(call.func).startswith("torch.") or is_method(call, "to", "type")
        tensors = [call] if of_torch else _made_of(source, call)
        if one is None or not tensors:
            continue
        double = _type(one.source, one.node) in _WORDS
        if double:
            found[one.place] = one
        (settled if double else others).extend(
            made for made in tensors if source.is_named(made.func, *MAKERS)
        )
    (only,) = found.values() if len(found) == 1 else (None,)
    known = only is not None and not given_elsewhere(context, only)
    return DoubleSetting(only, (*settled, *others)) if only is not None and known else None, others


def _types(context: Context, source: Source) -> Iterator[tuple[cst.Call, Source, cst.BaseExpression]]:
    """Calls that get a type from a variable, also in a mapping that they unpack (``**options``)."""
    for call in source.nodes(cst.Call):
        given = source.argument(call, "dtype", _CASTS.get(source.name(call.func)))
        if given is None and (
            is_method(call, "astype", "to", "type") or source.is_named(call.func, "torch.set_default_dtype")
        ):
            given = call.args[0] if call.args and call.args[0].keyword is None else None
        if given is not None and not _type(source, given.value):
            yield call, source, given.value
        for value in source.unpacked(call) if given is None else ():
            entry = unpacked_origin(context, source, value, "dtype", ends=lambda *_: True)
            if entry is not None and not _type(entry.source, entry.node):
                yield call, entry.source, entry.node


def _made_of(source: Source, cast: cst.Call) -> list[cst.Call]:
    """Tensors that are made of the array that ``cast`` gives, as it is or under its name."""
    assign = source.parent(cast)
    name = source.code(assign.targets[0].target) if isinstance(assign, cst.Assign) else None
    scope = source.enclosing(cast, cst.FunctionDef)
    return [
        call
        for call in source.calls_of(*MAKERS)
        if call.args
        and (
            call.args[0].value is cast
            or (source.code(call.args[0].value) == name and source.enclosing(call, cst.FunctionDef) is scope)
        )
    ]


def _type(source: Source, node: cst.BaseExpression) -> str:
    """The name of the type that is written there; "" for something else."""
    module, _, name = source.name(node).rpartition(".")
    word = name if module in ("numpy", "torch") else source.literal(node)
    return word if word in (*_WORDS, *_OTHERS) else ""


def followed(context: Context, source: Source, node: cst.BaseExpression) -> Origin | None:
    """Where the type that ``node`` stands for is written; None if that is not known."""

    def ends(where: Source, one: cst.BaseExpression) -> bool:
        return bool(_type(where, one)) or _inner(context, where, one) is not None

    for _ in range(_DEPTH):
        found = origin(context, source, node, ends=ends)
        if found.kind == "unknown":
            return None
        inner = _inner(context, found.source, found.node)
        if inner is None:
            return found if _type(found.source, found.node) else None
        source, node = found.source, inner
    return None


def _inner(context: Context, source: Source, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """What names the type: ``x`` of ``getattr(torch, x)``, ``np.dtype(x)``, and of ``TYPES[x]`` with a table
    that has both words."""
    if isinstance(node, cst.Call) and len(node.args) == 2 and source.is_named(node.func, "getattr"):
        return node.args[1].value if source.name(node.args[0].value) in ("torch", "numpy") else None
    if isinstance(node, cst.Call) and source.name(node.func) == "numpy.dtype" and node.args:
        return node.args[0].value
    read = table_read(context, source, node) if isinstance(node, cst.Subscript) else None
    if read is None:
        return None
    where, table, key = read
    types = {
        where.literal(one.key): _type(where, one.value)
        for one in table.elements
        if isinstance(one, cst.DictElement)
    }
    both = types.get("float32") == "float32" and any(types.get(word) in _WORDS for word in _WORDS)
    return key if both else None


def given_elsewhere(context: Context, found: Origin) -> bool:
    """Whether something else may give the setting another value."""
    source, node = found.source, found.node
    holder = source.parent(node)
    if isinstance(holder, cst.Param):
        function = source.enclosing(holder, cst.FunctionDef)
        return function is None or _passed(context, called_as(source, function), holder.name.value, None)
    if isinstance(holder, cst.DictElement):
        return _set_by_key(context, source.literal(holder.key))
    call = source.parent(holder) if isinstance(holder, cst.Arg) else None
    if isinstance(call, cst.Call) and source.is_named(call.func, "field", "Field"):
        holder = source.parent(call)
    if isinstance(holder, cst.Arg):
        if isinstance(call, cst.Call) and source.is_named(call.func, "dict", "SimpleNamespace", "Namespace"):
            return _set_by_key(context, holder.keyword.value if holder.keyword is not None else None)
        return overridden(context, found) is not None
    scope = source.enclosing(node, cst.FunctionDef, cst.ClassDef)
    target = holder.target if isinstance(holder, cst.AnnAssign) else None
    if isinstance(holder, cst.Assign):
        target = holder.targets[0].target
    if not isinstance(scope, cst.ClassDef) or target is None:
        return False
    fields, name = field_names(source, scope), source.code(target)
    position = fields.index(name) if name in fields else None
    return _passed(context, scope.name.value, name, position) or _set_outside(context, source, scope, name)


def _passed(context: Context, called: str, name: str, position: int | None) -> bool:
    """Whether a call may pass the argument itself: by its name, its place, or unpacked."""
    for source, call in context.calls(called, "replace", "_replace", "partial"):
        if not source.is_named(call.func, called):
            if any(arg.keyword is not None and arg.keyword.value == name for arg in call.args):
                return True
        elif any(arg.star for arg in call.args) or source.argument(call, name, position) is not None:
            return True
    return False


def _set_outside(context: Context, source: Source, owner: cst.ClassDef, name: str) -> bool:
    """Whether something sets an object's attribute of that name, other than an object of another class its
    own."""
    for where in context.sources():
        written: list[cst.AssignTarget | cst.AnnAssign | cst.AugAssign] = [*where.nodes(cst.AssignTarget)]
        written += [*where.nodes(cst.AnnAssign), *where.nodes(cst.AugAssign)]
        for target in (one.target for one in written):
            if isinstance(target, cst.Attribute) and target.attr.value == name:
                own = where is source and where.inside(target, owner)
                if own or not is_self(target.value):
                    return True
        given = [where.literal(call.args[1].value) for call in where.calls_of("setattr") if call.args[1:]]
        if any(one is NOT_LITERAL or one == name for one in given):
            return True
    return False


def _set_by_key(context: Context, key: object) -> bool:
    """Whether an entry of a mapping is written again: ``settings["dtype"] = …``, ``settings.update(…)``."""
    for source in context.sources():
        targets = [one.target for one in source.nodes(cst.AssignTarget)]
        parts = [one.slice[0].slice for one in targets if isinstance(one, cst.Subscript)]
        if any(isinstance(one, cst.Index) and source.literal(one.value) == key for one in parts):
            return True
        for call in source.nodes(cst.Call):
            for arg in call.args if is_method(call, "update") else ():
                named = arg.keyword is not None and arg.keyword.value != key
                if not named and (arg.star or not isinstance(arg.value, (cst.Integer, cst.Call))):
                    return True
    return False
