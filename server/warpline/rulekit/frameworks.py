"""Arguments of a framework's construction, written where the user constructs it."""

from __future__ import annotations

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import NOT_LITERAL
from warpline.wire.frameworks import Construction, Setting
from warpline.wire.run import Site
from warpline.wire.sites import Framework, facts_of


def written(one: Construction) -> tuple[str, ...]:
    """How the call is written in the user's text."""
    return one.called or (one.name,)


def setting_fix(
    context: Context, site: Site, one: Construction, setting: Setting, workers: int | None = None
) -> Fix:
    """Pass the setting's arguments at ``site``, where ``one`` was constructed. Raises Refused."""
    made = facts_of(Framework, site)
    parameters, values = set(made.parameters or ()), made.values or {}
    if setting.needs and (setting.needs == "bf16") != context.device.bf16:
        raise Refused("the device has bfloat16" if context.device.bf16 else "the device has no bfloat16")
    for name in setting.unless:
        if values.get(name) not in (None, False, "no"):
            raise Refused(f"`{name}` is set there")
    source = context.source(site.file)
    call = source.call(site.line, *written(one)) if source is not None else None
    if source is None or call is None:
        raise Refused(f"the call of `{one.name}` was not found on that line")
    edits = Edits(source)
    changed = False
    for name, code in setting.arguments.items():
        if name not in parameters:
            if name in setting.where_known:
                continue
            raise Refused(f"the installed version's `{one.name}` has no `{name}`")
        if "{workers}" in code and workers is None:
            raise Refused("the number of workers that would be enough is unknown")
        wanted = code.format(workers=workers)
        present = source.argument(call, name)
        if present is None and name in values and one.method == "__init__":
            raise Refused(f"`{name}` is passed by position or computed elsewhere")
        if present is not None:
            if source.code(present.value) == wanted:
                continue
            if source.literal(present.value) is NOT_LITERAL:
                raise Refused(f"`{name}` comes from `{source.code(present.value)}`: change it there")
        edits.set_argument(call, name, wanted)
        changed = True
    if not changed:
        raise Refused("the setting is already there")
    return edits.fix(setting.title.format(workers=workers), "unsafe")
