"""Arguments of a framework's construction, written where the user constructs it."""

from __future__ import annotations

from pathlib import Path

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.changing import Changes
from warpline.rulekit.context import Context
from warpline.rulekit.holders import argument
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import NOT_LITERAL, Source
from warpline.wire.frameworks import Construction, Setting
from warpline.wire.run import Site
from warpline.wire.sites import Framework, facts_of


def construction_call(context: Context, site: Site, one: Construction) -> tuple[Source, cst.Call] | None:
    """The call at ``site`` in the text, or of the parser that makes the object; None where neither is there:
    the framework makes that object itself, from another one."""
    source = context.source(site.file)
    if source is None:
        return None
    type_ = facts_of(Framework, site).type
    names = [*(one.called or (one.name,)), *([type_] if type_ else []), *one.parsers]
    call = source.call(site.line, *names)
    return (source, call) if call is not None else None


def applies(context: Context, site: Site, setting: Setting) -> bool:
    """Whether the conditions on values hold, without which the setting is not spoken of."""
    values = facts_of(Framework, site).values or {}
    if any(values.get(name) not in wanted for name, wanted in setting.only):
        return False
    return not setting.inference or not any(cost.backward_ms for cost in context.profile.lines)


def setting_fix(
    context: Context, site: Site, one: Construction, setting: Setting, workers: int | None = None
) -> Fix:
    """Make the setting at ``site``, where ``one`` was constructed. Raises Refused."""
    values = facts_of(Framework, site).values or {}
    if setting.needs and (setting.needs == "bf16") != context.device.bf16:
        raise Refused("the device has bfloat16" if context.device.bf16 else "the device has no bfloat16")
    for name in setting.unless:
        if values.get(name) not in (None, False, "no"):
            raise Refused(f"`{name}` is set there")
    found = construction_call(context, site, one)
    if found is None:
        raise Refused(f"the call of `{one.name}` was not found on that line")
    source, call = found
    changes = Changes(context)
    for name in setting.arguments:
        _set(context, site, (one, setting), found, changes, name, workers)
    if setting.lines:
        _below(site, setting, source, call, changes.of(source))
    if not changes.edits:
        raise Refused("the setting is already there")
    first, *rest = changes.edits.values()
    return first.fix(setting.title.format(workers=workers), "unsafe", *rest)


def _set(
    context: Context,
    site: Site,
    which: tuple[Construction, Setting],
    found: tuple[Source, cst.Call],
    changes: Changes,
    name: str,
    workers: int | None,
) -> None:
    """One argument."""
    one, setting = which
    source, call = found
    made = facts_of(Framework, site)
    values = made.values or {}
    if name not in (made.parameters or ()):
        if name in setting.where_known:
            return
        raise Refused(f"the installed version's `{one.name}` has no `{name}`")
    code = setting.arguments[name]
    if "{workers}" in code and workers is None:
        raise Refused("the number of workers that would be enough is unknown")
    twice = 2 * values[name] if type(values.get(name)) is int else None
    if "{twice}" in code and twice is None:
        raise Refused(f"the value of `{name}` is unknown")
    if source.is_named(call.func, *one.parsers):
        _parsed(context, source, call, changes, name, code.format(workers=workers, twice=twice))
        return
    half = changes.of(source).add_import("torch.bfloat16", "import torch") if "{bfloat16}" in code else ""
    wanted = code.format(workers=workers, twice=twice, bfloat16=half)
    recorded = argument(site, name)
    present = source.argument(call, name)
    if present is not None:
        if source.code(present.value) == wanted:
            return
        if source.literal(present.value) is not NOT_LITERAL or "{bfloat16}" in code:
            changes.of(source).replace(present.value, wanted)
            return
    if recorded is not None and (recorded.passed or source.unpacked(call)):
        changes.recorded(site, source, call, name, wanted)
    elif present is not None:
        raise Refused(f"`{name}` comes from `{source.code(present.value)}`: change it there")
    elif name in values and one.method == "__init__" and recorded is None:
        raise Refused(f"`{name}` is passed by position or computed elsewhere")
    else:
        changes.absent(source, call, name, wanted)


def _parsed(context: Context, source: Source, call: cst.Call, changes: Changes, name: str, code: str) -> None:
    """The object is made by a parser: from the command line its default is set, a dict gets an entry."""
    assert isinstance(call.func, cst.Attribute)
    method = call.func.attr.value
    if method == "parse_dict" and call.args and isinstance(call.args[0].value, cst.Dict):
        changes.of(source).set_entry(call.args[0].value, name, code)
        return
    if method != "parse_args_into_dataclasses":
        raise Refused(f"set `{name}` to {code} in what `{method}` reads")
    options = {f"--{name}", f"--{name.replace('_', '-')}", f"--no_{name}", f"--no-{name.replace('_', '-')}"}
    for word in context.profile.manifest.argv:
        if word.split("=")[0] in options:
            raise Refused(f"the command line passes `{word.split('=')[0]}`: change it there")
    statement = source.statement(call)
    if statement is None or not isinstance(call.func.value, cst.Name):
        raise Refused(f"set `{name}` to {code} on the command line")
    changes.of(source).insert_before(statement, f"{call.func.value.value}.set_defaults({name}={code})")


def _below(site: Site, setting: Setting, source: Source, call: cst.Call, edits: Edits) -> None:
    """Statements below the one that makes the object."""
    statement = source.statement(call)
    assigned = next((one for one in source.ancestors(call) if isinstance(one, cst.Assign)), None)
    target = assigned.targets[0].target if assigned is not None and len(assigned.targets) == 1 else None
    if statement is None or not isinstance(target, (cst.Name, cst.Attribute)):
        raise Refused(f"what `{Path(site.file).name}:{site.line}` makes has no name there")
    parts = facts_of(Framework, site).parts or {}
    part = next((name for name, methods in parts.items() if setting.call in methods), None)
    if part is None:
        raise Refused(f"the installed version's models have no `{setting.call}`")
    layout = "{channels_last}"
    for line in setting.lines:
        name = edits.add_import("torch.channels_last", "import torch") if layout in line else ""
        written = line.format(made=source.code(target), part=part, channels_last=name)
        if written in source.text:
            raise Refused("the script already does this")
        edits.insert_after(statement, written)
