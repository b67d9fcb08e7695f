"""Run the rules on a profile, then filter, merge and rank the findings and give them ids."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from warpline.diagnosis.gate import LEAST, least_percent, left_out, within_evidence
from warpline.diagnosis.identity import identities
from warpline.diagnosis.joint import told_together
from warpline.diagnosis.rebase import rebase
from warpline.model import costs as figures
from warpline.model import steady
from warpline.model.change import Change, Replace, Scale, Together
from warpline.model.profile import Profile
from warpline.model.report import QUICKER, Finding, Predicted, Severity
from warpline.rulekit.message import count, message, ms, seconds
from warpline.rules import names, rules
from warpline.text.ignore import Suppressions
from warpline.wire.sites import Loader

if TYPE_CHECKING:  # they import LibCST
    from warpline.rulekit import Context, Draft, Rule

Texts = Callable[[str], "str | None"]
#: ``predict(profile, change)``: the step with the change made; None when it cannot say.
Predict = Callable[[Profile, Change], "Predicted | None"]
#: ``compiling_s(profile, change)``: seconds that the change compiles for, once; 0 where it is not known.
CompilingS = Callable[[Profile, Change], float]

#: ``not_compiling(profile, change)``: why a change that compiles something cannot be made where the script
#: runs; "" where it can, or nothing says that it cannot.
NotCompiling = Callable[[Profile, Change], str]

#: ``undecided(profile, change)``: whether its trial cannot say that the change gains anything.
Undecided = Callable[[Profile, Change], bool]

#: Share of the step, in percent, from which on a saving is a warning, an information, else a hint.
#: (Input wait: 5 % in the TensorBoard plugin, 10 % and more in TraceML.)
WARNING, INFORMATION = 10.0, 5.0
#: A simulated step this many times as long is worse, and not the simulation's own error.
HARM = 1.02
#: What compiles for longer than it saves in so much running is a hint.
WON_BACK_S = figures.bound("won-back-s")
#: What only a trial confirms is a hint below this gain.
UNSURE = figures.bound("unsure-trial")
#: A finding hides another rule's at its lines if it saves at least this share of what that one would.
EXPLAINED = figures.bound("hides-finding")
#: The evidence of what a fix takes to compile.
_COMPILING = "compiling, once"
_UNPROVEN = "no trial of it had the same results, so work on the whole tensor by hand"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    findings: tuple[Finding, ...]  # what saves most first
    notes: tuple[str, ...]
    #: What would gain too little alone: something slower hides it. It may gain once that is fixed.
    below: tuple[Finding, ...] = ()
    #: What each finding's first fix changes, by its id, where its rule names that.
    changes: Mapping[str, Change] = field(default_factory=dict)
    #: Ids of findings with a gain that shows once something else is fixed.
    later: frozenset[str] = frozenset()


def diagnose(
    profile: Profile,
    texts: Texts,
    ignore: Iterable[str] = (),
    *,
    predict: Predict | None = None,
    compiling_s: CompilingS = lambda *_: 0.0,
    not_compiling: NotCompiling = lambda *_: "",
    undecided: Undecided = lambda *_: False,
    catalogue: Sequence[Rule] | None = None,
) -> Diagnosis:
    """The findings in ``profile``, at the lines of ``texts(path)`` (the sources as they are now).

    ``ignore``: names of rules that the project's settings silence. ``predict``: else the rule's bound is
    used. ``compiling_s``: a finding says what its fix takes to compile. ``not_compiling``: why it is not
    offered. ``undecided``: a finding that only a trial confirms is left out. A rule that raises costs its own
    findings and leaves one note.
    """
    silenced = set(ignore)
    unknown = _unknown(silenced, catalogue)
    if not _has_places(profile):
        return Diagnosis((), unknown)
    from warpline.rulekit import Context

    profile = rebase(profile, texts)
    context = Context(profile, texts)
    context.notes += unknown
    kept = _merged(context, _drafts(context, rules() if catalogue is None else catalogue, silenced, texts))
    least = least_percent(steady.steps_ns(profile.manifest, profile.facts))
    findings: list[Finding] = []
    below: list[Finding] = []
    small: list[Finding] = []  # what may gain enough with others
    work: list[Finding] = []  # what gains a share of the step's own work
    changes: dict[str, Change] = {}
    once: dict[str, tuple[Change, ...]] = {}
    host: dict[str, tuple[Change, ...]] = {}
    later: dict[str, Finding] = {}
    for (rule, draft), name in zip(kept, _ids(profile, kept, texts), strict=True):
        finding, change = _finding(context, rule, draft, name, predict)
        if change is not None:
            if without := not_compiling(profile, change):
                findings.append(_not_offered(finding, without))
                continue
            changes[name] = change
            finding = _paid_back(context, finding, compiling_s(profile, change))
        if _harms(context, finding) or not _confirmed(context, draft, change, finding, undecided):
            continue
        if draft.proven and not _tried(finding):
            finding = replace(_not_offered(finding, _UNPROVEN), predicted=finding.predicted)
        if draft.once and change is not None:
            once[draft.once] = (*once.get(draft.once, ()), change)
        matters = _matters(context, draft)
        shown = matters and _most(context, draft, finding) >= least
        if change is not None and not shown and _adds_up(rule, draft, finding):
            small.append(finding)
        if draft.hides is not None and shown:
            host[draft.hides[0]] = (*host.get(draft.hides[0], ()), draft.hides[1])
        if matters:
            hidden = work if _is_work(context, draft, finding, changes.get(name)) else below
            (findings if shown else hidden).append(finding)
    joined = told_together(
        small,
        changes,
        context.step_ms,
        least,
        lambda rule, change: _simulated(context, rule, change, predict),
    )
    findings += (replace(one, severity=_severity(_gain(context, one))) for one in joined.values() if one)
    findings += (one for one in work if one.id not in joined)
    below = [one for one in below if one.id not in joined]
    for hiding in (
        _Hiding(" and ".join(once), tuple(chain(*once.values())), least),
        *(_Hiding(name, some, least, INFORMATION, "information") for name, some in host.items()),
    ):
        told = _told_later(context, hiding, below, changes, predict)
        below = [one for one in below if one.id not in told]
        later |= told
    findings += later.values()
    for some in (findings, below):
        some.sort(key=lambda finding: (_predicted_ms(finding), finding.file, finding.line, finding.rule))
    _note(context, findings, below, predict)
    return Diagnosis(tuple(findings), tuple(context.notes), tuple(below), changes, frozenset(later))


def _note(
    context: Context, findings: Sequence[Finding], below: Sequence[Finding], predict: Predict | None
) -> None:
    if below:
        context.note(left_out(below))
    if findings and predict is not None and _stretched(context):
        context.note(
            "gains are upper bounds, not simulated: the timed steps were slower than the captured "
            "ones (another process may use the device)"
        )


def _has_places(profile: Profile) -> bool:
    """Whether a finding could be at a line, or a note on several ranks be left. Else, as in most traces
    without stacks, no rule has to be imported, nor LibCST."""
    return bool(profile.lines or profile.sources or profile.facts.sites or profile.manifest.world_size > 1)


def _drafts(
    context: Context, catalogue: Sequence[Rule], silenced: set[str], texts: Texts
) -> list[tuple[Rule, Draft]]:
    from warpline.diagnosis.frameworks import at_setting

    suppressions: dict[str, Suppressions] = {}
    found: list[tuple[Rule, Draft]] = []
    for rule in catalogue:
        if rule.name in silenced or not all(map(context.can, rule.needs)):
            continue
        try:
            drafts = [
                at_setting(context, rule.name, draft)
                for draft in rule.find(context)
                if _matters(context, draft) or (rule.adds_up and context.adds_up(draft.cost_ms or 0.0))
            ]
        except Exception as error:  # noqa: BLE001  # one rule's mistake must not cost the report
            context.note(f"the rule {rule.name} failed and reports nothing ({type(error).__name__}: {error})")
            continue
        found += [(rule, draft) for draft in drafts if not _suppressed(rule, draft, texts, suppressions)]
    known = {*names(), *(rule.name for rule in catalogue)}
    for path, comments in suppressions.items():
        for name in sorted(comments.named - known):
            context.note(f"a comment in {Path(path).name} ignores {name}, but no rule has that name")
    return found


def _unknown(silenced: set[str], catalogue: Sequence[Rule] | None) -> tuple[str, ...]:
    """Notes on names in the project's settings that no rule has."""
    known = names() if catalogue is None else [rule.name for rule in catalogue]
    return tuple(
        f"the project's settings ignore {name}, but no rule has that name"
        for name in sorted(silenced.difference(known))
    )


