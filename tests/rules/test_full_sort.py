"""The edit of a sort whose first entries are read: functions that are recorded, and run before and after."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests import samples
from warpline.model.change import Replace, Scale
from warpline.model.profile import LineCost, Op
from warpline.rulekit import Context, Draft
from warpline.rules.full_sort import FullSort
from warpline.text.edits import apply

SCRIPT = """\
import torch

torch.manual_seed(0)
table, K = torch.randn(6, 40), 3

class Near:
    def __init__(self, k):
        self.k = k

    def order(self, x):
        return x.argsort(-1)

    def ranked(self, x):
        return torch.sort(x, dim=-1)

    def near(self, x):
        return self.order(x)[..., 1:self.k + 1]

    def all(self, x, k):
{body}

def step():
    with torch.{mode}():
        return {call}
"""


def edited(tmp_path: Path, body: str, call: str, mode: str = "no_grad") -> tuple[str, str, str]:
    """The script before and after the edit, and how safe it is called ("" without one)."""
    text, draft = drafted(tmp_path, body, call, mode)
    if not draft.fixes:
        return text, text, ""
    return text, apply(text, draft.fixes[0].edits), draft.fixes[0].applicability


def drafted(tmp_path: Path, body: str, call: str, mode: str = "no_grad") -> tuple[str, Draft]:
    """The script, and what is said of its only sort."""
    from warpline.capture.runner.dataflow.mode import Recording
    from warpline.capture.runner.lines.names import QualifiedNames
    from warpline.capture.runner.lines.userfiles import UserFiles

    path = tmp_path / "sorts.py"
    text = SCRIPT.format(body="\n".join(f"        {one}" for one in body.splitlines()), call=call, mode=mode)
    path.write_text(text)
    names: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), names)
    sites: Any = SimpleNamespace(user_files=UserFiles([str(tmp_path)], []), names=QualifiedNames())
    recording = Recording(sites)
    recording.start()
    names["step"]()
    flow = recording.stop(False)
    costs = tuple(
        LineCost(str(path), line, "f", step_ms=5.0, device_ms=5.0, calls=1.0, ops=(op,))
        for line in range(1, len(text.splitlines()) + 1)
        for op in [Op("aten::sort", "forward", count=1.0, cpu_ms=1.0, device_ms=5.0)]
    )
    profile = samples.profile({str(path): text}, lines=costs)
    profile = replace(profile, facts=replace(profile.facts, dataflow=flow))
    context = Context(profile, lambda file: text if file == str(path) else None)
    (draft,) = FullSort().find(context)
    return text, draft


def run(text: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(text, "/example/sorts.py", "exec"), names)
    return names["step"]()


@pytest.mark.parametrize(
    ("body", "after", "safe"),
    [
        (
            "return x.sort(1).values[:, :3]",
            "return x.topk(min(3, x.shape[1]), dim=1, largest=False).values",
            True,
        ),
        (
            "return x.argsort(descending=True)[..., :k]",
            "return x.topk(min(k, x.shape[-1])).indices",
            False,
        ),
        (
            "return torch.sort(x, dim=0, descending=True)[0][:1]",
            "return torch.topk(x, min(1, x.shape[0]), dim=0)[0]",
            True,
        ),
        (
            "low = torch.msort(x)\nreturn low[:1]",
            "low = torch.topk(x, min(1, x.shape[0]), dim=0, largest=False).values",
            True,
        ),
        ("return x.sort().values[:, 0]", "return x.topk(1, largest=False).values[:, 0]", True),
        (  # names that had other values before, and have them after
            "x, at = x.sort(dim=1)\nx, at = x[:, :3], at[:, :3]\nreturn x.exp() / x.sum(), at",
            "x, at = x.topk(min(3, x.shape[1]), dim=1, largest=False)",
            False,
        ),
        (
            "ordered, at = torch.sort(x)\nreturn ordered.narrow(-1, 0, k), at.narrow(1, 0, k)",
            "ordered, at = torch.topk(x, k, largest=False)",
            False,
        ),
        (
            "number = k + 1\nbest = x.sort(-1, True)\nreturn best.values[:, :number]",
            "best = x.topk(min(number, x.shape[-1]))",
            True,
        ),
        (
            "return (x * 2).sort(1).values.narrow(1, 0, k)",
            "return (x * 2).topk(k, dim=1, largest=False).values",
            True,
        ),
        (
            "return (x * 2).sort(1).values[:, :k]",
            "unsorted = x * 2\n        "
            "return unsorted.topk(min(k, unsorted.shape[1]), dim=1, largest=False).values",
            True,
        ),
        (
            "near = torch.argsort(torch.cdist(x.T, x.T))\nreturn near[:, 1:k + 1]",
            "values = torch.cdist(x.T, x.T)\n        "
            "near = torch.topk(values, min(k + 1, values.shape[-1]), largest=False).indices",
            False,
        ),
    ],
)
@pytest.mark.parametrize("mode", ["no_grad", "inference_mode", "enable_grad"])
def test_only_the_entries_that_are_read_are_selected(
    tmp_path: Path, body: str, after: str, safe: bool, mode: str
) -> None:
    text, changed, applicability = edited(tmp_path, body, "Near(3).all(table, 3)", mode)
    assert f"        {after}\n" in changed
    if mode == "enable_grad":
        assert applicability == "unsafe"  # of equal entries others may get the gradient
    elif mode == "no_grad":
        assert applicability == ("safe" if safe else "unsafe")
    before, now = run(text), run(changed)
    pairs = zip(before, now, strict=True) if isinstance(before, tuple) else [(before, now)]
    assert all(torch.equal(one, other) for one, other in pairs)


def test_the_number_is_taken_from_the_caller_of_the_same_object(tmp_path: Path) -> None:
    text, after, _ = edited(tmp_path, "pass", "Near(3).near(table)")
    assert "return x.topk(min(self.k + 1, x.shape[-1]), largest=False).indices" in after
    assert torch.equal(run(text), run(after))


OWN = "values, at = self.ranked(x)\nreturn values.narrow(1, 0, self.k), at.narrow(1, 0, self.k)"
PASSED = "best = self.ranked(x)\nreturn best.values[:, :k + 1]"
NESTED = """\
def places(v):
    ordered, at = v.sort(-1, True)
    return at
