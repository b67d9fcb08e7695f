"""Findings inside a framework, led to the framework's own setting in the user's file.

A rule sees the time at `trainer.train()`. What to change is an argument of `TrainingArguments(...)`: which
one is in :mod:`warpline.wire.frameworks`, whether the installed version has it was recorded with the call.
"""

from __future__ import annotations

from dataclasses import replace

from warpline.model.change import MatmulRate
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Refused
from warpline.rulekit.frameworks import setting_fix, written
from warpline.wire.frameworks import Construction, Setting, constructions
from warpline.wire.run import Site
from warpline.wire.sites import Framework, facts_of

#: A line belongs to a framework when so much of it is spent in the framework's files.
LEAST_SHARE = 0.5
EDIT_LINE = "line of the edit"  # the evidence for "The edit is at FILE:LINE."


def at_setting(context: Context, rule: str, draft: Draft) -> Draft:
    """``draft`` as it is; or at the framework's construction, with the settings that answer it as its fixes.

    Nothing changes where no framework was constructed, or where the rule has found an edit in the user's own
    text at another line than the hot one. An argument that the installed version does not have, or that is
    passed already, is not offered.
    """
    if draft.fixes and (draft.file, draft.line) != (draft.cause.file, draft.cause.line):
        return draft
    for one in constructions():
        settings = [each for each in one.settings if each.rule == rule]
        if not settings or not _runs_in(context, draft, one):
            continue
        for site in context.sites("framework"):
            if facts_of(Framework, site).construction != one.key:
                continue
            moved = _moved(context, draft, site, one, settings)
            if moved is not None:
                return moved
    return draft


def _runs_in(context: Context, draft: Draft, one: Construction) -> bool:
    if not one.packages:
        return True
    cost = context.cost(draft.cause.file, draft.cause.line)
    if cost is None or not cost.inside:
        return False
    spent = sum(each.step_ms for each in cost.inside if _of(each.file, one.packages))
    return spent >= LEAST_SHARE * cost.step_ms


def _of(file: str, packages: tuple[str, ...]) -> bool:
    parts = file.replace("\\", "/").split("/")
    return any(package in parts for package in packages)


def _moved(
    context: Context, draft: Draft, site: Site, one: Construction, settings: list[Setting]
) -> Draft | None:
    """None where the call is not in the text: the framework makes that object itself, from another one."""
    source = context.source(site.file)
    if source is None or source.call(site.line, *written(one)) is None:
        return None
    workers = getattr(draft.change, "workers", None)
    made: list[Fix] = []
    reasons: list[str] = []
    for setting in settings:
        try:
            fix = setting_fix(context, site, one, setting, workers)
            unreached = context.reached.refusal(fix, context.source)
            if unreached is not None:
                raise Refused(unreached)
            made.append(fix)
        except Refused as reason:
            reasons.append(str(reason))
    # The rule's own fix, of another line, stays as the last one.
    fixes = (*made, *draft.fixes) if len(made) < 2 else tuple(made)
    if not made and draft.fixes:
        return None
    message, evidence = draft.message.partition(" No edit is offered:")[0], draft.evidence
    if made:  # what the rule said of its own edit
        message = message.partition(" The edit is at ")[0]
        evidence = tuple(each for each in evidence if each.metric != EDIT_LINE)
    if not fixes and reasons:
        message += f" No edit is offered: {reasons[0]}."
    elif made:
        message += f" The setting is `{next(iter(settings[0].arguments))}` of `{one.name}` here." * (
            one.method != "generate"
        )
    moved = replace(draft, file=site.file, line=site.line, message=message, evidence=evidence, fixes=fixes)
    if len(fixes) > 1 and isinstance(draft.change, MatmulRate) and draft.alternative is None:
        return replace(moved, alternative=MatmulRate("tf32", draft.change.places))
    return moved
