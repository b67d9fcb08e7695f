"""Loops over tensors that become calls for all of them, recorded and run before and after the edit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests import samples
from warpline.rulekit import Context
from warpline.rulekit.foreach import over_lists
from warpline.syntax.edits import Refused
from warpline.text.edits import apply
from warpline.wire.dataflow import Dataflow
from warpline.wire.facts import Memory

#: Three weights, with gradients and averages; ``step`` is what is recorded. `{loop}` is its body.
SCRIPT = """\
import math
import torch
from collections import defaultdict

torch.manual_seed(0)
params = [torch.randn(n, 3, requires_grad=True) for n in (2, 3, 4)]
for p in params:
    p.grad = torch.randn_like(p)
averages = [torch.randn(n, 3) for n in (2, 3, 4)]
flat = torch.randn(9)
state = defaultdict(dict)
lr, beta, decay, noise, group = 0.1, 0.9, 0.01, torch.randn(3), {{"lr": 0.2, "params": params}}
scales = [0.5, 0.25, 0.125]
names, log = dict(zip("abc", params)), {{}}
shadow = {{name: one.detach().clone() for name, one in names.items()}}
{before}

@torch.no_grad()
def step():
{loop}

def seen():
    kept = [one for p in params for one in (p, p.grad, *state[p].values()) if torch.is_tensor(one)]
    return [one.detach().clone() for one in (*kept, *averages, *shadow.values(), flat)]
"""


def run(text: str, steps: int) -> list[torch.Tensor]:
    names: dict[str, Any] = {}
    exec(compile(text, "/example/loop.py", "exec"), names)
    for _ in range(steps):
        names["step"]()
    found: list[torch.Tensor] = names["seen"]()
    return found


def recorded(path: Path) -> Dataflow:
    """The second step: the first one may make the state."""
    from warpline.capture.runner.dataflow.mode import Recording
    from warpline.capture.runner.lines.names import QualifiedNames
    from warpline.capture.runner.lines.userfiles import UserFiles

    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    names["step"]()
    sites: Any = SimpleNamespace(user_files=UserFiles([str(path.parent)], []), names=QualifiedNames())
    recording = Recording(sites)
    recording.start()
    names["step"]()
    return recording.stop(False)


def _last(loop: str) -> str:
    """The last line of the loop, without what comes after it."""
    return [line for line in loop.splitlines() if line.startswith("    ")][-1]


def edited(
    tmp_path: Path, loop: str, before: str = "", device: str = "cuda", **recording: Any
) -> tuple[str, str, str]:
    """The script, what the edit makes of it, and how safe it is called."""
    body = "\n".join(f"    {line}" for line in loop.strip().splitlines())
    path = tmp_path / "loop.py"
    path.write_text(text := SCRIPT.format(loop=body, before=before))
    profile = samples.profile()
    manifest = replace(profile.manifest, device=replace(profile.manifest.device, kind=device))
    facts = replace(profile.facts, dataflow=recorded(path), **recording)
    profile = replace(profile, manifest=manifest, facts=facts, sources={str(path): text})
    context = Context(profile, lambda file: text if file == str(path) else None)
    inner = next(number for number, line in enumerate(text.splitlines(), 1) if line == "    " + _last(loop))
    fix = over_lists(context, context.source(str(path)), inner)
    return text, apply(text, fix.edits), fix.applicability


SAME = {
    "average": """
for mine, theirs in zip(averages, params):
    mine.mul_(beta).add_(theirs.detach(), alpha=1 - beta)
""",
    "copied": """
for mine, theirs in zip(averages, params):
    mine.copy_(theirs.data)
""",
    "decayed": """
for p in params:
    p.data.mul_(1 - lr * decay)
    p.data -= lr * p.grad
""",
    "left out": """
for p in group["params"]:
    if p.grad is None:
        continue
    d_p = p.grad.data
    p.data.add_(d_p, alpha=-group["lr"])
""",
    "momentum": """
for number, p in enumerate(params):
    own = state[p]
    if len(own) == 0:
        own["mean"] = torch.zeros_like(p)
        own["square"] = torch.zeros_like(p)
    mean, square = own["mean"], own["square"]
    # The means.
    mean.mul_(beta).add_(p.grad, alpha=1 - beta)
    square.mul_(beta).addcmul_(p.grad, p.grad, value=1 - beta)  # of squares
    bottom = square.sqrt().add_(1e-8)
    # The step.
    p.addcdiv_(mean, bottom, value=-lr * math.sqrt(1 - beta))
""",
    "rebound": """
for p in params:
    grad = p.grad
    grad = grad + decay * p
    grad = grad.clamp_min(-0.5)
    p.sub_(2 * grad / 3, alpha=lr)
