"""Short answers for agents: the report's JSON with a limit on every list and text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: Lines, findings and notes in one answer, and characters of one text. An agent pays for what it reads.
LINES, FINDINGS, NOTES, CHARACTERS = 20, 20, 10, 20_000

Json = dict[str, Any]


def summary(report: Mapping[str, Any], run: str | None = None) -> Json:
    """Step time, the costliest lines, the findings and the notes of a report of the contract's format."""
    lines = sorted(report["lines"], key=lambda line: -line["step_ms"])
    found = report["findings"]
    answer = {
        "script": report["script"],
        "argv": report["argv"],
        "device": report["environment"]["device"]["name"],
        "torch": report["environment"]["torch"],
        "steps": report["steps"],
        "lines": [_line(line, report["steps"]["step_ms"]) for line in lines[:LINES]],
        "findings": [_finding(finding) for finding in found[:FINDINGS]],
        "notes": [text(note, 500) for note in report["notes"][:NOTES]],
    }
    if report.get("plan"):
        answer["plan"] = report["plan"]
    if run is not None:
        answer["run"] = run
    for name, items, most in (("lines", lines, LINES), ("findings", found, FINDINGS)):
        if len(items) > most:
            answer[f"more_{name}"] = len(items) - most
    return answer


def finding(report: Mapping[str, Any], wanted: str) -> Json | None:
    """One finding with its evidence and edits; None where there is none of that id."""
    return next((_finding(one, whole=True) for one in report["findings"] if one["id"] == wanted), None)


def trials(results: Mapping[str, Any]) -> Json:
    """What ``fix --measure --json`` wrote, the patch bounded."""
    answer = dict(results)
    if answer.get("best"):
        answer["best"] = {**answer["best"], "patch": text(answer["best"].get("patch") or "")}
    return answer


def text(value: str, most: int = CHARACTERS) -> str:
    """``value``, cut with a note of how much is missing."""
    return value if len(value) <= most else f"{value[:most]}\n[{len(value) - most} more characters]"


def _line(line: Mapping[str, Any], step_ms: float) -> Json:
    kept = ("file", "line", "function", "step_ms", "device_ms", "idle_ms", "sync_ms", "calls", "launches")
    short = {name: _number(line[name]) for name in kept}
    short["step_percent"] = round(100 * line["step_ms"] / step_ms, 1) if step_ms else 0.0
    parts: Sequence[Mapping[str, Any]] = line.get("inside") or ()
    if parts:
        largest = sorted(parts, key=lambda part: -part["step_ms"])[:5]
        short["inside"] = [{name: _number(value) for name, value in part.items()} for part in largest]
    return short


def _finding(one: Mapping[str, Any], whole: bool = False) -> Json:
    short = {name: one[name] for name in ("id", "rule", "severity", "file", "line", "cause")}
    short |= {
        "message": text(one["message"], 1000),
        "predicted": one["predicted"],
        "measured": one["measured"],
    }
    if whole:
        return {**short, "evidence": one["evidence"], "fixes": one["fixes"]}
    return {**short, "fixes": [fix["title"] for fix in one["fixes"]]}


def _number(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value
