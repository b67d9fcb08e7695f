"""Findings and exceeded budgets as SARIF 2.1.0, for code scanning and for editors that read it.

The format: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", 2020. Columns are
1-based there and count code points, as ``columnKind`` says; ours begin at 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from warpline.check.judge import Verdict
from warpline.model import units
from warpline.model.report import Edit, Finding, Fix, Report
from warpline.rules import rules
from warpline.view.text import printable

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
BUDGET = "budget-exceeded"
_BASE = "PROJECTROOT"
_LEVELS = {"error": "error", "warning": "warning", "information": "note", "hint": "note"}
_LEVEL_OF: dict[str, Literal["error", "warning"]] = {
    "exceeded": "error",
    "unsure": "warning",
    "unknown": "warning",
}

Json = dict[str, Any]


def log(report: Report, verdicts: Sequence[Verdict], root: Path, version: str) -> Json:
    """The findings of ``report`` and the budgets that do not hold. Paths are relative to ``root``."""
    used = list(dict.fromkeys(one.rule for one in report.findings))
    over = [one for one in verdicts if one.outcome != "held"]
    rule_ids = [*used, *([BUDGET] if over else [])]
    results = [_budget(one, rule_ids.index(BUDGET), root) for one in over]
    results += [_finding(one, rule_ids.index(one.rule), root) for one in report.findings]
    driver = {"name": "Warpline", "semanticVersion": version, "rules": _rules(rule_ids)}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "automationDetails": {"id": f"warpline/{quote(Path(report.script).name)}/"},
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {_BASE: {"uri": f"file://{quote(str(root).rstrip('/'))}/"}},
                "invocations": [{"executionSuccessful": True}],
                "results": results,
            }
        ],
    }


def _rules(names: Iterable[str]) -> list[Json]:
    known = {rule.name: rule for rule in rules()}
    found = []
    for name in names:
        if name == BUDGET:
            said = "A step, a function or a line takes longer than its budget allows."
            page, area = f"{said} The limits are in the project's budgets file.", "budget"
        elif name in known:
            said, page, area = known[name].page.summary, known[name].page.markdown(), known[name].area
        else:  # of a run that another version wrote
            said = page = f"A finding of the rule {printable(name)}."
            area = "other"
        found.append(
            {
                "id": name,
                "name": "".join(word.capitalize() for word in name.split("-")),
                "shortDescription": {"text": said},
                "fullDescription": {"text": said},
                "help": {"text": page, "markdown": page},
                "properties": {"tags": ["performance", area]},
            }
        )
    return found


def _budget(verdict: Verdict, rule: int, root: Path) -> Json:
    return {
        "ruleId": BUDGET,
        "ruleIndex": rule,
        "level": _LEVEL_OF[verdict.outcome],
        "message": {"text": f"{verdict.message}."},
        "locations": [_location(verdict.file, verdict.line, root)],
        "partialFingerprints": {"warplineBudget/v1": f"{verdict.budget}: {verdict.limit}"},
        "properties": {
            "ms": verdict.ms,
            "limitMs": verdict.limit_ms,
            "noiseMs": verdict.noise_ms,
            "baselineMs": verdict.baseline_ms,
        },
    }


def _finding(finding: Finding, rule: int, root: Path) -> Json:
    said = printable(finding.message)
    if finding.measured is not None:
        said += f" Measured gain: {units.gain(finding.measured.speedup)}."
    elif finding.predicted is not None:
        said += f" Predicted gain: {units.gain(finding.predicted.speedup)}."
    result: Json = {
        "ruleId": finding.rule,
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": said},
        "locations": [_location(finding.file, finding.line, root)],
        "partialFingerprints": {"warplineFinding/v1": finding.id},
        "properties": {
            "evidence": [{"metric": e.metric, "value": e.value, "unit": e.unit} for e in finding.evidence]
        },
    }
    others = [(one, "the same") for one in finding.also]
    if finding.cause.place != finding.place:
        others.insert(0, (finding.cause, "where the time is lost"))
    if others:
        result["relatedLocations"] = [
            {"id": i, **_location(one.file, one.line, root), "message": {"text": text}}
            for i, (one, text) in enumerate(others, 1)
        ]
    fixes = [_fix(fix, root) for fix in finding.fixes if fix.edits]
    if fixes:
        result["fixes"] = fixes
    return result


def _fix(fix: Fix, root: Path) -> Json:
    by_file: dict[str, list[Edit]] = {}
    for edit in fix.edits:
        by_file.setdefault(edit.file, []).append(edit)
    return {
        "description": {"text": printable(fix.title)},
        "artifactChanges": [
            {"artifactLocation": _artifact(file, root), "replacements": [_replacement(e) for e in edits]}
            for file, edits in by_file.items()
        ],
    }


def _replacement(edit: Edit) -> Json:
    (first, column), (last, end) = edit.start, edit.end
    region = {"startLine": first, "startColumn": column + 1, "endLine": last, "endColumn": end + 1}
    return {"deletedRegion": region, "insertedContent": {"text": edit.text}}


def _location(file: str, line: int, root: Path) -> Json:
    return {
        "physicalLocation": {"artifactLocation": _artifact(file, root), "region": {"startLine": max(1, line)}}
    }


def _artifact(file: str, root: Path) -> Json:
    inside = relative(file, root)
    if inside is None:
        return {"uri": f"file://{quote(file)}"}
    return {"uri": quote(inside), "uriBaseId": _BASE}


def relative(file: str, root: Path) -> str | None:
    """``file`` as seen from ``root``; None for one that lies elsewhere."""
    path = Path(file)
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else None
