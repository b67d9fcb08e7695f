"""Every rule's page is its test: the example and its sections. Beside it are near misses, for tests alone."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.annotated import FILE, Example, read_example, texts
from warpline.diagnosis.rebase import rebase
from warpline.rulekit import Context, Draft, Rule
from warpline.rulekit.message import NUMBER, shown
from warpline.rulekit.page import Page, without_annotations
from warpline.rules import rules
from warpline.text.edits import apply

#: Sections that every page has, in this order; "Example" and "Use instead" may come in several pairs.
REQUIRED = (
    "What it does",
    "Why is this slow",
    "Example",
    "Use instead",
    "Fix safety",
    "References",
)
NEAR = Path(__file__).parent / "near_misses"
_CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
AREAS = {"data", "precision", "fusion", "waiting", "many devices", "compiled", "kernels", "memory"}


def examples(page: Page) -> list[tuple[str, str | None]]:
    """``(annotated code, code of its "Use instead")`` of each pair, None where that is prose."""
    found: list[tuple[str, str | None]] = []
    for title, text in page.sections:
        if title == "Example":
            found += [(code, None) for code in _CODE.findall(text)]
        elif title == "Use instead" and found:
            codes = _CODE.findall(text)
            found[-1] = (found[-1][0], codes[0] if codes else None)
    return found


def near_misses(rule: Rule) -> list[str]:
    """Annotated code on which the rule stays silent."""
    return _CODE.findall((NEAR / f"{rule.name}.md").read_text(encoding="utf-8"))


EXAMPLES = [
    pytest.param(rule, code, after, id=f"{rule.name}-{index}")
    for rule in rules()
    for index, (code, after) in enumerate(examples(rule.page))
]
NEAR_MISSES = [
    pytest.param(rule, code, id=f"{rule.name}-{index}")
    for rule in rules()
    for index, code in enumerate(near_misses(rule))
]


def found_in(rule: Rule, example: Example) -> list[Draft]:
    """What the rule finds, as diagnosis would take it: worth a word, and never GPU talk on a CPU."""
    context = Context(example.profile, texts(example))
    if not all(map(context.can, rule.needs)):
        return []
    return [draft for draft in rule.find(context) if draft.cost_ms is None or context.matters(draft.cost_ms)]


@pytest.mark.parametrize("rule", [pytest.param(rule, id=rule.name) for rule in rules()])
def test_page_has_every_section(rule: Rule) -> None:
    page = rule.page
    assert rule.area in AREAS
    assert page.summary and "\n\n" not in page.summary
    titles = [title for title, _ in page.sections]
    assert [title for title in REQUIRED if title not in titles] == []
    assert all(text for _, text in page.sections)
    assert examples(page), "a page has an example"
    assert near_misses(rule), "a rule has a near miss"
    assert "https://" in page.section("References")


@pytest.mark.parametrize(("rule", "code", "after"), EXAMPLES)
def test_example_is_found_at_the_marked_line_and_fixed_to_the_letter(
    rule: Rule, code: str, after: str | None
) -> None:
    example = read_example(code)
    assert example.found, "the example marks the line that is found"
    drafts = found_in(rule, example)
    assert sorted(draft.line for draft in drafts) == sorted(example.found)
    assert {draft.file for draft in drafts} == {FILE}
    for draft in drafts:
        known = {number for evidence in draft.evidence for number in NUMBER.findall(shown(evidence))}
        words = " ".join([draft.message, *(fix.title for fix in draft.fixes)])
        assert set(NUMBER.findall(words)) <= known
        assert draft.evidence and 0 <= draft.saving_ms <= (draft.cost_ms or 0)
    if after is None:
        assert not any(draft.fixes for draft in drafts)
        return
    text = example.text
    for draft in drafts:
        for fix in draft.fixes:
            ast.parse(apply(example.text, fix.edits))
    edits = [edit for draft in drafts for edit in draft.fixes[0].edits]
    text = apply(example.text, edits)
    assert text.rstrip("\n") == without_annotations(after).rstrip("\n")


@pytest.mark.parametrize(("rule", "code", "after"), EXAMPLES)
def test_fix_is_not_offered_twice(rule: Rule, code: str, after: str | None) -> None:
    """The same profile on the fixed text: no more to change."""
    example = read_example(code)
    edits = [edit for draft in found_in(rule, example) for fix in draft.fixes[:1] for edit in fix.edits]
    if not edits:
        return
    text = apply(example.text, edits)

    def now(path: str) -> str | None:
        return text if path == FILE else None

    again = Context(rebase(example.profile, now), now)
    assert [fix.edits for draft in rule.find(again) for fix in draft.fixes] == []


@pytest.mark.parametrize(("rule", "code"), NEAR_MISSES)
def test_near_miss_is_silent(rule: Rule, code: str) -> None:
    example = read_example(code)
    assert example.found == ()
    assert [draft.message for draft in found_in(rule, example)] == []


@pytest.mark.parametrize(("rule", "code", "after"), EXAMPLES)
def test_no_cost_no_finding(rule: Rule, code: str, after: str | None) -> None:
    """Evidence first: the same text without a single annotation finds nothing."""
    assert found_in(rule, read_example(without_annotations(code))) == []
