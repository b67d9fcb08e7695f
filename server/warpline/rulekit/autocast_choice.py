"""The script's own choice between full precision and autocast, made by a value: the word that picks a context
from a table, the flag of ``nullcontext() if … else autocast(…)``, or the type that autocast is given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.autocasting import Region
from warpline.rulekit.context import Context
from warpline.rulekit.double_settings import given_elsewhere
from warpline.rulekit.flags import conditions, flags_of, parts_of, turned
from warpline.rulekit.options import choices, options_passed
from warpline.rulekit.origins import (
    Origin,
    assigned_values,
    executes_text,
    is_literal,
    only_value,
    origin,
    overridden,
    table_read,
)
from warpline.rulekit.training import TrainingStep
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source

_NOTHING, _AUTOCAST = "nullcontext", "autocast"
_OLD = "torch.cuda.amp.autocast"  # takes ``enabled`` first
_FULL, _TYPES = "float32", ("float32", "float16", "bfloat16", "half", "float", "float64", "double")
_DEPTH = 6  # names, tables and functions that are followed one after the other: chosen, so that a circle ends


@dataclass(frozen=True, slots=True)
class AutocastChoice:
    """``origin``: the value that chooses full precision. ``code``: what chooses autocast; None: a flag's
    other value. ``passed``: the word of the command line that gives the value instead."""

    origin: Origin
    code: str | None
    passed: str | None

    @property
    def place(self) -> tuple[str, int]:
        """The file and the line of the value."""
        return self.origin.place

    @property
    def said(self) -> str:
        """For the end of a message: that the command line chooses; "" where it does not."""
        return f" The command line passes `{self.passed}`, which chooses no autocast." if self.passed else ""

    def fix(self, title: str) -> Fix:
        """The fix that chooses autocast. Raises Refused where the command line chooses."""
        if self.passed is not None:
            raise Refused(f"the command line passes `{self.passed}`: give it {self.code} there")
        if self.code is None:
            return turned(self.origin).fix(title, "unsafe")
        return Edits(self.origin.source).replace(self.origin.node, self.code).fix(title, "unsafe")


def autocast_choice(context: Context, step: TrainingStep, where: Region) -> AutocastChoice | None:
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


def _of_context(
    context: Context, source: Source, node: cst.BaseExpression, left: int
) -> AutocastChoice | None:
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


def _of_values(context: Context, values: list[tuple[Source, cst.BaseExpression]]) -> AutocastChoice | None:
    """What decides between the contexts that the branches of an ``if`` give a name."""
    kinds = [_kind(context, *one) for one in values]
    on = [one for one, kind in zip(values, kinds, strict=True) if kind and _works(context, kind)]
    if len(on) != 1 or len(on) + kinds.count("") != len(values):
        return None
    found = (_of_test(context, on[0][0], test, holds) for test, holds in conditions(*on[0]))
    return next((one for one in found if one is not None), None)


def _of_call(context: Context, source: Source, call: cst.Call, left: int) -> AutocastChoice | None:
    """Why this autocast has no effect: its dtype, or the value of ``enabled``."""
    given = _type_given(source, call)
    enabled = source.argument(call, "enabled", 0 if source.is_named(call.func, _OLD) else None)
    if enabled is not None and source.literal(enabled.value) is False:
        return None
    found = type_choice(context, source, given, left - 1) if given is not None else None
    kind = _kind(context, source, given) if given is not None else "float16"
    if found is not None or enabled is None or not _works(context, kind or ""):
        return found
    return _of_test(context, source, enabled.value, True)


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


def _of_branches(context: Context, source: Source, node: cst.IfExp) -> AutocastChoice | None:
    """The value that decides between two contexts, or two types."""
    kinds = _kind(context, source, node.body), _kind(context, source, node.orelse)
    wanted = bool(kinds[0])
    if None in kinds or wanted == bool(kinds[1]) or not _works(context, kinds[0] or kinds[1] or ""):
        return None
    return _of_test(context, source, node.test, wanted)


def _of_test(
    context: Context, source: Source, test: cst.BaseExpression, holds: bool
) -> AutocastChoice | None:
    """The value for which ``test`` is not ``holds``: a flag, or what is compared with a word."""
    if (flag := _flag(context, source, test, holds)) is not None:
        return flag
    for where, part, needed in parts_of(context, source, test, holds):
        if not isinstance(part, cst.Comparison) or len(part.comparisons) != 1:
            continue
        found, (compared,) = origin(context, where, part.left), part.comparisons
        if not found.editable or not is_literal(where, compared.comparator):
            continue
        word, now = where.literal(compared.comparator), found.source.literal(found.node)
        if isinstance(compared.operator, cst.Equal if needed else cst.NotEqual) and word != now:
            return _chosen(context, found, where.code(compared.comparator))
        if isinstance(compared.operator, cst.NotEqual if needed else cst.Equal) and word == now:
            others = [one for one in choices(found.source, found.node) if found.source.literal(one) != now]
            return _chosen(context, found, found.source.code(others[0])) if len(others) == 1 else None
    return None


def _of_table(
    context: Context, source: Source, where: Source, table: cst.Dict, key: cst.BaseExpression
) -> AutocastChoice | None:
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
        return _flag(context, source, key, literals[on[0]])
    found = origin(context, source, key)
    passed, given = _passed(context, source, key), only_value(context, source, key)
    if passed is not None and given is not None:
        return AutocastChoice(Origin("constant", *given, found.words), on[0], passed)
    if found.kind == "unknown":
        return None
    now = found.source.literal(found.node)
    return _chosen(context, found, on[0]) if now in off or overridden(context, found) is not None else None


def _passed(context: Context, source: Source, name: cst.BaseExpression) -> str | None:
    """The word of the command line, as ``--dtype=float32``, that gives a name of the script another value,
    where it executes code for that."""
    if not isinstance(name, cst.Name) or not executes_text(source):
        return None
    return next((word for word in options_passed(context) if word == f"--{name.value}"), None)


def _flag(context: Context, source: Source, test: cst.BaseExpression, holds: bool) -> AutocastChoice | None:
    """A flag for which ``test`` is not ``holds``. None where something else may set it."""
    for switch in flags_of(context, source, test, holds):
        if not switch.on and not given_elsewhere(context, switch.flag):
            return AutocastChoice(switch.flag, None, None)
    return None


def _chosen(context: Context, found: Origin, code: str) -> AutocastChoice | None:
    """The choice that is made by writing ``code`` there. None where something else may give the value."""
    if not found.editable:
        return None
    passed = overridden(context, found)
    if passed is None and given_elsewhere(context, found):
        return None
    return AutocastChoice(found, code, passed)


def type_choice(
    context: Context, source: Source, node: cst.BaseExpression, left: int = _DEPTH
) -> AutocastChoice | None:
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
        return _chosen(context, found, '"bfloat16"') if full and _works(context, "bfloat16") else None
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