def _most(context: Context, draft: Draft, finding: Finding) -> float:
    """Percent of the step that it could save: as predicted, else what it costs. Memory always counts."""
    if draft.cost_ms is None:
        return 100.0
    if draft.replayed:
        return _gain(context, finding)
    if draft.unseen:
        return max(context.share(draft.cost_ms), _gain(context, finding))
    return _gain(context, finding) if finding.predicted is not None else context.share(draft.cost_ms)


def _gain(context: Context, finding: Finding) -> float:
    """Percent of the step that fixing it saves at most; 0 where nothing can be predicted."""
    after = finding.predicted
    return context.share(context.step_ms - after.step_ms) if after is not None else 0.0


def _matters(context: Context, draft: Draft) -> bool:
    return draft.cost_ms is None or context.matters(draft.cost_ms)


def _suppressed(rule: Rule, draft: Draft, texts: Texts, known: dict[str, Suppressions]) -> bool:
    for file, line in (draft.place, draft.cause.place):
        if file not in known:
            known[file] = Suppressions(texts(file) or "")
        if known[file].holds(rule.name, line):
            return True
    return False


def _merged(context: Context, drafts: list[tuple[Rule, Draft]]) -> list[tuple[Rule, Draft]]:
    """One finding per rule and edit site, and none that another rule says better at its lines."""
    best: dict[tuple[str, str, int], tuple[Rule, Draft]] = {}
    for rule, draft in drafts:
        key = (rule.name, draft.file, draft.line)
        if key not in best or best[key][1].saving_ms < draft.saving_ms:
            best[key] = (rule, draft)
    covering: dict[tuple[str, tuple[str, int]], list[Draft]] = {}
    for rule, draft in best.values():
        for name in rule.covers if _matters(context, draft) else ():
            for place in _places(draft):
                covering.setdefault((name, place), []).append(draft)
    return [
        (rule, draft)
        for rule, draft in best.values()
        if not any(
            _explains(other, draft)
            for place in (draft.place, draft.cause.place)
            for other in covering.get((rule.name, place), ())
        )
    ]


