"""The script's own choice between full precision and autocast, made by a value: the word that picks a context
from a table, the flag of ``nullcontext() if … else autocast(…)``, or the type that autocast is given."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from warpline.rulekit.autocasting import Region
from warpline.rulekit.choice import Choice, chosen, flag_choice, of_test
from warpline.rulekit.context import Context
from warpline.rulekit.flags import conditions
from warpline.rulekit.options import options_passed
from warpline.rulekit.origins import (
    Origin,
    assigned_values,
    executes_text,
    only_value,
    origin,
    overridden,
    table_read,
)
from warpline.rulekit.training import TrainingStep
from warpline.syntax.source import Source

_NOTHING, _AUTOCAST = "nullcontext", "autocast"
_OLD = "torch.cuda.amp.autocast"  # takes ``enabled`` first
_FULL, _TYPES = "float32", ("float32", "float16", "bfloat16", "half", "float", "float64", "double")
_DEPTH = 6  # names, tables and functions that are followed one after the other: chosen, so that a circle ends


def autocast_choice(context: Context, step: TrainingStep, where: Region) -> Choice | None:
    """The value by which a ``with`` around the step's forward pass is no autocast. None where there is none,
    or where it is not known what sets it."""
    found = (
        _of_context(context, source, item.item, _DEPTH)
        for source, node in ((where.source, where.first), (step.source, step.backward))
        for around in _withs(source, node)
        for item in around.items
    )
    return next((one for one in found if one is not None), None)


def _withs(source: Source, node: cst.CSTNode) -> Iterator[cst.With]:
    """The ``with`` statements around ``node``, and itself."""
    yield from (one for one in (node, *source.ancestors(node)) if isinstance(one, cst.With))


def _of_context(context: Context, source: Source, node: cst.BaseExpression, left: int) -> Choice | None:
    """What chooses the context ``node``, or the one that it makes."""
    if not left:
        return None
    if isinstance(node, cst.Lambda):
        return _of_context(context, source, node.body, left - 1)
    if isinstance(node, cst.IfExp):
        found = _of_branches(context, source, node)
        if found is None and context.profile.facts.flags.autocast:  # it ran, in float32
            branches = (_of_context(context, source, one, left - 1) for one in (node.body, node.orelse))
            found = next((one for one in branches if one is not None), None)
        return found
    if (entry := table_read(context, source, node)) is not None:
        return _of_table(context, source, *entry)
    if isinstance(node, (cst.Name, cst.Attribute)):
        given = assigned_values(context, source, node)
        return _of_context(context, *given[0], left - 1) if len(given) == 1 else _of_values(context, given)
    if not isinstance(node, cst.Call):
        return None
    if _makes(source, node, _AUTOCAST):
        return _of_call(context, source, node, left)
    back = source.returned(node)
    return _of_context(context, source, back if back is not None else node.func, left - 1)


def _of_values(context: Context, values: list[tuple[Source, cst.BaseExpression]]) -> Choice | None:
    """What decides between the contexts that the branches of an ``if`` give a name."""
    kinds = [_kind(context, *one) for one in values]
    on = [one for one, kind in zip(values, kinds, strict=True) if kind and _works(context, kind)]
    if len(on) != 1 or len(on) + kinds.count("") != len(values):
        return None
    found = (of_test(context, on[0][0], test, holds) for test, holds in conditions(*on[0]))
    return next((one for one in found if one is not None), None)


def _of_call(context: Context, source: Source, call: cst.Call, left: int) -> Choice | None:
    """Why this autocast has no effect: its dtype, or the value of ``enabled``."""
    given = _type_given(source, call)
    enabled = source.argument(call, "enabled", 0 if source.is_named(call.func, _OLD) else None)
    if enabled is not None and source.literal(enabled.value) is False:
        return None
    found = type_choice(context, source, given, left - 1) if given is not None else None
    kind = _kind(context, source, given) if given is not None else "float16"
    if found is not None or enabled is None or not _works(context, kind or ""):
        return found
    return of_test(context, source, enabled.value, True)


def _makes(source: Source, call: cst.Call, name: str) -> bool:
    """Whether a call makes the context ``name``, or is ``partial(name, …)``."""
    first = call.args[0].value if call.args else None
    return source.is_named(call.func, name) or (
        source.is_named(call.func, "partial") and source.is_named(first, name)
    )


def _type_given(source: Source, call: cst.Call) -> cst.BaseExpression | None:
    """The type that an autocast gets: after the device, and after autocast itself in ``partial``."""
    given = source.argument(call, "dtype", 1 if source.is_named(call.func, _AUTOCAST) else 2)
    return given.value if given is not None else None


def _of_branches(context: Context, source: Source, node: cst.IfExp) -> Choice | None:
    """The value that decides between two contexts, or two types."""
    kinds = _kind(context, source, node.body), _kind(context, source, node.orelse)
    wanted = bool(kinds[0])
    if None in kinds or wanted == bool(kinds[1]) or not _works(context, kinds[0] or kinds[1] or ""):
        return None
    return of_test(context, source, node.test, wanted)


def _of_table(
    context: Context, source: Source, where: Source, table: cst.Dict, key: cst.BaseExpression
) -> Choice | None:
    """The value that picks an entry of a table which has an entry for autocast, or a type of 16 bits."""
    elements = [one for one in table.elements if isinstance(one, cst.DictElement)]
    kinds = {where.code(one.key): _kind(context, where, one.value) for one in elements}
    literals = {where.code(one.key): where.literal(one.key) for one in elements}
    on = [code for code, kind in kinds.items() if kind and _works(context, kind)]
    on.sort(key=lambda code: kinds[code] != "bfloat16")
    off = [literals[code] for code, kind in kinds.items() if kind == ""]
    if not on or not off:
        return None
    if isinstance(literals[on[0]], bool):
        return flag_choice(context, source, key, literals[on[0]])
    found = origin(context, source, key)
    passed, given = _passed(context, source, key), only_value(context, source, key)
    if passed is not None and given is not None:
        return Choice(Origin("constant", *given, found.words), on[0], passed)
    if found.kind == "unknown":
        return None
    now = found.source.literal(found.node)
    return chosen(context, found, on[0]) if now in off or overridden(context, found) is not None else None


def _passed(context: Context, source: Source, name: cst.BaseExpression) -> str | None:
    """The word of the command line, as ``--dtype=float32``, that gives a name of the script another value,
    where it executes code for that."""
    if not isinstance(name, cst.Name) or not executes_text(source):
        return None
    return next((word for word in options_passed(context) if word == f"--{name.value}"), None)


def type_choice(
    context: Context, source: Source, node: cst.BaseExpression, left: int = _DEPTH
) -> Choice | None:
    """The value for which the type ``node`` is float32: autocast does nothing with that."""
    if not left:
        return None
    if isinstance(node, cst.IfExp):
        return _of_branches(context, source, node)
    if (entry := table_read(context, source, node)) is not None:
        return _of_table(context, source, *entry)
    if isinstance(node, cst.Call) and source.is_named(node.func, "getattr") and len(node.args) == 2:
        found = origin(context, source, node.args[1].value)
        full = found.kind != "unknown" and found.source.literal(found.node) == _FULL
        return chosen(context, found, '"bfloat16"') if full and _works(context, "bfloat16") else None
    given = only_value(context, source, node) if isinstance(node, cst.Name) else None
    return type_choice(context, *given, left - 1) if given is not None else None


def _kind(context: Context, source: Source, node: cst.BaseExpression) -> str | None:
    """The type of 16 bits that a context, or a type itself, has products run in; "" where they stay in
    float32, None for something else."""
    module, _, name = source.name(node).rpartition(".")
    if module == "torch" and name in _TYPES:
        return {"half": "float16", "bfloat16": "bfloat16", "float16": "float16"}.get(name, "")
    inner = node.body if isinstance(node, cst.Lambda) else node
    named = source.nodes(cst.Name, cst.Attribute, within=inner)
    if any(source.is_named(one, _AUTOCAST) for one in named):
        calls = [one for one in source.nodes(cst.Call, within=inner) if _makes(source, one, _AUTOCAST)]
        given = [source.argument(one, "enabled") for one in calls]
        enabled = [one.value for one in given if one is not None]
        if any(source.literal(one) is not True for one in enabled):
            return "" if all(source.literal(one) is False for one in enabled) else None
        types = [type_ for one in calls if (type_ := _type_given(source, one)) is not None]
        if not types:
            return "float16"  # as torch has it on a GPU
        only = types[0]
        return _kind(context, source, only) if source.name(only).startswith("torch.") else None
    return "" if any(source.is_named(one, _NOTHING) for one in named) else None


def _works(context: Context, kind: str) -> bool:
    """Whether the device has the type, and the script scales gradients where the type needs that."""
    if kind == "bfloat16":
        return bool(context.device.bf16)
    return any("GradScaler" in source.text for source in context.sources())
