"""The computation of a function, read from its source: the base of the fusion rules.

``follow`` runs through a function and gives every expression a ``Term``, the same one however it was
spelled (``x.mean(-1)``, ``torch.mean(x, dim=-1)``, over one line or ten); a matcher looks at terms;
``Rewrite`` turns a match into edits. Nothing here knows a profile, a rule or torch itself.
"""

from warpline.rulekit.terms.evaluate import descend, names_in
from warpline.rulekit.terms.flow import Flow, Step, follow
from warpline.rulekit.terms.hot import Formula, formulas, function_at
from warpline.rulekit.terms.rewrite import Rewrite, atom, moved
from warpline.rulekit.terms.term import Term, Terms, factors, without_casts

__all__ = [
    "Flow",
    "Formula",
    "Rewrite",
    "Step",
    "Term",
    "Terms",
    "atom",
    "descend",
    "factors",
    "follow",
    "formulas",
    "function_at",
    "moved",
    "names_in",
    "without_casts",
]