def _explains(draft: Draft, other: Draft) -> bool:
    """Whether ``draft`` is about most of what ``other`` would save. What keeps memory saves no time."""
    return draft.cost_ms is None or draft.saving_ms >= EXPLAINED * other.saving_ms


def _places(draft: Draft) -> set[tuple[str, int]]:
    changes = draft.change.changes if isinstance(draft.change, Together) else (draft.change,)
    changed = {place for change in changes for place in getattr(change, "places", ())}
    return {draft.place, draft.cause.place} | changed


def _finding(
    context: Context, rule: Rule, draft: Draft, name: str, predict: Predict | None
) -> tuple[Finding, Change | None]:
    """The finding, and what its first fix changes."""
    fixes, change = draft.fixes, draft.change
    other = _simulated(context, rule.name, draft.alternative, predict) if draft.tried else None  # asked first
    predicted = _simulated(context, rule.name, draft.change, predict)
    if other is not None and other.basis == "probed":
        if predicted is None or predicted.basis != "probed" or other.step_ms < predicted.step_ms:
            predicted, fixes, change = other, fixes[::-1], draft.alternative
    elif draft.alternative is not None and predicted is not None and _hides(context, predicted):
        other = _simulated(context, rule.name, draft.alternative, predict)
        if other is not None and other.step_ms < predicted.step_ms:
            predicted, fixes, change = other, fixes[::-1], draft.alternative
    if draft.unseen and predicted is not None and _hides(context, predicted):
        predicted = None
    untold = draft.replayed or (draft.unseen and context.share(draft.saving_ms) < LEAST)
    if predicted is None and not untold:
        step_ms = max(context.step_ms - draft.saving_ms, 0.0)
        speedup = context.step_ms / step_ms if step_ms > 0 else 1.0
        predicted = Predicted(step_ms, speedup, "bound") if draft.saving_ms > 0 and step_ms > 0 else None
    finding = Finding(
        id=name,
        rule=rule.name,
        severity="hint",
        file=draft.file,
        line=draft.line,
        cause=draft.cause,
        message=draft.message,
        evidence=draft.evidence,
        predicted=predicted,
        fixes=fixes,
    )
    shortest = within_evidence(finding, context.step_ms)
    if predicted is not None and shortest is not None and predicted.step_ms < shortest:
        finding = replace(
            finding, predicted=replace(predicted, step_ms=shortest, speedup=context.step_ms / shortest)
        )
    severity = draft.severity or rule.severity or _severity(_gain(context, finding))
    unsure = draft.tried and finding.predicted is not None and finding.predicted.speedup < UNSURE
    return replace(finding, severity="hint" if unsure else severity), change