def twice(v):
    return places(v)
return twice(x)[:, :k]
"""


@pytest.mark.parametrize(
    ("body", "sort", "call"),
    [
        (OWN, "return torch.topk(x, self.k, largest=False)", "self.ranked(x)"),
        (PASSED, "torch.topk(x, min(count, x.shape[-1]), largest=False)", "self.ranked(x, count=k + 1)"),
        (PASSED.replace("k + 1", "4"), "torch.topk(x, min(4, x.shape[-1]), largest=False)", "self.ranked(x)"),
        (NESTED.replace("twice(x)", "places(x)").replace("return places(v)", "return v"),
         "ordered, at = v.topk(min(count, v.shape[-1]))", "return places(x, count=k)[:, :k]"),
    ],
)  # fmt: skip
def test_the_only_caller_reads_parts_of_what_a_function_returns(
    tmp_path: Path, body: str, sort: str, call: str
) -> None:
    text, after, applicability = edited(tmp_path, body, "Near(3).all(table, 3)")
    assert sort in after and call in after
    assert applicability == ("safe" if body.startswith("best") else "unsafe")
    before, now = run(text), run(after)
    pairs = zip(before, now, strict=True) if isinstance(before, tuple) else [(before, now)]
    assert all(torch.equal(one, other) for one, other in pairs)


@pytest.mark.parametrize(
    "body",
    [
        OWN.replace("self.k), at", "self.k + 1), at"),  # two numbers
        OWN + ", len(values)",
        OWN.replace("return", "self.k = 2\nreturn"),
        OWN.replace("self.ranked(x)", "self.ranked(x) if k else self.ranked(x + 1)"),
        OWN.replace("self.ranked(x)", "map(torch.clone, self.ranked(x))"),
        PASSED.replace("return", "k = 1\nreturn"),
        PASSED.replace("self.ranked(x)", "self.ranked(*[x])"),
        NESTED,  # both functions would have to pass it on
        NESTED.replace("twice(x)", "places(x)")
        .replace("return places(v)", "return v")
        .replace("(v):", "(v, *more):"),
    ],
)
def test_other_callers_stay(tmp_path: Path, body: str) -> None:
    text, after, _ = edited(tmp_path, body, "Near(3).all(table, 3)")
    assert text == after


@pytest.mark.parametrize(
    ("body", "call"),
    [
        # The number comes after the sort, or is another one at the slice.
        ("best = x.sort(1).values\nk = 2\nreturn best[:, :k]", "Near(3).all(table, 3)"),
        ("best = x.sort(1).values\nreturn best[:, :len(x)]", "Near(3).all(table, 3)"),
        # Something else may read the rest.
        ("best = x.sort(1).values\nif k > 3: print(best)\nreturn best[:, :k]", "Near(3).all(table, 3)"),
        ("self.best = x.sort(1).values\nreturn self.best[:, :k]", "Near(3).all(table, 3)"),
        ("return self.order(x)", "Near(3).near(table)"),
        # A name may have another value by then.
        (
            "if k:\n    x = x.sort(1).values\nelse:\n    x = x[:, :2]\nreturn x[:, :k]",
            "Near(3).all(table, 3)",
        ),
        (
            "best = x.sort(1).values\nif k > 5:\n    best = best * 2\nreturn best[:, :k]",
            "Near(3).all(table, 3)",
        ),
        # The last ones come in another order, and a stable sort tells which of equal ones comes first.
        ("return x.sort(1).values[:, -3:]", "Near(3).all(table, 3)"),
        ("return x.sort(dim=1, stable=True).values[:, :k]", "Near(3).all(table, 3)"),
        # What is sorted is not the first that the statement computes, or not always.
        ("return self.k + (x * 2).sort(1).values[:, :k]", "Near(3).all(table, 3)"),
        ("return x[:, :k] if k > 3 else (x * 2).sort(1).values[:, :k]", "Near(3).all(table, 3)"),
        ("return [(y * 2).sort().values[:k] for y in x[:1]]", "Near(3).all(table, 3)[0]"),
        ("return x.sort(1, k > 3).values[:, :k]", "Near(3).all(table, 3)"),
    ],
)
def test_other_sorts_stay(tmp_path: Path, body: str, call: str) -> None:
    text, after, _ = edited(tmp_path, body, call)
    assert text == after


def test_a_slice_of_more_than_there_is_still_works(tmp_path: Path) -> None:
    _, after, _ = edited(tmp_path, "return x.argsort()[..., :k]", "Near(3).all(table, 3)")
    names: dict[str, Any] = {}
    exec(compile(after, "/example/sorts.py", "exec"), names)
    assert torch.equal(names["Near"](3).all(torch.tensor([[2.0, 1.0]]), 3), torch.tensor([[1, 0]]))


def test_other_calls_of_the_line_may_have_fewer_entries(tmp_path: Path) -> None:
    call = "(Near(3).near(table), Near(3).near(table[:, :5]), Near(3).near(table[:, :2]))"
    text, after, _ = edited(tmp_path, "pass", call)
    assert "return x.topk(min(self.k + 1, x.shape[-1]), largest=False).indices" in after
    assert all(torch.equal(one, other) for one, other in zip(run(text), run(after), strict=True))
    ranks = "(Near(3).near(table), Near(3).near(table[0]))"
    assert edited(tmp_path, "pass", ranks)[1] == SCRIPT.format(
        body="        pass", call=ranks, mode="no_grad"
    )


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ("return x.argsort(descending=True)[..., :k]", ("1", "3", "largest")),
        ("return torch.sort(x, dim=0)[0][:1]", ("0", "1")),
    ],
)
def test_topk_is_tried_where_the_line_has_one_kind_of_sort(
    tmp_path: Path, body: str, asked: tuple[str, ...]
) -> None:
    change = drafted(tmp_path, body, "Near(3).all(table, 3)")[1].change
    assert isinstance(change, Replace) and (change.by, change.options) == ("topk", asked)
    assert change.shares == (1.0,)
    two = "return x.sort(1).values[:, :3], x.sort(1).values.sum()"
    assert isinstance(drafted(tmp_path, two, "Near(3).all(table, 3)")[1].change, Scale)
