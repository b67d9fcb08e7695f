"""Values of a framework's settings: those of the call, and what is set on the object afterwards."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from warpline.capture.runner.births.frameworks import Frameworks


def test_what_is_set_as_an_attribute_is_noted_beside_the_call_s_values() -> None:
    frameworks, facts = Frameworks(sites=None), {"values": {"optim": "adamw_torch_fused", "bf16": False}}
    settings: Any = SimpleNamespace(**facts["values"])
    frameworks.settings.append((settings, facts))
    frameworks.look_again()
    assert facts["changed"] == {}
    settings.optim = "adamw_torch"
    frameworks.look_again()
    assert facts["changed"] == {"optim": "adamw_torch"}
    assert facts["values"]["optim"] == "adamw_torch_fused"
