"""Proposals to try: the findings of a profile with their changes, and the changed text for sets of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from warpline.diagnosis import Diagnosis, diagnose, together
from warpline.measure import numbers
from warpline.measure.candidate import Candidate, Texts
from warpline.measure.numbers import Numbers
from warpline.model.change import Change, JoinedBatches, LargerBatch, Together
from warpline.model.profile import Profile
from warpline.model.report import Finding, Predicted

Predict = Callable[[Profile, Change], "Predicted | None"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A finding with an edit. ``change``: its simulated change; None if its rule has none.

    ``which``: index among the finding's fixes that have an edit. A rule's change refers to the first one.
    ``later``: it gains only once others are made.
    """

    finding: Finding
    change: Change | None
    safe: bool
    which: int = 0
    title: str = ""
    later: bool = False

    @property
    def name(self) -> str:
        """The rule's name, with the fix's title if it is not the rule's first fix."""
        return f"{self.finding.rule} ({self.title})" if self.which else self.finding.rule


@dataclass(frozen=True, slots=True)
class Workbench:
    """The input for candidates. ``texts``: the present sources. ``base``: those that differ from the disk."""

    profile: Profile
    texts: Texts
    predict: Predict | None = None
    base: Mapping[str, str] = field(default_factory=dict)

    def proposals(
        self, findings: Sequence[Finding], *, alternatives: bool = False, planned: Sequence[str] = ()
    ) -> list[Proposal]:
        """The findings of this profile's report that have an edit, in order. With ``alternatives``, there is
        one proposal for each fix with an edit.

        ``planned``: ids of the report's plan. What gains only after others of them, and so is no finding,
        comes last, its first fix only.
        """
        diagnosis = self._diagnosis()
        below = {one.id: one for one in diagnosis.below}
        later = [below[name] for name in planned if name in below]
        found = []
        for finding in (*findings, *later):
            offered = [fix for fix in finding.fixes if fix.edits and fix.applicability != "display"]
            hidden = finding.id in below
            for which, fix in enumerate(offered if alternatives and not hidden else offered[:1]):
                change = diagnosis.changes.get(finding.id) if which == 0 else None
                safe = fix.applicability == "safe"
                found.append(Proposal(finding, change, safe, which, fix.title, hidden))
        return found

    def candidate(self, chosen: Sequence[Proposal], tried: Numbers | None = None) -> Candidate | None:
        """The candidate with the fixes ``chosen``, made one after the other; None if they change nothing.

        A fix that is needless after another one is not among the candidate's ids.
        """
        which = {one.finding.id: one.which for one in chosen}
        made = together(self.profile, [one.finding for one in chosen], self.texts, which)
        texts = dict(made.texts)
        for name, number in (tried or {}).items():
            for file, text in texts.items():
                texts[file] = numbers.substituted(self.texts(file) or "", text, name, number.value)
        overlay = {file: text for file, text in texts.items() if text != self.texts(file)}
        used = {change.finding.id for change in made.changes}
        kept = [one for one in chosen if one.finding.id in used]
        if not overlay or not kept:
            return None
        title = " + ".join(dict.fromkeys(one.name for one in kept))
        title += "".join(f", {name}={number.value}" for name, number in (tried or {}).items())
        return Candidate(
            fixes=tuple(one.finding.id for one in kept),
            title=title,
            overlay={**self.base, **overlay},
            base=self.base,
            safe=all(one.safe for one in kept),
            compiles=numbers.compiles({file: self.texts(file) or "" for file in overlay}, overlay),
            work=_work([one.change for one in kept], tried or {}),
            joined=_joined([one.change for one in kept]),
        )

    def predicted(self, chosen: Sequence[Proposal], tried: Numbers | None = None) -> float | None:
        """The predicted gain of ``chosen`` together; None without a prediction."""
        if len(chosen) == 1 and not tried and not chosen[0].which and chosen[0].finding.predicted:
            return chosen[0].finding.predicted.speedup
        changes = [one.change for one in chosen]
        if self.predict is None or any(change is None for change in changes):
            return None
        named = [numbers.renumbered(change, tried or {}) for change in changes if change is not None]
        found = self.predict(self.profile, Together(tuple(named)))
        return found.speedup if found else None

    def written(self, chosen: Sequence[Proposal]) -> dict[str, int]:
        """The numbers that the fixes of ``chosen`` write, by name."""
        candidate = self.candidate(chosen)
        if candidate is None:
            return {}
        plain = {file: self.texts(file) or "" for file in candidate.overlay}
        return {
            name: number
            for one in chosen
            for name, number in numbers.written(one.change, plain, candidate.overlay)
        }

    def _diagnosis(self) -> Diagnosis:
        """The change of each finding, by id. Each finding has the same first fix as in the report, so the
        report's predictions hold."""
        return diagnose(self.profile, self.profile.sources.get, predict=self.predict)


def _work(changes: Sequence[Change | None], tried: Numbers) -> float:
    """Samples per step of the changed script, relative to the plain one."""
    work = 1.0
    for part in (part for change in changes for part in numbers.parts(change)):
        found = numbers.renumbered(part, tried)
        if isinstance(found, LargerBatch):
            work *= found.factor
    return work


def _joined(changes: Sequence[Change | None]) -> int:
    """Backward passes that one of the changed script's replaces."""
    parts = (part for change in changes for part in numbers.parts(change))
    return math.prod(part.factor for part in parts if isinstance(part, JoinedBatches))
