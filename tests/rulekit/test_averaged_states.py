"""Averages of two modules' states that one of them loads, recorded and run before and after the edit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests import samples
from tests.rulekit.test_foreach import recorded
from warpline.rulekit import Context
from warpline.rulekit.averaged_states import averaged_in_place, loaded
from warpline.syntax.edits import Refused
from warpline.text.edits import apply

#: A network and one that follows it, with what BatchNorm counts among their state.
SCRIPT = """\
import copy
import torch
from collections import OrderedDict

torch.manual_seed(0)
def network():
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.{norm}(4), torch.nn.Linear(4, 4))
pairs = [(network(), network()) for _ in range(2)]
for net, _ in pairs:
    net(torch.randn(8, 4))
{before}

def follow(net, late, rate):
{body}

def step():
    for net, late in pairs:
        follow(net, late, 0.25)
        with torch.no_grad():
            net(torch.randn(8, 4))
            for p in net.parameters():
                p.add_(0.1)

def seen():
    return [one.clone() for _, late in pairs for one in late.state_dict().values()]
"""


def run(text: str) -> list[torch.Tensor]:
    names: dict[str, Any] = {}
    exec(compile(text, "/example/states.py", "exec"), names)
    for _ in range(4):
        names["step"]()
    found: list[torch.Tensor] = names["seen"]()
    return found


def edited(tmp_path: Path, body: str, norm: str = "BatchNorm1d", before: str = "") -> tuple[str, str]:
    """The script, and what the edit makes of it."""
    path = tmp_path / "states.py"
    inner = "\n".join(f"    {line}" for line in body.strip().splitlines())
    path.write_text(text := SCRIPT.format(body=inner, norm=norm, before=before))
    profile = samples.profile()
    profile = replace(profile, facts=replace(profile.facts, dataflow=recorded(path)))
    context = Context(profile, lambda file: text if file == str(path) else None)
    line = next(number for number, one in enumerate(text.splitlines(), 1) if "1 - rate)" in one)
    found = loaded(context.source(str(path)), line)
    if found is None:
        raise Refused("nothing loads them")
    return text, apply(text, averaged_in_place(context, found).edits)


SAME = {
    "by key": """
new, old = net.state_dict(), late.state_dict()
for name in new:
    old[name] = rate * new[name] + (1 - rate) * old[name]
late.load_state_dict(old)
""",
    "some are left out": """
new, old = net.state_dict(), late.state_dict()
for name, value in new.items():
    if name.startswith("2"):
        continue
    old[name] = old[name] * (1 - rate) + value * rate
late.load_state_dict(old, strict=False)
""",
    "a new mapping": """
made = OrderedDict()
old = late.state_dict()
for name, value in net.state_dict().items():
    made[name] = (1 - rate) * old[name].detach() + rate * value.detach()
late.load_state_dict(made)
""",
    "a comprehension": """
late.load_state_dict({
    name: (1 - rate) * one + rate * other
    for (name, one), other in zip(late.state_dict().items(), net.state_dict().values())
})
""",
    "a comprehension with a name": """
new, old = net.state_dict(), late.state_dict()
mixed = {name: rate * new[name] + (1 - rate) * old[name] for name in new}
late.load_state_dict(mixed)
""",
    "pairs": """
new = net.state_dict()
late.load_state_dict(OrderedDict((k, (1 - rate) * v + rate * new[k]) for k, v in late.state_dict().items()))
""",
}


@pytest.mark.parametrize("norm", ["BatchNorm1d", "LayerNorm"])
@pytest.mark.parametrize("name", [*SAME])
def test_the_networks_state_is_the_same_afterwards(name: str, norm: str, tmp_path: Path) -> None:
    """Also what is no floating number, which `_foreach_lerp_` does not take."""
    text, changed = edited(tmp_path, SAME[name], norm)
    assert "torch._foreach_lerp_(" in changed
    assert "late.load_state_dict(" not in changed
    assert ("is_floating_point" in changed) == (norm == "BatchNorm1d")
    for one, other in zip(run(text), run(changed), strict=True):
        torch.testing.assert_close(one, other)


REFUSED = {
    "read afterwards": """
new, old = net.state_dict(), late.state_dict()
for name in new:
    old[name] = rate * new[name] + (1 - rate) * old[name]
late.load_state_dict(old)
return old
""",
    "other tensors": """
new, old = net.state_dict(), copy.deepcopy(late.state_dict())
for name in new:
    old[name] = rate * new[name] + (1 - rate) * old[name]
late.load_state_dict(old)
""",
    "into a third one": """
new, old = net.state_dict(), late.state_dict()
mixed = {name: rate * new[name] + (1 - rate) * old[name] for name in new}
copy.deepcopy(late).load_state_dict(mixed)
""",
    "no average": """
new, old = net.state_dict(), late.state_dict()
for name in new:
    old[name] = rate * new[name] + 0.5 * (1 - rate) * old[name]
late.load_state_dict(old)
""",
    "more is loaded": """
new, old = net.state_dict(), late.state_dict()
for name in new:
    old[name] = rate * new[name] + (1 - rate) * old[name]
    old["0.bias"] = new["0.bias"]
late.load_state_dict(old)
""",
    "only some": """
old = late.state_dict()
late.load_state_dict({k: rate * v + (1 - rate) * old[k] for k, v in net.state_dict().items() if k in old})
""",
}


@pytest.mark.parametrize("name", [*REFUSED])
def test_what_is_more_than_that_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(Refused):
        edited(tmp_path, REFUSED[name])


@pytest.mark.parametrize(
    "before", ["pairs[0][1][2].weight = pairs[0][1][0].weight", "pairs[1][1][0] = pairs[1][0][2]"]
)
def test_a_tensor_may_be_in_the_states_twice(before: str, tmp_path: Path) -> None:
    with pytest.raises(Refused):
        edited(tmp_path, SAME["by key"], before=before)