""",
    "negated": """
for p, mine in zip(params, averages):
    update = -torch.sign(p.grad * 2)
    mine += update
    p.lerp_(mine, weight=beta)
""",
    "number of the round's own line": """
for p in params:
    rate = group["lr"]
    p.mul_(rate)
""",
    "another name for the same": """
for p, mine in zip(params, averages):
    grad = p.grad
    grad.add_(p, alpha=decay)
    update = grad
    update = update * 2
    mine.mul_(beta).add_(grad)
    p.sub_(update, alpha=lr)
""",
    "a branch for all": """
for p in params:
    d_p = p.grad
    if decay != 0:
        d_p = d_p.add(p, alpha=decay)
    p.add_(d_p, alpha=-lr)
""",
    "unpacked": """
for p, mine in zip(params, averages):
    grad, rate, *more, late = p.grad, lr, *(beta, decay), mine
    p.add_(grad, alpha=-rate)
    late.mul_(beta)
""",
    "chosen": """
for p in params:
    if p.grad is not None:
        assert p.requires_grad
        mean = p.grad
        p.data.add_(mean, alpha=-lr)
""",
    "of a kind": """
for number, mine in enumerate(averages):
    if mine.dtype.is_floating_point and mine.dim() == 2:
        mine *= beta
        mine += (1 - beta) * params[number].detach()
""",
    "kept in a dict": """
for name, p in names.items():
    if p.requires_grad:
        assert name in shadow
        new_average = (1.0 - beta) * p.data + beta * shadow[name]
        shadow[name] = new_average.clone()
""",
    "its data": """
for mine, p in zip(averages, params):
    mine.data = mine.data * beta + p.data * decay
""",
    "kept between bounds": """
for p in params:
    p.grad.data.clamp_(-0.1, 0.2)
    p.clamp_(max=beta)
""",
    "by a tensor with one number": """
scale = beta / (noise.norm() + 1)
for p in params:
    e_w = p.grad * scale.to(p)
    p.add_(e_w * scale)
""",
    "norms that are read": """
total = 0.0
for name, p in names.items():
    if p.grad is None:
        continue
    param_norm = p.grad.data.norm(2)
    log[name] = param_norm.item()
    total += param_norm.item() ** 2
averages[0].mul_(total)
""",
    "a norm of each part": """
for number, p in enumerate(params):
    log[number] = round(torch.norm(p, 1).item(), 4)
    if log[number] > 1:
        log["last"] = number
averages[0].mul_(log[0]).add_(log["last"])
""",
    "collected": """
norms, means = [], []
for p in params:
    update = p.grad * 2
    norms.append(update.norm())
    means.append(p.grad.mean().item())
averages[0].mul_(torch.stack(norms).norm()).add_(sum(means))
""",
    "in a loop over groups": """
for own in [group, {"lr": 0.3, "params": averages}]:
    for p in own["params"]:
        p.mul_(beta)
""",
}


EXACT = {
    "copied",
    "decayed",
    "of a kind",
    "kept in a dict",
    "its data",
    "number of the round's own line",
    "in a loop over groups",
    "kept between bounds",
    "by a tensor with one number",
}


@pytest.mark.parametrize("device", ["cuda", "cpu"])
@pytest.mark.parametrize("name", SAME)
def test_the_loop_over_lists_gives_the_same_numbers(tmp_path: Path, name: str, device: str) -> None:
    text, after, applicability = edited(tmp_path, SAME[name], device=device)
    assert "_foreach_" in after and "_.append" not in after
    # What multiplies and adds may round once or twice in the kernel of a device.
    assert (applicability == "safe") is (name in EXACT or device == "cpu")
    for one, other in zip(run(text, 3), run(after, 3), strict=True):
        assert torch.equal(one, other)


def test_a_cpu_converts_a_number_once(tmp_path: Path) -> None:
    """A tensor of the tensors' type; not where they have another one, or the number is a tensor already."""
    loop = "for p in params:\n    p.mul_(beta)\n"
    assert "torch._foreach_mul_(ps, torch.tensor(beta))" in edited(tmp_path, loop, device="cpu")[1]
    double = "params = [p.detach().double() for p in params]"
    assert "torch._foreach_mul_(ps, beta)" in edited(tmp_path, loop, double, "cpu")[1]
    held = "beta = torch.tensor(beta)"
    assert "torch._foreach_mul_(ps, beta)" in edited(tmp_path, loop, held, "cpu")[1]


