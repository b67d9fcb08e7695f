"""Several findings' fixes in the same files, each applied to the result of the previous one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from warpline.diagnosis.recompute import fixes
from warpline.model.profile import Profile
from warpline.model.report import Edit, Finding, Fix
from warpline.text.edits import apply


@dataclass(frozen=True, slots=True)
class Change:
    """A fix that was made. Its edits refer to the text before it."""

    finding: Finding
    fix: Fix


@dataclass(frozen=True, slots=True)
class Skipped:
    finding: Finding
    reason: str


@dataclass(frozen=True, slots=True)
class Together:
    """``texts``: every changed file's path and its text with all changes made."""

    texts: dict[str, str]
    changes: tuple[Change, ...]
    skipped: tuple[Skipped, ...]


def together(
    profile: Profile,
    findings: Iterable[Finding],
    texts: Callable[[str], str | None],
    which: Mapping[str, int] | None = None,
) -> Together:
    """Make the first fix that edits of each of ``findings``, in their order.

    ``which``: finding id -> another of its fixes that edit, 0 being the first.
    """
    made: dict[str, str] = {}
    changes: list[Change] = []
    skipped: list[Skipped] = []

    def now(path: str) -> str | None:
        return made[path] if path in made else texts(path)

    for finding in findings:
        if not any(fix.edits for fix in finding.fixes):
            skipped.append(Skipped(finding, "it has no edit"))
            continue
        try:
            offered = [fix for fix in fixes(profile, finding, now) if _edits(fix)]
            fix = next(iter(offered[(which or {}).get(finding.id, 0) :]), None)
        except Exception as error:  # noqa: BLE001  # a rule's mistake costs this fix only
            skipped.append(Skipped(finding, f"the rule failed ({type(error).__name__}: {error})"))
            continue
        if fix is None:
            skipped.append(Skipped(finding, "its line changed, or another fix made it unnecessary"))
            continue
        for path, edits in _by_file(fix).items():
            made[path] = apply(now(path) or "", edits)
        changes.append(Change(finding, fix))
    return Together(made, tuple(changes), tuple(skipped))


def _edits(fix: Fix) -> bool:
    return fix.applicability != "display" and bool(fix.edits)


def _by_file(fix: Fix) -> dict[str, list[Edit]]:
    found: dict[str, list[Edit]] = {}
    for edit in fix.edits:
        found.setdefault(edit.file, []).append(edit)
    return found
