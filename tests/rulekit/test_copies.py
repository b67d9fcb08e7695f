"""The device that a tensor is moved to, as scripts spell it."""

from __future__ import annotations

import pytest

from warpline.rulekit.copies import moved_to
from warpline.syntax.edits import Refused
from warpline.syntax.source import Source


def moved(target: str) -> dict[str, str]:
    source = Source("train.py", f"noise = torch.randn(64, 8).to({target})\n")
    return moved_to(source, source.calls(1)[0])


@pytest.mark.parametrize("target", ["device", "DEVICE", "self.cfg.dev", "DEV", '"cuda:0"', "0"])
def test_a_device_by_its_usual_names(target: str) -> None:
    assert moved(target) == {"device": target}


@pytest.mark.parametrize("target", ["other", "devel_batch"])
def test_what_may_be_a_tensor(target: str) -> None:
    with pytest.raises(Refused, match="may not be a device"):
        moved(target)
