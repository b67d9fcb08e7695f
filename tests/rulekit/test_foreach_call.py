"""Loops that call a function for each tensor, which then takes lists: recorded and run before and after."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests import samples
from tests.rulekit.test_foreach import SCRIPT, recorded, run
from warpline.model.profile import LineCost
from warpline.rulekit import Context
from warpline.rulekit.foreach_call import lists_at
from warpline.syntax.edits import Refused
from warpline.text.edits import apply

HELPER = """\
def sharpen(w, g, speed, rate, keep=0.9, betas=(0.9, 0.999)):
    \"\"\"A step along the sign of an average.\"\"\"
    w.mul_(1 - rate * 0.01)  # towards zero
    way = speed.clone().mul_(keep).add_(g, alpha=1 - keep).sign_()
    # The step.
    w.data.sub_(way, alpha=rate)
    speed.lerp_(g, 1 - keep)
"""
LOOP = """\
    for p, speed in zip(params, averages):
        if p.grad is not None:
            g = p.grad
            {call}
"""
CALL = "sharpen(p.data, g, speed=speed, betas=(0.5, 0.9), rate=lr)"


#: A method that gives an average, which the round keeps.
MIXER = """\
class Mixer:
    def __init__(self, keep):
        self.keep = keep

    def mix(self, late, now):
        if late is None:
            return now
        return late * self.keep + (1 - self.keep) * now  # way = late

mixer = Mixer(0.9)
"""
MIX = "speed.data = mixer.mix(speed.data, g)"


def edited(tmp_path: Path, call: str = CALL, helper: str = HELPER) -> tuple[str, str]:
    path = tmp_path / "loop.py"
    path.write_text(text := SCRIPT.format(loop=LOOP.format(call=call), before=helper))
    lines, name = text.splitlines(), "Mixer.mix" if "mixer" in call else "sharpen"
    inner = next(at for at, line in enumerate(lines, 1) if "way = " in line)
    outer = next(at for at, line in enumerate(lines, 1) if call in line)
    costs = (
        LineCost(str(path), inner, name, step_ms=3.0, calls=3),
        LineCost(str(path), outer, "step", step_ms=1.0, calls=3, called=((str(path), name),)),
    )
    profile = samples.profile({str(path): text})
    facts = replace(profile.facts, dataflow=recorded(path))
    context = Context(
        replace(profile, facts=facts, lines=costs), lambda file: text if file == str(path) else None
    )
    return text, apply(text, lists_at(context, costs[0]).edits)


def test_the_function_takes_lists(tmp_path: Path) -> None:
    before, after = edited(tmp_path)
    assert "sharpen(datas" not in after
    assert "        sharpen(ps, gs, speed=speeds, betas=(0.5, 0.9), rate=lr)\n" in after
    assert after.count("torch._foreach_") == 6
    assert "# The step." in after
    assert "# towards zero" in after
    assert "    ws = [one.data for one in w]\n    torch._foreach_sub_(ws, " in after
    for one, other in zip(run(before, 3), run(after, 3), strict=True):
        torch.testing.assert_close(one, other)


def test_the_function_returns_a_list(tmp_path: Path) -> None:
    before, after = edited(tmp_path, MIX, MIXER)
    assert (
        "    return torch._foreach_add(torch._foreach_mul(late, self.keep), torch._foreach_mul(now, " in after
    )
    assert "= mixer.mix(speeds, gs)\n" in after and "speed.data = " in after
    for one, other in zip(run(before, 3), run(after, 3), strict=True):
        assert torch.equal(one, other)


def test_the_function_may_be_kept_under_its_name(tmp_path: Path) -> None:
    helper = HELPER + "class Holder: pass\nheld = Holder()\nheld.sharpen = sharpen\n"
    before, after = edited(tmp_path, f"held.{CALL}", helper)
    assert "held.sharpen(ps, gs, speed=speeds" in after
    for one, other in zip(run(before, 3), run(after, 3), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    ("call", "helper"),
    [
        (CALL, HELPER + "\nother = sharpen\n"),  # used elsewhere
        (CALL, "@torch.no_grad()\n" + HELPER),  # what a decorator does with lists is not known
        (CALL, HELPER.replace("lerp_(g,", "lerp_(g[0],")),
        (CALL, HELPER.replace("lerp_(g,", "lerp_(w.grad if w.grad is not None else g,")),  # a tensor's own
        (CALL, HELPER + "    return way\n"),
        ("sharpen(p.data, g, speed=speed, rate=lr / p.numel())", HELPER),
        ("sharpen(p.data * 1, g, speed=speed, rate=lr)", HELPER),
        ("mixer.mix(speed, g)", MIXER),  # what is returned is thrown away
        (MIX, MIXER.replace("is None", "is now")),
        ("g.held = mixer.mix(speed.data, g).detach()", MIXER),
        ("sharpen(*(p.data, g, speed), rate=lr)", HELPER),
    ],
)
def test_other_functions_are_left_alone(tmp_path: Path, call: str, helper: str) -> None:
    with pytest.raises(Refused):
        edited(tmp_path, call, helper)
