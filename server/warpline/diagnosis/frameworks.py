"""Moves findings inside a framework to the framework's setting in the user's file.

A rule sees the time at `trainer.train()`. What to change is an argument of `TrainingArguments(...)`: which
one is in :mod:`warpline.wire.frameworks`, whether the installed version has it was recorded with the call.
"""

from __future__ import annotations

from dataclasses import replace

from warpline.model.change import MatmulRate, OverlapCopies, Together
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Refused
from warpline.rulekit.autocasting import lowering
from warpline.rulekit.copies import host_to_device
from warpline.rulekit.framework_settings import edited_at, setting_fix
from warpline.rulekit.frameworks import applies, construction_call, is_set, runs_in
from warpline.rulekit.rows_in_order import gains_by_order
from warpline.rulekit.saving import without
from warpline.wire.frameworks import Construction, Setting, constructions
from warpline.wire.run import Site
from warpline.wire.sites import Framework, facts_of

EDIT_LINE = "line of the edit"  # the evidence for "The edit is at FILE:LINE."


def at_setting(context: Context, rule: str, draft: Draft) -> Draft:
    """``draft`` as it is; or at the framework's construction, with the settings that answer it as its fixes.

    Nothing changes where no framework was constructed, or where the rule has found an edit in the user's own
    text at another line than the hot one, unless the setting is better than that. An argument that the
    installed version does not have, or that is passed already, is not offered.
    """
    own = bool(draft.fixes) and draft.place != draft.cause.place
    for one in constructions():
        every = [each for each in one.settings if each.rule == rule and (each.first or not own)]
        if not every or not runs_in(context, draft.cause.place, one):
            continue
        for site in context.sites("framework"):
            if facts_of(Framework, site).construction != one.key:
                continue
            if any(is_set(site, each) for each in every):
                continue  # what is found is there all the same
            settings = [each for each in every if applies(context, site, each)]
            if any(each.by_length for each in settings) and not gains_by_order(context, draft):
                continue
            moved = _moved(context, draft, site, one, settings) if settings else None
            if moved is not None:
                return moved
    return draft


def _moved(
    context: Context, draft: Draft, site: Site, one: Construction, settings: list[Setting]
) -> Draft | None:
    """The draft with the framework's settings as its fixes. None where the call is not in the text, because
    the framework makes that object itself."""
    if construction_call(context, site, one) is None:
        return None
    workers = getattr(draft.change, "workers", None)
    made: list[Fix] = []
    reasons: list[str] = []
    for setting in settings:
        try:
            if isinstance(draft.change, MatmulRate) and setting.autocasts:
                lowering(context, None).check()
            fix = setting_fix(context, site, one, setting, workers)
            unreached = context.reached.refusal(fix, context.source)
            if unreached is not None:
                raise Refused(unreached)
            if fix.title not in {other.title for other in made}:  # else another version's name of the same
                made.append(fix)
        except Refused as reason:
            reasons.append(str(reason))
    # Of the rule's own fixes the last, of another line, stays; the setting replaces the first one.
    others = draft.fixes[1:] if any(setting.first for setting in settings) else draft.fixes
    fixes = (*made, *others) if len(made) < 2 else tuple(made)
    if not made and draft.fixes:
        return None
    message, evidence = draft.message.partition(" No edit is offered:")[0], draft.evidence
    if made:  # what the rule said of its own edit
        message = message.partition(" The edit is at ")[0]
        evidence = tuple(each for each in evidence if each.metric != EDIT_LINE)
    if not fixes and reasons:
        message += f" No edit is offered: {reasons[0]}."
    elif made and one.method != "generate" and (name := next(iter(settings[0].arguments), "")):
        message += f" The setting is `{name}` of `{facts_of(Framework, site).type or one.name}` here."
    file, line = edited_at(context, site, one, settings, made[0] if made else None)
    moved = replace(draft, file=file, line=line, message=message, evidence=evidence, fixes=fixes)
    if made and isinstance(draft.change, OverlapCopies) and any(each.instead for each in settings):
        costs = (context.cost(*place) for place in draft.change.places)
        gone = (without(context, cost, host_to_device(cost, pageable=True)) for cost in costs if cost)
        moved = replace(moved, change=Together(tuple(gone)))
    if made and isinstance(draft.change, MatmulRate):
        return _at_precision(moved, draft.change, [one for one in settings if one.title == made[0].title])
    return moved


def _at_precision(moved: Draft, change: MatmulRate, first: list[Setting]) -> Draft:
    """``moved`` with what its fixes change; ``first``: the settings that the first one makes."""
    if any(setting.inference or setting.frozen for setting in first):
        moved = replace(moved, change=replace(change, weights=True))
    rounded = MatmulRate("tf32", change.places)
    if first and all("tf32" in setting.arguments for setting in first):
        return replace(moved, change=rounded, alternative=None)
    if len(moved.fixes) > 1 and moved.alternative is None:
        return replace(moved, alternative=rounded)
    return moved