def _simulated(
    context: Context, rule: str, change: Change | None, predict: Predict | None
) -> Predicted | None:
    if predict is None or change is None or _stretched(context):
        return None
    try:
        return predict(context.profile, change)
    except Exception as error:  # noqa: BLE001  # a prediction is not a reason to lose a finding
        context.note(
            f"the simulation for {rule} failed, so an upper bound is shown ({type(error).__name__}: {error})"
        )
        return None


def _ids(profile: Profile, kept: Sequence[tuple[Rule, Draft]], texts: Texts) -> list[str]:
    return identities([(rule.name, draft) for rule, draft in kept], profile.manifest.roots, texts)


def _is_work(context: Context, draft: Draft, finding: Finding, change: Change | None) -> bool:
    """Whether the fix takes away enough of what the step's own lines compute. On a CPU that is a share of the
    step however long a noisy step is, so noise does not hide it. It still hides waits, gains that are only
    bounded, and work that is replaced by other work (``Fuse``, a draft that has to be tried)."""
    after = finding.predicted
    if change is None or after is None or draft.tried or context.on_gpu:
        return False
    replayed = after.basis in ("simulated", "probed") and _goes_away(change)
    return replayed and _gain(context, finding) >= LEAST


def _goes_away(change: Change) -> bool:
    if isinstance(change, Together):
        return all(map(_goes_away, change.changes))
    return isinstance(change, Scale) or (isinstance(change, Replace) and _goes_away(change.otherwise))


def _adds_up(rule: Rule, draft: Draft, finding: Finding) -> bool:
    """Whether what it gains may be told with what others of its rule do: only a replay says that, and what it
    needs (a trial, time to compile) is not told for several."""
    compiles = any(one.metric == _COMPILING for one in finding.evidence)
    return not (compiles or draft.tried or draft.severity or rule.severity)


@dataclass(frozen=True, slots=True)
class _Hiding:
    """What hides others: its name, the step without it, what a finding has to save of that in percent, and of
    the step now; ``severity`` is the highest for such a finding."""

    name: str
    without: tuple[Change, ...]
    least: float
    least_now: float = 0.0
    severity: Severity = "warning"


def _told_later(
    context: Context,
    hiding: _Hiding,
    below: Sequence[Finding],
    changes: Mapping[str, Change],
    predict: Predict | None,
) -> dict[str, Finding]:
    """What of ``below`` gains enough in steps without what hides it, by id."""
    hidden = [finding for finding in below if finding.id in changes] if hiding.without else []
    before = _simulated(context, hidden[0].rule, Together(hiding.without), predict) if hidden else None
    if before is None:
        return {}
    found: dict[str, Finding] = {}
    for finding in hidden:
        both = Together((*hiding.without, changes[finding.id]))
        later = _later(context, finding, before, _simulated(context, finding.rule, both, predict), hiding)
        if later is not None:
            found[finding.id] = later
    return found


