"""The corpus: annotated scripts below this folder, one folder a rule.

``<rule>/<case>.py`` or ``<rule>/<case>/train.py`` with its modules beside it. ``#> found`` marks the line
where the folder's rule must find something, ``#> found other-rule`` a further right finding.
``# corpus: run`` in the first line has the script profiled for real on the CPU; in all others the
annotations are the profile (what only a GPU shows cannot be recorded on every machine: the figures are
of the size that such runs have). ``may RULE …`` names findings that are right but depend on how fast the
machine is. Nothing may be found in ``well-made``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.annotated import Project, read_project

HERE = Path(__file__).parent
_HEADER = re.compile(r"# corpus: run(?:, may (.*))?")

Place = tuple[str, int, str]  # file name, line, rule


@dataclass(frozen=True)
class Case:
    rule: str  # "" for well-made ones
    name: str
    project: Project
    run: bool
    may: frozenset[str]

    @property
    def expected(self) -> set[Place]:
        return {(file, line, rule or self.rule) for file, line, rule in self.project.found}


def cases() -> list[Case]:
    """All of them, in order of their names."""
    found = []
    for folder in sorted(path for path in HERE.iterdir() if path.is_dir() and path.name != "__pycache__"):
        for entry in sorted(folder.iterdir()):
            if entry.name != "__pycache__":
                found.append(_case(folder.name, entry))
    return found


def _case(folder: str, entry: Path) -> Case:
    scripts = (
        [entry] if entry.is_file() else sorted(entry.glob("*.py"), key=lambda path: path.name != "train.py")
    )
    texts = {f"/project/{path.name}": path.read_text(encoding="utf-8") for path in scripts}
    header = _HEADER.match(next(iter(texts.values())))
    rule = "" if folder == "well-made" else folder
    project = read_project(texts)
    if bool(project.found) != bool(rule):
        raise ValueError(f"{entry}: marks with `#> found` are missing, or mark a well-made script")
    may = frozenset((header.group(1) or "").split()) if header else frozenset()
    return Case(rule, f"{folder}/{entry.stem}", project, header is not None, may)
