"""Every key of a recorded run's facts stands in their definition."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from warpline import runs
from warpline.wire import facts, sites
from warpline.wire.run import FACTS, Site

KINDS = {kind.KIND: kind for kind in sites.F.__constraints__}
PARTS = {"flags": facts.Flags, "memory": facts.Memory, "nvml": facts.Nvml, "peaks": facts.MeasuredPeaks}


def names(kind: type) -> set[str]:
    return {one.name for one in fields(kind)}


@pytest.mark.parametrize("name", ["loader-without-workers", "planted_sync", "compiled", "ddp_single"])
def test_recorded_keys_are_known(recorded: Callable[[str], Path], name: str) -> None:
    run = recorded(name)
    told = json.loads(runs.part(run, FACTS).read_bytes())
    for part, kind in PARTS.items():
        assert set(told.get(part, {})) <= names(kind)
    seen = [site for site in told["sites"] if site["kind"] != "module"]
    assert seen
    for site in seen:
        assert set(site["facts"]) <= names(KINDS[site["kind"]]), site


def test_what_is_absent_is_none_and_what_is_unknown_is_left_out() -> None:
    site = Site("loader", "a.py", 3, "", {"num_workers": 2, "colour": "red"})
    assert sites.facts_of(sites.Loader, site) == sites.Loader(num_workers=2)