def _later(
    context: Context, finding: Finding, before: Predicted, after: Predicted | None, hiding: _Hiding
) -> Finding | None:
    """``finding``, which gains too little now, where it gains enough, and twice as much, in steps without
    what hides it: with what it saves of those, as an upper bound. Else None.

    ``before``, ``after``: such a step without and with its change.
    """
    if after is None or after.step_ms > before.step_ms * (1 - hiding.least / 100):
        return None
    saved = before.step_ms - after.step_ms
    if context.share(saved) < max(hiding.least_now, 2 * _gain(context, finding)):
        return None
    left_ms = context.step_ms - saved
    evidence = {"saved": ms("saved later", saved), "later": ms("later step", before.step_ms)}
    hidden = (
        f" {hiding.name.capitalize()} hides this now: without it a step takes {{later}}, and a fix "
        "here saves {saved} of that."
    )
    finding = replace(
        finding,
        message=finding.message + message(hidden, evidence),
        evidence=(*finding.evidence, *evidence.values()),
        predicted=Predicted(left_ms, context.step_ms / left_ms, "bound"),
    )
    severity = _severity(_gain(context, finding))
    return replace(finding, severity=hiding.severity if severity == "warning" else severity)


def _stretched(context: Context) -> bool:
    """Whether the timed steps took longer than the captured ones, on a device. A replay that is stretched to
    them would hide every gain on the device behind a host that was not the limit. Where others used the
    device as well, both are taken to have been slower; not where batches may have been waited for."""
    if not context.on_gpu or context.profile.steps.slowdown >= QUICKER:
        return False
    return not context.profile.facts.nvml.other_processes or bool(context.sites(Loader.KIND))


def _paid_back(context: Context, finding: Finding, compiling_s: float) -> Finding:
    """``finding`` with the time that its fix compiles for, and the number of steps that win it back: a hint
    where only a long run makes those."""
    saved_ms = context.step_ms - finding.predicted.step_ms if finding.predicted is not None else 0.0
    if compiling_s < 1 or saved_ms <= 0:  # too short to matter
        return finding
    steps = math.ceil(1e3 * compiling_s / saved_ms)
    evidence = {
        "compiling": seconds(_COMPILING, compiling_s),
        "steps": count("steps that win it back", steps, "steps"),
    }
    seldom = steps * context.step_ms > 1e3 * WON_BACK_S
    said = " Compiling takes about {compiling} once; about {steps} steps win that back."
    return replace(
        finding,
        severity="hint" if seldom else finding.severity,
        message=finding.message + message(said, evidence),
        evidence=(*finding.evidence, *evidence.values()),
    )


def _not_offered(finding: Finding, reason: str) -> Finding:
    """``finding`` without its fixes, whose gain was not tried: what they need is not there."""
    refused = f" No edit is offered: {reason}." if finding.fixes else ""
    return replace(finding, message=finding.message + refused, predicted=None, fixes=())


def _tried(finding: Finding) -> bool:
    return finding.predicted is not None and finding.predicted.basis == "probed"


def _confirmed(
    context: Context, draft: Draft, change: Change | None, finding: Finding, undecided: Undecided
) -> bool:
    """Whether it was tried and gains what it has to, where the rule asks for that."""
    untold = ""
    if draft.tried and not _tried(finding):
        untold = "there was none: what runs there cannot be tried alone, or the time was over"
    elif draft.tried and change is not None and undecided(context.profile, change):
        untold = "its rounds differ too much to say that it gains"
    if untold:
        context.note(
            f"{finding.rule} at {Path(finding.file).name}:{finding.line} is not shown: only a trial tells "
            f"what it gains, and {untold}"
        )
    return not untold and (not draft.least or _gain(context, finding) >= draft.least)


def _hides(context: Context, after: Predicted) -> bool:
    """Whether something slower hides what a change saves."""
    return context.share(context.step_ms - after.step_ms) < LEAST


def _harms(context: Context, finding: Finding) -> bool:
    """The change would make the step longer: no finding, but a note."""
    after = finding.predicted
    if after is None or after.basis not in ("simulated", "probed") or after.step_ms <= context.step_ms * HARM:
        return False
    context.note(
        f"{finding.rule} at {Path(finding.file).name}:{finding.line} is not shown: the "
        "simulated step with the change is longer"
    )
    return True


def _severity(saved_percent: float) -> Severity:
    if saved_percent >= WARNING:
        return "warning"
    return "information" if saved_percent >= INFORMATION else "hint"


def _predicted_ms(finding: Finding) -> float:
    return finding.predicted.step_ms if finding.predicted is not None else float("inf")
