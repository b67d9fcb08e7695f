"""The table of assumed figures: complete, used, and honest about what they rest on."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT
from warpline.model.costs import table, value


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
    called = re.compile(r'(?:costs|assumed)\.value\("([a-z-]+)"\)')
    used = {
        name
        for path in (ROOT / "server/warpline").rglob("*.py")
        for name in called.findall(path.read_text(encoding="utf-8"))
    }
    assert used == set(table())
    with pytest.raises(KeyError):
        value("no such figure")
