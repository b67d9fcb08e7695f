"""Optimizers that write out Adam, and torch's fused one in their place: recorded and run before and after."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests import samples
from warpline.model.profile import LineCost
from warpline.rulekit import Context
from warpline.rulekit.own_adam import fused_adam
from warpline.syntax.edits import Refused
from warpline.text.edits import apply

CODE = """\
import math
import torch

class Mine(torch.optim.Optimizer):
    def __init__(self, params, lr=3e-3, betas=(0.9, 0.99), eps=1e-7):
        defaults = {defaults}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                own = self.state[p]
                if not own:
                    own["t"], own["m"], own["v"] = 0, torch.zeros_like(p), torch.zeros_like(p)
                own["t"] += 1
                m, v, t = own["m"], own["v"], own["t"]
{update}

torch.manual_seed(0)
params = [torch.nn.Parameter(torch.randn(n, 3)) for n in (2, 5)]
optimizer = {made}

def step():
    optimizer.zero_grad()
    sum((p * torch.arange(3)).cos().sum() for p in params).backward()
    optimizer.step()
{more}
"""
DICT = "dict(lr=lr, betas=betas, eps=eps)"
MADE = "Mine(params, lr=0.02)"
LERP = """\
                m.lerp_(p.grad, 1 - b1)
                v.mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
                root = (v / (1 - b2**t)).sqrt() + group["eps"]
                p.sub_(group["lr"] / (1 - b1**t) * m / root)"""
INSIDE = """\
                m.mul_(b1).add_((1 - b1) * p.grad)
                v.copy_(b2 * v + (1 - b2) * p.grad ** 2)
                rate = group["lr"] * math.sqrt(1 - b2**t) / (1 - b1**t)
                p.addcdiv_(m, v.sqrt().add_(group["eps"]), value=-rate)"""


def edited(
    tmp_path: Path,
    update: str = LERP,
    made: str = MADE,
    defaults: str = DICT,
    more: str = "",
    code: str = CODE,
) -> str:
    """What the edit makes of the line that makes the optimizer, where both do the same."""
    from warpline.capture.runner.dataflow.mode import Recording
    from warpline.capture.runner.lines.names import QualifiedNames
    from warpline.capture.runner.lines.userfiles import UserFiles

    path = tmp_path / "loop.py"
    path.write_text(text := code.format(update=update, made=made, defaults=defaults, more=more))
    names: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), names)
    sites: Any = SimpleNamespace(user_files=UserFiles([str(tmp_path)], []), names=QualifiedNames())
    for _ in range(4):
        names["step"]()
    recording = Recording(sites, lambda: [names["optimizer"]])
    recording.start()
    names["step"]()
    profile = samples.profile({str(path): text})
    line = next(at for at, one in enumerate(text.splitlines(), 1) if update.splitlines()[0] in one)
    cost = LineCost(str(path), line, "Mine", step_ms=3.0, calls=2)
    profile = replace(
        profile,
        facts=replace(profile.facts, dataflow=recording.stop(False)),
        lines=(cost,),
        manifest=replace(profile.manifest, torch_version="2.11.0"),
    )
    context = Context(profile, lambda file: text if file == str(path) else None)
    after = apply(text, fused_adam(context, cost).edits)
    (tmp_path / "edited.py").write_text(after)
    again: dict[str, Any] = {}
    exec(after, again)
    for _ in range(5):
        again["step"]()
    torch.testing.assert_close(again["params"], names["params"])
    return next(one for one in after.splitlines() if one.startswith("optimizer"))


def test_however_the_update_is_written(tmp_path: Path) -> None:
    wanted = "optimizer = torch.optim.Adam(params, lr=0.02, betas=(0.9, 0.99), eps=1e-7, fused=True)"
    assert edited(tmp_path) == wanted


DECAYS = """\
import torch

class Mine(torch.optim.Optimizer):
    def __init__(self, params, lr=3e-3, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.0):
        super().__init__(params, {defaults})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for w in group["params"]:
                if w.grad is not None:
                    self.move(w, self.state[w], group, *group["betas"])

    def move(self, w, own, group, b1, b2):
        lr = group["lr"]
        own.setdefault("m", torch.zeros_like(w))
        own.setdefault("v", torch.zeros_like(w))
        own["t"] = own.get("t", 0) + 1
        grad, m, v = w.grad, own["m"], own["v"]
{update}
        m.lerp_(grad, 1 - b1)
        v.mul_(b2).addcmul_(grad, grad, value=1 - b2)
        root = (v / (1 - b2 ** own["t"])).sqrt_().add_(group["eps"])
        w.addcdiv_(m, root, value=-lr / (1 - b1 ** own["t"]))

