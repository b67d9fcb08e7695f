"""A finding in a few short lines: where, what, the gain, the fix."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from warpline.model.report import Evidence, Finding
from warpline.view import text, units
from warpline.view.gains import between, roughly, uncertain

_BASIS = {
    "probed": "tried",
    "simulated": "simulated",
    "bound": "a bound",
    "estimate": "estimated",
}
_APPLICABILITY = {
    "safe": "values stay the same",
    "unsafe": "values may change",
    "display": "by hand",
}


@dataclass(frozen=True, slots=True)
class Summary:
    place: str  # "train.py:18"
    rule: str
    severity: str
    message: str
    details: tuple[str, ...]  # the hot line, evidence, gain, fixes; each one line
    fixes: tuple[str, ...] = ()  # those of the details that name a fix, in the order of the finding's


def summary(finding: Finding, names: Mapping[str, str]) -> Summary:
    """``names`` says what a path is called on the screen (:func:`warpline.view.text.names`)."""
    cause = finding.cause
    elsewhere = (cause.file, cause.line) != (finding.file, finding.line)
    fixes = [
        f"fix: {text.printable(fix.title)} ({_APPLICABILITY[fix.applicability]})" for fix in finding.fixes
    ]
    details = [
        *([f"seen at {_place(cause.file, cause.line, names)}"] if elsewhere else []),
        *evidence(finding),
        *gains(finding),
        *fixes,
    ]
    return Summary(
        place=_place(finding.file, finding.line, names),
        rule=text.printable(finding.rule),
        severity=finding.severity,
        message=text.printable(finding.message),
        details=tuple(details),
        fixes=tuple(fixes),
    )


def evidence(finding: Finding) -> tuple[str, ...]:
    """The measured numbers behind it, in one line; nothing when there are none."""
    if not finding.evidence:
        return ()
    parts = (f"{text.printable(e.metric)} {_value(e)}" for e in finding.evidence)
    return ("; ".join(parts),)


def gains(finding: Finding) -> tuple[str, ...]:
    """What was measured, else what is predicted, and how that is known."""
    if finding.measured:
        found = finding.measured
        words = f"measured: {units.measured(found.speedup, found.low, found.high)}"
        if found.loss_drift is not None:
            words += f", loss drifts by {found.loss_drift:.2g}"
        return (words,)
    if finding.predicted:
        expected, how = finding.predicted, _BASIS[finding.predicted.basis]
        if uncertain(expected):
            return (f"predicted: {roughly(expected)} ({how}; {between(expected)}): measure it",)
        return (f"predicted: {units.ms(expected.step_ms)} a step, {roughly(expected)} ({how})",)
    return ()


def _place(file: str, line: int, names: Mapping[str, str]) -> str:
    return f"{names.get(file) or text.printable(file)}:{line}"


def _value(one: Evidence) -> str:
    """The number with its unit, unless the metric names what is counted: ``num_workers 2``, ``waves 1.5``."""
    said = text.printable(units.evidence(one.value, one.unit))
    named = one.unit in re.split(r"[\W_]+", one.metric)
    return said.removesuffix(f" {one.unit}") if named else said
