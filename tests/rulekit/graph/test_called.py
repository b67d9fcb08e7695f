"""What torch computes by several operators is not written out where the script calls torch's function."""

from __future__ import annotations

from typing import cast

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.rulekit import Context
from warpline.rulekit.graph.graph import Node
from warpline.rulekit.graph.match import Match
from warpline.rulekit.graph.matched import _is_called

TEXT = """\
import torch.nn.functional as F
loss = 0.1 * F.l1_loss(got, wanted)  #> cost cpu_ms=1
loss = (got - wanted).abs().mean()  #> cost cpu_ms=1
loss = l1_loss_of_mine(got, wanted)  #> cost cpu_ms=1
"""


@pytest.mark.parametrize(
    ("line", "call", "called"),
    [
        (2, "F.l1_loss", True),
        (2, "F.l1_loss(..., reduction='sum')", True),
        (2, "F.mse_loss", False),
        (2, "", False),
        (3, "F.l1_loss", False),
        (4, "F.l1_loss", False),
    ],
)
def test_a_call_of_the_function_itself(line: int, call: str, called: bool) -> None:
    example = read_example(TEXT)
    context = Context(example.profile, texts(example))
    match = Match("An absolute error", call, (), cast(Node, None))
    assert _is_called(context, (FILE, line), match) == called
    assert not _is_called(context, ("/elsewhere.py", line), match)