torch.manual_seed(0)
params = [torch.nn.Parameter(torch.randn(n, 3)) for n in (2, 5)]
optimizer = {made}
rate = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)

def step():
    optimizer.zero_grad()
    sum((w * torch.arange(3)).cos().sum() for w in params).backward()
    optimizer.step()
    rate.step()
{more}
"""
ALL = "dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)"
DECAYED = "Mine(params, lr=0.02, weight_decay=0.3)"
MOVE = '        w.mul_(1 - lr * group["weight_decay"])'


@pytest.mark.parametrize(
    ("made", "update", "wanted"),
    [
        (DECAYED, MOVE, "AdamW(params, lr=0.02, betas=(0.9, 0.99), weight_decay=0.3, fused=True)"),
        ("Mine(params)", "        pass", "Adam(params, lr=3e-3, betas=(0.9, 0.99), fused=True)"),
    ],
)
def test_a_method_of_its_own_and_a_scheduler(tmp_path: Path, made: str, update: str, wanted: str) -> None:
    found = edited(tmp_path, update, made, ALL, code=DECAYS)
    assert found == f"optimizer = torch.optim.{wanted}"


@pytest.mark.parametrize(
    ("made", "update", "more"),
    [
        (DECAYED, "        lr = 2 * lr\n" + MOVE, ""),
        (DECAYED, "        w.mul_(1 - lr * 0.1)", ""),
        (DECAYED, '        grad = grad + group["weight_decay"] * w', ""),  # into the averages
        (DECAYED, "        pass", ""),
        ("Mine(params)", "        w.mul_(1 - lr * 0.1)", ""),
        (DECAYED, MOVE, "\ndef again():\n    optimizer.move(params[0], {}, {}, 0, 0)\n"),
    ],
)
def test_other_decays_are_left_alone(tmp_path: Path, made: str, update: str, more: str) -> None:
    with pytest.raises(Refused):
        edited(tmp_path, update, made, ALL, more, DECAYS)


def test_settings_that_are_torchs_own_stay_out(tmp_path: Path) -> None:
    made = "Mine(params, 1e-3, (0.9, 0.999), eps=1e-8)"
    assert edited(tmp_path, made=made) == "optimizer = torch.optim.Adam(params, fused=True)"


@pytest.mark.parametrize(
    ("facts"),
    [
        {"update": INSIDE},  # what is added to the root is corrected, too
        {"update": LERP.replace("m.lerp_", "p.mul_(0.999)\n                m.lerp_")},
        {"update": LERP.replace("(1 - b1**t)", "1")},
        {"update": LERP.replace('group["lr"]', '2 * group["lr"]')},
        {"defaults": "dict(lr=lr / 2, betas=betas, eps=eps)"},
        {"more": "\ndef resume():\n    optimizer.load_state_dict(torch.load('last.pt'))\n"},
        {"more": "\nclass Other(Mine):\n    pass\n"},
        {"more": "\ndef norms():\n    return [one['m'].norm() for one in optimizer.state.values()]\n"},
    ],
)
def test_others_are_left_alone(tmp_path: Path, facts: dict[str, str]) -> None:
    with pytest.raises(Refused):
        edited(tmp_path, **facts)


BOTH = """
def step():
    for one in (optimizer, other):
        one.zero_grad()
    sum((p * torch.arange(3)).cos().sum() for p in params).backward()
    optimizer.step()
    other.step()
"""


@pytest.mark.parametrize("rate", ["0.02", "5e-4"])
def test_all_optimizers_of_the_class_are_torchs(tmp_path: Path, rate: str) -> None:
    made = f"Mine(params[:1], lr=0.02)\nother = Mine(params[1:], lr={rate})"
    wanted = "optimizer = torch.optim.Adam(params[:1], lr=0.02, betas=(0.9, 0.99), eps=1e-7, fused=True)"
    assert edited(tmp_path, made=made, more=BOTH) == wanted
    assert f"other = torch.optim.Adam(params[1:], lr={rate}, betas" in (tmp_path / "edited.py").read_text()


LOADED = """
def resume({name}, path):
    {name}.load_state_dict(torch.load(path))
    return {name}
"""


def test_a_class_that_names_itself_in_a_script_that_loads_a_model(tmp_path: Path) -> None:
    code = CODE.replace("super().__init__(params", "super(Mine, self).__init__(params")
    edited(tmp_path, code=code, more=LOADED.format(name="model"))


@pytest.mark.parametrize(
    "more",
    [LOADED.format(name="part") + "\nagain = lambda: resume(optimizer, 'x')\n", LOADED.format(name="opt")],
)
def test_a_state_that_may_be_the_optimizer_s_is_not_lost(tmp_path: Path, more: str) -> None:
    with pytest.raises(Refused):
        edited(tmp_path, more=more)
