"""``docs/rules.md`` is current, and every rule of the design is there."""

from __future__ import annotations

from pathlib import Path

from warpline.rulekit.catalogue import as_markdown, as_text
from warpline.rulekit.page import names, page

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_in_the_documentation_is_current() -> None:
    # After a change to a rule's page: warpline rules --markdown > docs/rules.md
    assert (ROOT / "docs/rules.md").read_text(encoding="utf-8") == as_markdown()


def test_every_rule_is_listed_once() -> None:
    text = as_text()
    assert [name for name in names() if text.count(f"  {name} ") != 1] == []


def test_pages_hide_the_annotations() -> None:
    for name in names():
        text = page(name).markdown()
        assert "#>" not in text and "#^" not in text
        assert text.startswith(f"# {name}\n")


def test_what_others_have_is_compared_with_rules_that_exist() -> None:
    text = (ROOT / "docs/compared.md").read_text(encoding="utf-8")
    told = {part for part in text.split("`") if part in names()}
    assert len(told) >= 20
