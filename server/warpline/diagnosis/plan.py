"""The fixes in the best order, each with its gain after the earlier ones."""

from __future__ import annotations

from typing import Protocol

from warpline.diagnosis.diagnose import Diagnosis
from warpline.diagnosis.gate import LEAST, within_evidence
from warpline.model.change import Change, Together
from warpline.model.profile import Profile
from warpline.model.report import Finding, Plan, PlanStep, Predicted, Resource

#: Findings that are looked at, those that gain most alone first: each stage replays the step once for each.
MOST = 8


class Predictor(Protocol):
    """Predicts changes of one run. ``warpline.simulate.predictor`` describes the methods."""

    def __call__(self, profile: Profile, change: Change) -> Predicted | None: ...

    def limit(self, profile: Profile, change: Change) -> Resource: ...

    def left(self, profile: Profile, made: Change, change: Change) -> float: ...

    def floor_ms(self, profile: Profile) -> float: ...


def plan(profile: Profile, diagnosis: Diagnosis, predictor: Predictor) -> Plan | None:
    """The fixes in order: each time the one that shortens the step most, until none saves 1 % of what is
    left.

    None where the step cannot be replayed, or no finding says what it changes."""
    left = [one for one in (*diagnosis.findings, *diagnosis.below) if one.id in diagnosis.changes][:MOST]
    step_ms = profile.steps.step_ms
    if not left or step_ms <= 0:
        return None
    made: tuple[Change, ...] = ()
    now_ms, behind_ms = step_ms, 0.0
    steps: list[PlanStep] = []
    try:
        limit = predictor.limit(profile, Together(()))
        while left:
            after = {
                one.id: _after(profile, one, made, now_ms, behind_ms, diagnosis, predictor) for one in left
            }
            best = min(left, key=lambda one: after[one.id])
            next_ms = after[best.id]
            if next_ms > now_ms * (1 - LEAST / 100):
                break
            left.remove(best)
            made = (*made, diagnosis.changes[best.id])
            bound = predictor.limit(profile, Together(made))
            steps.append(_step(best, next_ms, now_ms / next_ms, bound))
            now_ms = next_ms
            # A finding may promise less than its replay saves: the next one does not gain that.
            replayed = predictor(profile, Together(made))
            behind_ms = max(0.0, now_ms - replayed.step_ms) if replayed is not None else 0.0
        return Plan(step_ms, limit, tuple(steps), min(now_ms, predictor.floor_ms(profile)))
    except Exception:  # noqa: BLE001  # a trace that cannot be replayed has no plan, and its report all else
        return None


def _step(finding: Finding, step_ms: float, speedup: float, limit: Resource) -> PlanStep:
    title = finding.fixes[0].title if finding.fixes else finding.message.partition(". ")[0]
    return PlanStep(finding.id, finding.rule, finding.file, finding.line, title, step_ms, speedup, limit)


def _after(
    profile: Profile,
    finding: Finding,
    made: tuple[Change, ...],
    now_ms: float,
    behind_ms: float,
    diagnosis: Diagnosis,
    predictor: Predictor,
) -> float:
    """The step with ``finding``'s change made after the others, which leave it ``now_ms`` long: ``behind_ms``
    more than their replay. It gains what is left of its evidence at most. Infinite where that cannot be said.
    """
    if not made and finding.predicted is not None and finding.id not in diagnosis.later:
        return finding.predicted.step_ms
    change, step_ms = diagnosis.changes[finding.id], profile.steps.step_ms
    found = predictor(profile, Together((*made, change)))
    if found is None:
        return float("inf")
    shortest = within_evidence(finding, step_ms)
    lost_ms = step_ms - shortest if shortest is not None else now_ms
    return max(behind_ms + found.step_ms, now_ms - lost_ms * predictor.left(profile, Together(made), change))
