"""The finding for a formula that is written out although torch has one call for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warpline.model.change import Change
from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.costed import Costed
from warpline.rulekit.draft import Draft


def written_out(
    context: Context,
    costed: Costed,
    place: tuple[str, int],
    what: tuple[str, str, str],
    change: Change,
    fixes: Sequence[Callable[[], Fix] | Fix | str] = (),
) -> Draft:
    """``what``: the metric, what the formula is (a sentence's subject), and how the message goes on after the
    cost."""
    metric, kind, rest = what
    spent = costed.step_ms
    return context.draft(
        place,
        f"{kind} is written out op by op, which takes {{spent}} a step ({{share}}){rest}",
        context.spent(metric, spent),
        cause=costed.hottest,
        cost_ms=spent,
        # The products of an attention stay: its widest kernel stands for them.
        saving_ms=spent - costed.fused_ms(),
        change=change,
        fixes=fixes,
    )