def test_comments_stay_with_what_they_are_about(tmp_path: Path) -> None:
    _, after, _ = edited(tmp_path, SAME["momentum"])
    assert (
        after[after.index("    if means:") : after.index("def seen")].rstrip()
        == """\
    if means:
        # The means.
        torch._foreach_mul_(means, beta)
        torch._foreach_add_(means, grads, alpha=1 - beta)
        torch._foreach_mul_(squares, beta)
        torch._foreach_addcmul_(squares, grads, grads, value=1 - beta)  # of squares
        bottoms = torch._foreach_sqrt(squares)
        torch._foreach_add_(bottoms, 1e-8)
        # The step.
        torch._foreach_addcdiv_(ps, means, bottoms, value=-lr * math.sqrt(1 - beta))"""
    )


def test_comments_stay_with_the_numbers_that_are_read(tmp_path: Path) -> None:
    loop = """
for name, p in names.items():
    # Each.
    log[name] = p.norm().item()  # one
    # The last.
    log[0] = p.norm().item() * 2  # two
"""
    before, after, _ = edited(tmp_path, loop)
    assert all(after.count(one) == 1 for one in ("# Each.", "# one", "# The last.", "# two"))
    assert all(map(torch.equal, run(before, 2), run(after, 2)))


def test_lists_that_would_outlive_the_loop_are_let_go(tmp_path: Path) -> None:
    loop = """
for p, mine in zip(params, averages):
    twice = p.grad * 2
    mine.add_(twice)
other = 1
"""
    text, after, _ = edited(tmp_path, loop)
    assert "        del grads, mines, twices\n    other = 1\n" in after
    assert all(map(torch.equal, run(text, 2), run(after, 2)))


@pytest.mark.parametrize("start", ["0", "torch.zeros(())"])
@pytest.mark.parametrize("add", ["total += {}", "total = total + {}", "total = {} + total"])
@pytest.mark.parametrize("one", ["p.grad.norm() ** 2", "(p * p.grad).sum()"])
def test_numbers_are_added_up_at_once(tmp_path: Path, start: str, add: str, one: str) -> None:
    loop = f"""
total = {start}
for p in params:
    {add.format(one)}
averages[0].mul_(total)
"""
    before, after, applicability = edited(tmp_path, loop)
    assert "total += torch.stack(" in after and applicability == "unsafe"
    torch.testing.assert_close(run(after, 3), run(before, 3))


REFUSED = [
    # What is read decides on the next round.
    ("no form for lists", """
for name, p in names.items():
    if name in log:
        continue
    log["b"] = p.norm().item()
"""),
    ("no form for lists", """
for p in params:
    if p.norm().item() > 1:
        p.mul_(0.5)
"""),
    ("no form for lists", """
for p in params:
    if p.norm().item() > 1:
        break
"""),
    ("call `torch._foreach", """
for p in params:
    means = p.norm()
    log[0] = float(means) + means.item()
"""),
    # Numbers of other types, or a piece of a tensor.
    ("of one type", """
for number, p in enumerate([*params, flat.double()]):
    log[number] = p.norm().item()
"""),
    ("of one type", """
total = 0
for p in params:
    total += p[0] * 2
"""),
    # The sum so far is read.
    ("no form for lists", """
total = 0
for p in params:
    total += p.norm() * total
"""),
    # A tensor is in its lists twice: it would be scaled twice before anything is added.
    ("twice", """
for mine, theirs in zip([*averages, averages[0]], [*params, params[0]]):
    mine.mul_(beta).add_(theirs, alpha=1 - beta)
"""),
    ("twice", """
for part in [flat[:6], flat[3:]]:
    part.mul_(beta)
    part.add_(1)
"""),
    ("what another one changes", """
for mine, before in zip(averages[1:], averages):
    mine.mul_(before[0])
"""),
    ("call `torch._foreach", """
for p, scale in zip(params, scales):
    p.mul_(scale)
"""),
    ("no form for lists", """
for p in params:
    p.mul_(1 / len(p))
"""),
    ("is read after", """
for p in params:
    update = p.grad * 2
    p.add_(update)
return update
"""),
    ("no form for lists", """
for p in params:
    p.add_(torch.randn_like(p))
"""),
    ("no form for lists", """
for p in params:
    p.mul_(2)
    if p.sum() > 0:
        p.mul_(2)
"""),
    ("no form for lists", """
for p in params:
    p.grad = p.grad * 2
    p.data = p.data * 2
"""),
    ("no form for lists", """
for p in params:
    p.grad.mul_(p.mul_(2))
"""),
    ("no form for lists", """
for p in params:
    if p.sum() > 0:
        continue
    p.mul_(2)
"""),
    ("no form for lists", """
for p in params:
    p.add_(1)
    break
"""),
    ("the one before", """
for p in params:
    lr += 1
    p.mul_(2)
"""),
    ("call `torch._foreach", """
for p in params:
    p.add_(noise)
"""),
    # A round reads what the one before stored.
    ("what another one changes", """
for name, p in [*names.items(), ("a", params[0])]:
    shadow[name] = shadow[name] * beta
"""),
    ("no form for lists", """
for name, p in names.items():
    shadow[name] = shadow[name] * beta
    p.add_(shadow[name])
"""),
    ("no form for lists", """
for name, p in names.items():
    if p.requires_grad:
        shadow[name] = shadow[name] * beta
return name
"""),
    ("no form for lists", """
for p in params:
    if p.requires_grad:
        p.mul_(beta)
    else:
        p.mul_(lr)
"""),
    ("no form for lists", """
for p in params:
    if p.requires_grad:
        state[p]["mean"] = p.grad * 2
    p.mul_(beta)
"""),
    # Nothing shows what a branch does that was not taken, or holds the name where it is not.
    ("call `torch._foreach", """
for p in params:
    if decay == 0:
        p.mul_(beta)
    p.add_(1)
"""),
    ("no form for lists", """
for p in params:
    p.mul_(beta)
    if decay != 0:
        update = p * 2
        p.add_(update)
"""),
    ("something else is computed", """
for p in params:
    if p.grad[0, 0]:
        p.mul_(beta)
"""),
    ("something else is computed", """
for mine, more in zip(averages, (p.detach() * averages[2].sum() for p in params)):
    mine.add_(more)
"""),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "loop"), REFUSED)
def test_other_loops_are_left_alone(tmp_path: Path, reason: str, loop: str) -> None:
    if "lr +=" in loop:
        loop = f"global lr{loop}"
    with pytest.raises(Refused, match=reason):
        edited(tmp_path, loop)


