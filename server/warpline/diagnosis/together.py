"""Several findings' fixes in the same files, each applied to the result of the previous one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from warpline.diagnosis.rebase import Made, Moves, rebase
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
    present = _Present(profile, texts)
    changes: list[Change] = []
    skipped: list[Skipped] = []
    for finding in findings:
        if not any(fix.edits for fix in finding.fixes):
            skipped.append(Skipped(finding, "it has no edit"))
            continue
        try:
            offered = [fix for fix in present.fixes(finding) if _edits(fix)]
            fix = next(iter(offered[(which or {}).get(finding.id, 0) :]), None)
        except Exception as error:  # noqa: BLE001  # a rule's mistake costs this fix only
            skipped.append(Skipped(finding, f"the rule failed ({type(error).__name__}: {error})"))
            continue
        if fix is None:
            skipped.append(Skipped(finding, "its line changed, or another fix made it unnecessary"))
            continue
        present.make(fix)
        changes.append(Change(finding, fix))
    return Together(present.made, tuple(changes), tuple(skipped))


class _Present:
    """A profile that is moved along while fixes change the texts one after another."""

    def __init__(self, profile: Profile, texts: Callable[[str], str | None]) -> None:
        self.made: dict[str, str] = {}
        self._texts = texts
        self._profile = profile
        self._moves: list[Moves] = []

    def text(self, path: str) -> str | None:
        """A file as it is now."""
        return _text(self.made, self._texts, path)

    def fixes(self, finding: Finding) -> tuple[Fix, ...]:
        """The fixes of ``finding``, which has the run's line numbers; empty if one of its lines is gone."""
        places = [place for one in (finding, *finding.also) if (place := self._now(one.place)) is not None]
        if len(places) != 1 + len(finding.also):
            return ()
        (file, line), *others = places
        also = tuple(
            replace(one, file=at[0], line=at[1]) for one, at in zip(finding.also, others, strict=True)
        )
        return fixes(self._profile, replace(finding, file=file, line=line, also=also), self.text)

    def make(self, fix: Fix) -> None:
        """Apply ``fix`` to the texts, and move the profile to them."""
        if not self._moves:
            self._move(Moves(self._profile, self._texts))
        edits = _by_file(fix)
        made = {path: apply(self.text(path) or "", each) for path, each in edits.items()}
        self.made = {**self.made, **made}
        self._move(Made(self._profile, partial(_text, self.made, self._texts), edits))

    def _now(self, place: tuple[str, int]) -> tuple[str, int] | None:
        now: tuple[str, int] | None = place
        for moves in self._moves:
            now = moves.now(now) if now is not None else None
        return now

    def _move(self, moves: Moves) -> None:
        self._moves.append(moves)
        profile = rebase(self._profile, self.text, moves)
        now = {path: text for path in profile.sources if (text := self.text(path)) is not None}
        self._profile = replace(profile, sources={**profile.sources, **now})


def _text(made: Mapping[str, str], texts: Callable[[str], str | None], path: str) -> str | None:
    return made[path] if path in made else texts(path)


def _edits(fix: Fix) -> bool:
    return fix.applicability != "display" and bool(fix.edits)


def _by_file(fix: Fix) -> dict[str, list[Edit]]:
    found: dict[str, list[Edit]] = {}
    for edit in fix.edits:
        found.setdefault(edit.file, []).append(edit)
    return found
