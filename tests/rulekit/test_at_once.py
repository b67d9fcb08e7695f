"""Comprehensions that wait for each of many values: the edit reads them all at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.annotated import read_example
from tests.rules.test_no_breakage import fixed
from warpline.model.change import RemoveSyncs
from warpline.model.profile import Kernel, Profile
from warpline.rulekit.at_once import all_but_one

CODE = """\
#> totals idle_ms=8
import torch
def run(net, {names}):
    params, few, more = list(net.parameters()), iter(net.parameters()), net.parameters()
    net(torch.ones(1, 3)).sum().backward()  #> cost device_ms=12 idle_ms=8 step_ms=20
    return {given}
    #^ cost calls=1 cpu_ms=9 sync_ms=9 syncs={syncs} step_ms=1; op aten::item dtypes={dtypes} shapes={shapes}
"""
NAMED = "{name: p.grad.norm().item() for name, p in net.named_parameters()}"


def code(given: str, *, syncs: int = 148, dtypes: str = "float", shapes: str = "[[]]") -> str:
    return CODE.format(given=given, syncs=syncs, dtypes=dtypes, shapes=shapes, names="scale=2")


def ran(text: str) -> Any:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Linear(5, 4))
    names: dict[str, Any] = {}
    exec(text, names)
    return names["run"](net)


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (NAMED, "torch._foreach_norm([p.grad for name, p in net.named_parameters()])).tolist()))"),
        ("{p: p.norm(2).item() for p in params}", "dict(zip([p for p in params], torch.stack("),
        (
            "[p.grad.data.abs().max().item() for p in more]",
            "torch.stack([p.grad.data.abs().max() for p in more])",
        ),
        (
            "[torch.norm(p.grad).item() for p in few]",
            "torch.stack(torch._foreach_norm([p.grad for p in few])",
        ),
        (
            "[p.norm(1).item() for p in params]",
            "torch.stack(torch._foreach_norm([p for p in params], 1)).tolist()",
        ),
        ("[torch.linalg.norm(p).item() for p in params]", "torch._foreach_norm([p for p in params])"),
        (
            "sum(p.grad.norm().item() ** 2 for p in params) ** 0.5",
            "sum(value ** 2 for value in torch.stack(torch._foreach_norm([p.grad for p in params]))",
        ),
        ("max((p.mean().item() for p in params if p.grad is not None), default=0)", "if p.grad is not None]"),
        ("{round(p.mean().item(), 3) for p in params}", "{round(value, 3) for value in torch.stack("),
    ],
)
def test_one_wait_for_all_values(given: str, written: str) -> None:
    (text,) = fixed(code(given), "sync-in-step")
    assert written in text
    before, after = ran(read_example(code(given)).text), ran(text)
    assert type(before) is type(after)
    if isinstance(before, dict):
        assert isinstance(after, dict)
        assert len(before) == len(after) == 4
        before, after = [*before.values()], [*after.values()]
    elif isinstance(before, set):
        assert isinstance(after, set)
        before, after = sorted(before), sorted(after)
    assert after == pytest.approx(before, rel=1e-5)
    assert isinstance(before, float) or {type(one) for one in after} == {float}


@pytest.mark.parametrize(
    "given",
    [
        code("{p: p.mean().item() for p in few}"),
        code("{p: p.mean().item() for p in map(torch.clone, params)}"),
        code("{p: p.mean().item() * scale for p in params}"),
        code("[p.mean().item() / p.numel() for p in params]"),
        code("[p.mean().item() for net in [net] for p in net.parameters()]"),
        code("[p.mean().cpu() for p in params]"),
        code("[p for p in params if p.mean().item() > 0]"),
        code("list(map(lambda p: p.mean().item(), params))"),
        code("[p[:1].item() for p in params]", shapes="[[1]]"),
        code("[p.mean().item() for p in params]", syncs=1),
        code("[p.mean().item() for p in params]").replace(
            "dtypes=float", "dtypes=float shapes=[[]]; op aten::item dtypes=double"
        ),
        code("[p.mean().item() for p in params]").replace("op aten::item", "op aten::other"),
    ],
)
def test_none_where_the_values_or_their_order_may_differ(given: str) -> None:
    (told,) = fixed(given, "sync-in-step")
    assert "No edit is offered" in told


def test_older_versions_have_no_norm_of_a_list() -> None:
    def older(profile: Profile) -> Profile:
        return replace(profile, manifest=replace(profile.manifest, torch_version="2.0.1"))

    (text,) = fixed(code("[p.norm().item() for p in params]"), "sync-in-step", older)
    assert "return torch.stack([p.norm() for p in params]).tolist()" in text


def test_the_change_that_is_promised_keeps_one_wait() -> None:
    example = read_example(code(NAMED))
    cost = next(one for one in example.profile.lines if one.syncs)
    copies = Kernel("Memcpy DtoH", "forward", 148.0, 0.2, kind="copy")
    assert all_but_one(replace(cost, kernels=(copies,))) == RemoveSyncs((cost.place,), keep=1 / 296)


LOOP = CODE.replace("syncs={syncs} step_ms=1", "step_ms=9 calls=1").replace(
    "op aten::item", "op aten::linalg_vector_norm count=148"
)


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (
            "torch.stack([p.grad.detach().norm(2) for p in params if p.dim() > 1]).norm()",
            "torch.stack(torch._foreach_norm([p.grad.detach() for p in params if p.dim() > 1])).norm()",
        ),
        (
            "sum(torch.norm(p) ** 2 for p in params)",
            "sum(norm ** 2 for norm in torch._foreach_norm([p for p in params]))",
        ),
        (
            "max(q.norm(p=1) for p in [params] for q in p)",
            "max(torch._foreach_norm([q for p in [params] for q in p], 1))",
        ),
        (
            "[torch.norm(p.grad).to('cpu') for p in params]",
            "[norm.to('cpu') for norm in torch._foreach_norm([p.grad for p in params])]",
        ),
    ],
)
def test_all_norms_by_one_call(given: str, written: str) -> None:
    text = LOOP.format(given=given, dtypes="float", shapes="[[5,3]]", names="scale=2")
    (after,) = fixed(text, "parameter-loop")
    assert written in after
    for one, other in (
        zip(ran(after), ran(text), strict=True) if given[0] == "[" else [(ran(after), ran(text))]
    ):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    "given",
    [
        "[p.norm() / p.numel() for p in params]",
        "[(p.norm(), p.norm(1)) for p in params]",
        "[p.norm(dim=0) for p in params]",
        "[torch.linalg.norm(p, 2) for p in params if p.dim() > 1]",
    ],
)
def test_what_is_more_than_a_norm_stays(given: str) -> None:
    text = LOOP.format(given=given, dtypes="float", shapes="[[5,3]]", names="scale=2")
    assert not any("_foreach_norm" in one for one in fixed(text, "parameter-loop"))
