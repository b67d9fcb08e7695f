"""All rules in one table, for ``warpline rules`` and ``docs/rules.md``."""

from __future__ import annotations

from warpline.rulekit import Rule
from warpline.rules import rules

#: The order in which a reader meets the areas.
AREAS = ("data", "precision", "fusion", "waiting", "many devices", "compiled", "kernels", "memory")


def by_area() -> dict[str, list[Rule]]:
    """The rules in the order of the areas of ``docs/rules.md``."""
    return {area: [rule for rule in rules() if rule.area == area] for area in AREAS}


def as_text() -> str:
    """One line a rule, for a terminal."""
    width = max(len(rule.name) for rule in rules())
    lines = []
    for area, found in by_area().items():
        lines += [area, *(f"  {rule.name:{width}}  {rule.page.summary}" for rule in found), ""]
    return "\n".join([*lines, "warpline explain RULE shows a rule's page.", ""])


def as_markdown() -> str:
    """The text of ``docs/rules.md``."""
    parts = [
        "# The rules",
        "",
        "Made by `warpline rules --markdown > docs/rules.md`; a test checks that it is current.",
        "`warpline explain RULE` shows a rule's page: what it does, why the code is slow, what to write",
        (
            "instead, and how safe the fix is. A rule looks at the measured cost first, and at "
            "the source only to"
        ),
        "make the edit. Anything below 2 % of the step and below 1 ms is not reported.",
        "",
        "Silence a rule with a comment on the line, `# warpline: ignore[fp32-matmul]`, for a file with",
        "`# warpline: ignore-file[fp32-matmul]`, or for a project in `pyproject.toml`:",
        "",
        "```toml",
        "[tool.warpline]",
        'ignore = ["fp32-matmul"]',
        "```",
    ]
    for area, found in by_area().items():
        if not found:
            continue
        parts += ["", f"## {area.capitalize()}", "", "| rule | what it finds | fix |", "|---|---|---|"]
        parts += [f"| `{rule.name}` | {rule.page.summary} | {_fix(rule)} |" for rule in found]
    return "\n".join(parts) + "\n"


def _fix(rule: Rule) -> str:
    """The first word of "Fix safety": how the page itself puts it."""
    return rule.page.section("Fix safety").split()[0].strip(":.,").lower()
