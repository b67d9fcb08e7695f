"""The generator of a tensor that is made on the host: on the device where nothing else draws from it."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.rulekit import Context
from warpline.rules.tensor_made_on_host import TensorMadeOnHost
from warpline.text.edits import apply

OWN = """\
import torch
from numpy import random

class Waves({base}):
    def __init__(self, size, device, seed):
        {before}
        self.draws = {made}
        self.size = size

    def gusts(self):
        return torch.randn(self.size, generator=self.draws).to(self.{where})
        #^ cost cpu_ms=12 idle_ms=11 step_ms=12; site tensor op=randn device=cpu to=cuda:0 bytes=9 calls=1

    def more(self):
        {more}

for images in loader:
    train(images, waves.gusts())  #> cost device_ms=30
"""
WHOLE = {
    "base": "",
    "before": "self.device = device",
    "made": "torch.Generator().manual_seed(seed)",
    "where": "device",
    "more": "self.draws.manual_seed(3)",
}


def edited(code: str) -> str | None:
    """The script with the edit; None where none is offered."""
    example = read_example(code)
    (draft,) = TensorMadeOnHost().find(Context(example.profile, texts(example)))
    assert all(fix.applicability == "unsafe" for fix in draft.fixes)
    return apply(example.text, draft.fixes[0].edits) if draft.fixes else None


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"before": "self.at, self.device = 0, device"},
        {"made": "torch.Generator()"},
        {"more": "return random.draws(9)"},  # of a module
    ],
)
def test_a_generator_of_one_tensor_goes_to_the_device_with_it(parts: dict[str, str]) -> None:
    after = edited(OWN.format(**WHOLE | parts)) or ""
    assert "return torch.randn(self.size, generator=self.draws, device=self.device)\n" in after
    assert "self.draws = torch.Generator(device=self.device)" in after


@pytest.mark.parametrize(
    "parts",
    [
        {"more": "return torch.randperm(9, generator=self.draws)"},
        {"more": "self.draws = torch.Generator()"},
        {"more": "self.device = 'cpu'"},
        {"more": "return other.draws"},
        {"made": "shared"},
        {"made": "torch.Generator('cpu').manual_seed(seed)"},
        {"before": "if seed:\n            self.device = device"},
        {"before": "pass"},
        {"where": "cfg.device"},
    ],
)
def test_a_generator_that_something_else_may_draw_from_stays(parts: dict[str, str]) -> None:
    assert edited(OWN.format(**WHOLE | parts)) is None


LOCAL = """\
import torch

def main(device):
    {made}
    for images in loader:
        noise = torch.rand(64, 8, generator=g).to(device)
        #^ cost cpu_ms=12 idle_ms=11 step_ms=12; site tensor op=rand device=cpu to=cuda:0 bytes=9 calls=1
        train(images, noise{more})  #> cost device_ms=30
"""


@pytest.mark.parametrize(
    ("made", "more", "found"),
    [
        ("g = torch.Generator()", "", True),
        ("g = torch.Generator()\n    g.manual_seed(5)", "", True),
        ("g = torch.Generator()", ", g", False),
        ("g = torch.Generator()\n    device = torch.device(device)", "", False),  # another one there
        ("g = shared()", "", False),
    ],
)
def test_a_generator_of_a_function(made: str, more: str, found: bool) -> None:
    after = edited(LOCAL.format(made=made, more=more))
    assert (after is not None) is found
    if after is not None:
        assert "    g = torch.Generator(device=device)\n" in after
        assert "noise = torch.rand(64, 8, generator=g, device=device)\n" in after
