"""The table of assumed figures: complete, used, and honest about what they rest on."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT
from warpline.model.costs import bound, bounds, table, value


def test_what_was_sampled_has_a_range_and_a_script_and_the_rest_claims_none() -> None:
    for name, one in table().items():
        assert one.what, name
        if one.samples:
            assert one.low is not None, name
            assert one.high is not None, name
            assert one.low <= one.value <= one.high, name
            assert (ROOT / one.script).is_file(), name
        else:
            assert (one.low, one.high, one.script) == (None, None, ""), name


def test_each_figure_is_used_and_each_used_one_is_there() -> None:
    assert used("value") == set(table())
    with pytest.raises(KeyError):
        value("no such figure")


def test_each_bound_is_used_and_says_what_it_decides() -> None:
    assert used("bound") == set(bounds())
    assert all(one.what for one in bounds().values())
    assert not set(bounds()) & set(table())
    with pytest.raises(KeyError):
        bound("no such bound")


def used(call: str) -> set[str]:
    """The names that the sources ask ``costs.value`` or ``costs.bound`` for."""
    called = re.compile(rf'\b{call}\("([a-z0-9-]+)"\)')
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "server/warpline").rglob("*.py"))
    return {name for text in texts if "costs" in text for name in called.findall(text)}