def test_no_lists_where_the_device_has_no_room_for_them(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no room"):
        edited(tmp_path, SAME["rebound"], memory=Memory(peak_bytes=9900.0, total_bytes=10000.0))


def test_numbers_that_a_step_counter_gives_are_no_tensors(tmp_path: Path) -> None:
    loop = """
for p in params:
    state[p]["step"] += 1
    p.add_(1)
"""
    with pytest.raises(Refused):
        edited(tmp_path, loop, before='for p in params:\n    state[p]["step"] = 0')


@pytest.mark.parametrize(
    ("loop", "call"),
    [
        ("mine.copy_(beta * mine + (1 - beta) * theirs)", "lerp_(mines, theirs_list, 1 - beta)"),
        ("mine.copy_(theirs.detach() * 0.25 + mine * 0.75)", "lerp_(mines, theirs_list, 0.25)"),
        ("mine.data.copy_((1 - beta) * mine.data + beta * theirs.data)", "lerp_(mines, theirs_list, beta)"),
        ("mine.data = mine.data * beta + theirs.data * (1 - beta)", "lerp_(mines, theirs_list, 1 - beta)"),
    ],
)
def test_an_average_that_is_copied_or_new_data_is_one_call(tmp_path: Path, loop: str, call: str) -> None:
    before, after, applicability = edited(
        tmp_path, f"for mine, theirs in zip(averages, params):\n    {loop}\n"
    )
    assert call in after and after.count("_foreach_") == 1
    assert applicability == "unsafe"  # it is rounded otherwise
    torch.testing.assert_close(run(after, 3), run(before, 3))


def test_no_average_is_made_in_data_that_two_tensors_have(tmp_path: Path) -> None:
    loop = "for mine, theirs in zip(averages, params):\n    mine.data = 0.9 * mine.data + 0.1 * theirs.data\n"
    same = "for mine, theirs in zip(averages, params):\n    mine.data = theirs.data"
    before, after, _ = edited(tmp_path, loop, before=same)
    assert "lerp" not in after
    torch.testing.assert_close(run(after, 3), run(before, 3))


@pytest.mark.parametrize(
    "loop",
    [
        "mine.copy_(beta * mine + (1 - decay) * theirs)",
        "mine.copy_(beta * theirs + (1 - beta) * theirs)",
        "mine.copy_(beta * mine + 0.2 * theirs)",
        "mine.copy_(beta * mine + (1 - beta) * theirs[:1])",
    ],
)
def test_another_sum_is_no_average(tmp_path: Path, loop: str) -> None:
    try:
        before, after, _ = edited(tmp_path, f"for mine, theirs in zip(averages, params):\n    {loop}\n")
    except Refused:
        return
    assert "lerp" not in after
    torch.testing.assert_close(run(after, 3), run(before, 3))
