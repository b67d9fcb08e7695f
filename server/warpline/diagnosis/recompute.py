"""A finding's fixes, computed again for the current text."""

from __future__ import annotations

from collections.abc import Callable

from warpline.diagnosis.joint import together
from warpline.diagnosis.rebase import Moves, rebase
from warpline.model.profile import Profile
from warpline.model.report import Finding, Fix
from warpline.rules import rule_named


def fixes(profile: Profile, finding: Finding, texts: Callable[[str], str | None]) -> tuple[Fix, ...]:
    """The fixes of ``finding`` (its lines are those of the run) for ``texts(path)``.

    Empty when its line is gone, the fix is already made, or the rule no longer offers one. They are in the
    order of ``finding``, which has what gains more first where the rule does not know that.
    """
    from warpline.diagnosis.frameworks import at_setting
    from warpline.rulekit import Context

    rule = rule_named(finding.rule)
    if rule is None:
        return ()
    moves = Moves(profile, texts)
    sites = [moves.now(one.place) for one in (finding, *finding.also)]
    if None in sites:
        return ()
    context = Context(rebase(profile, texts, moves), texts)
    moved = [at_setting(context, rule.name, draft) for draft in rule.find(context)]
    near = ([draft for draft in moved if draft.place == site] for site in sites)
    each = [max(some, key=lambda draft: draft.saving_ms).fixes if some else () for some in near]
    found = together(each) if finding.also else each[0]
    told = [fix.title for fix in finding.fixes]
    same = sorted(told) == sorted(fix.title for fix in found)
    return tuple(sorted(found, key=lambda fix: told.index(fix.title))) if same else found
