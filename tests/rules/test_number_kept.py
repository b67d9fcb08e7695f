"""graph-break: a number that compiled code gives an attribute stays a tensor."""

from __future__ import annotations

import pytest

from tests.annotated import read_example
from tests.rules.test_pages import found_in
from warpline.rules.graph_break import GraphBreak
from warpline.text.edits import apply

CODE = """\
import torch

class Flow:
    def __init__(self):
        self.top = 0.0

    @torch.compile{how}
    def advance(self, speed):
        speed = speed * 0.5 + speed.sin()  #> cost device_ms=5
        self.top = {value}
        #^ found; cost step_ms=3 idle_ms=3 cpu_ms=3; event graph_break reason="Unsupported Tensor.item() call"
        return speed.relu()  #> cost device_ms=5

flow, seen = Flow(), []
for speed in speeds:
    flow.advance(speed)
    {read}
"""
SHOWN = "print(f'{flow.top:.2f}')"


def edited(read: str, value: str = "speed.max().item()", how: str = "") -> str | None:
    code = CODE.format(read=read, value=value, how=how)
    (draft,) = found_in(GraphBreak(), read_example(code))
    return apply(code, draft.fixes[0].edits) if draft.fixes else None


@pytest.mark.parametrize(
    ("read", "value", "after"),
    [
        (SHOWN, "speed.max().item()", "self.top = speed.max().detach()\n"),
        ("print(f'{2 * flow.top ** 0.5:.2f}')", "speed.max().item()", "self.top = speed.max().detach()\n"),
        (
            "if flow.top > 3: print('fast')",
            "speed.item()",
            "self.top = speed.detach().squeeze()\n",
        ),
    ],
)
def test_what_is_shown_or_compared_stays_a_tensor(read: str, value: str, after: str) -> None:
    changed = edited(read, value)
    assert changed is not None and after in changed


@pytest.mark.parametrize(
    ("read", "value", "how"),
    [
        ("seen.append(flow.top)", "speed.max().item()", ""),
        ("print(f'{flow.top}')", "speed.max().item()", ""),
        (
            "print(f'{len(seen) * flow.top:.2f}'); json.dump(vars(flow)['top'], file)",
            "speed.max().item()",
            "",
        ),
        ("print(f'{rate(flow) * flow.top:.2f}')", "speed.max().item()", ""),
        (SHOWN, "int(speed.max().item())", ""),
        (SHOWN, "speed.max().item()", "(mode='reduce-overhead')"),
    ],
)
def test_what_needs_a_number(read: str, value: str, how: str) -> None:
    assert edited(read, value, how) is None
