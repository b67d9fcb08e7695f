"""``docs/rules.md`` is current, and every rule of the design is there."""

from __future__ import annotations

from pathlib import Path

from warpline.diagnosis.catalogue import as_markdown, as_text
from warpline.rulekit import Rule
from warpline.rules import names, page, rules, tags

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


def test_tags_are_those_of_the_rules() -> None:
    assert {rule.name: rule.tags for rule in rules()} == {name: tags(name) for name in names()}
    assert {tag for name in names() for tag in tags(name)} == {"unnecessary", "deprecated", "kernel"}
    assert tags("no-such-rule") == ()


def test_a_page_is_the_same_with_and_without_its_rule() -> None:
    assert [rule.name for rule in rules() if rule.page != page(rule.name)] == []


def test_a_rule_has_only_the_attributes_that_rules_have() -> None:
    """One that nobody reads, misspelt or of a time before, would let the rule run where it must not."""
    for rule in rules():
        own = {
            name
            for name, value in vars(type(rule)).items()
            if not name.startswith("_") and not callable(value)
        }
        assert own <= {*Rule.__annotations__, *dir(Rule)}, rule.name
