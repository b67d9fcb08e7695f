"""A model is asked for float64 by name, and its data is float64 because NumPy's arrays are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.annotated import read_example, read_project, texts
from warpline.rulekit import Context, Draft
from warpline.rules import rule_named
from warpline.text.edits import apply
from warpline.wire.births import Executed

SCRIPT = """\
import torch
from loans import load

x, y = load()
x = torch.from_numpy(x).cuda()
y = torch.from_numpy(y).cuda()
model = torch.nn.Linear(512, 512).double().cuda()
for step in range(100):
    loss = (model(x) - y).square().mean()
    #^ cost device_ms=9; op aten::mm device_ms=9 dtypes=double,double shapes=[[64,512],[512,512]]
    #^ node aten.mm.default args=[%2,%3] shape=[64,512]; node aten.sub.Tensor args=[%0,%4] shape=[64,512]
    #> tensor %2 shape=[64,512] dtype=float64; tensor %3 shape=[512,512] dtype=float64 parameter=true
    #> tensor %4 shape=[64,512] dtype=float64
"""


def drafted(script: str) -> tuple[str, Draft]:
    example = read_example(script)
    rule = rule_named("float64-on-device")
    assert rule is not None
    (draft,) = rule.find(Context(example.profile, texts(example)))
    return example.text, draft


def test_model_and_data_are_cast_together() -> None:
    text, draft = drafted(SCRIPT)
    changed = apply(text, draft.fixes[0].edits)
    assert "from_numpy(x).float().cuda()" in changed
    assert "from_numpy(y).float().cuda()" in changed
    assert "Linear(512, 512).float().cuda()" in changed


def test_arrays_that_may_be_labels_are_not_cast() -> None:
    _, draft = drafted(SCRIPT.replace("%4 shape=[64,512] dtype=float64", "%4 shape=[64,1] dtype=int64"))
    assert not draft.fixes
    assert "whole numbers" in draft.message


@pytest.mark.parametrize("cast", [".double()", ".to(torch.float64)"])
def test_arrays_that_are_cast_by_name_are_cast_once(cast: str) -> None:
    script = SCRIPT.replace("from_numpy(x)", f"from_numpy(x){cast}").replace(
        "(y).cuda()", "(y).float().cuda()"
    )
    text, draft = drafted(script)
    changed = apply(text, draft.fixes[0].edits)
    assert ".float().float()" not in changed
    assert "double" not in changed
    assert "float64" not in changed


PASSED = """\
import numpy as np
import torch

rng = np.random.default_rng(0)
inputs = rng.normal(size=(512, 512))
goals = inputs @ rng.normal(size=(512, 512))
kinds = rng.integers(0, 9, 512)

def taken(part, {given}):
    return {made}

x, y = taken(slice(64), {passed})
for step in range(100):
    loss = (x @ y).mean()
    #^ cost device_ms=9; op aten::mm device_ms=9 dtypes=double,double shapes=[[64,512],[512,512]]
"""
MAYBE = 'torch.float32 if {}.dtype == "float64" else None'


@pytest.mark.parametrize(
    ("given", "made", "passed", "after"),
    [
        (
            "*arrays",
            "[torch.as_tensor(a[part]) for a in arrays]",
            "inputs, goals",
            "torch.as_tensor(a[part], dtype=torch.float32) for a",
        ),
        (
            "arrays",
            "tuple(map(torch.from_numpy, arrays))",
            "(inputs, goals)",
            "map(lambda array: torch.as_tensor(array, dtype=torch.float32), arrays)",
        ),
        (
            "arrays",
            "(torch.tensor(a[part]) for _, a in enumerate(arrays))",
            "[inputs, goals]",
            "torch.tensor(a[part], dtype=torch.float32) for",
        ),
        ("one, two", "torch.from_numpy(one), two", "inputs, goals", "torch.from_numpy(one).float(), two"),
        (
            "*arrays",
            "[torch.tensor(a) for a in arrays]",
            "inputs, kinds",
            f"torch.tensor(a, dtype={MAYBE.format('a')}) for",
        ),
        (
            "*arrays",
            "list(map(torch.from_numpy, arrays))",
            "inputs, kinds",
            f"map(lambda array: torch.as_tensor(array, dtype={MAYBE.format('array')}), arrays)",
        ),
    ],
)
def test_arrays_that_a_caller_or_a_loop_gives(given: str, made: str, passed: str, after: str) -> None:
    text, draft = drafted(PASSED.format(given=given, made=made, passed=passed))
    assert draft.line == text[: text.index(made)].count("\n") + 1
    changed = apply(text, draft.fixes[0].edits)
    assert after in changed
    names: dict[str, Any] = {}
    exec(changed.partition("for step in")[0], names)
    made_of = {one.dtype for one in (names["x"], names["y"]) if isinstance(one, torch.Tensor)}
    assert torch.float64 not in made_of and torch.float32 in made_of


@pytest.mark.parametrize(
    ("given", "made", "passed"),
    [
        ("*arrays", "[torch.as_tensor(a) for a in arrays]", "kinds, kinds"),
        ("*arrays", "[torch.as_tensor(a) for a in arrays]", "inputs, unknown"),
        ("*arrays", "[torch.as_tensor(a, dtype=torch.int64) for a in arrays]", "inputs, kinds"),
        ("one, two", "torch.from_numpy(one), two", "kinds, inputs"),
        ("pairs", "[torch.as_tensor(a) for a, _ in pairs]", "[(inputs, goals), (kinds, goals)]"),
    ],
)
def test_arrays_that_are_not_known_to_be_float64(given: str, made: str, passed: str) -> None:
    _, draft = drafted(PASSED.format(given=given, made=made, passed=passed))
    assert not draft.fixes and "not found" in draft.message


@pytest.mark.parametrize("ran", [True, False])
def test_a_file_of_which_no_step_runs_anything(ran: bool) -> None:
    step = """\
import torch
from pairs import table

x = table(512)
for step in range(100):
    y = x @ x
    #^ cost device_ms=9; op aten::mm device_ms=9 dtypes=double,double shapes=[[512,512],[512,512]]
"""
    made = """\
import numpy as np
import torch

def table(rows):
    return torch.from_numpy(np.tri(rows) / rows)
"""
    project = read_project({"/p/train.py": step, "/p/pairs.py": made})
    lines = {"/p/train.py": (1, 2, 4, 5, 6), "/p/pairs.py": (1, 2, 4, *((5,) if ran else ()))}
    facts = replace(project.profile.facts, executed=Executed(lines, complete=True))
    rule = rule_named("float64-on-device")
    assert rule is not None
    (draft,) = rule.find(Context(replace(project.profile, facts=facts), project.texts.get))
    assert draft.file == ("/p/pairs.py" if ran else "/p/train.py")
    assert bool(draft.fixes) == ran


TWO_FILES = """\
import torch
from loans import Loans

model = torch.nn.Linear(512, 512){model}
for x in torch.utils.data.DataLoader(Loans()):
    loss = model(x).square().mean()
    #^ cost device_ms=9; op aten::mm device_ms=9 dtypes=double,double shapes=[[64,512],[512,512]]
    #^ node aten.mm.default args=[%2,%3] shape=[64,512]
    #> tensor %2 shape=[64,512] dtype=float64; tensor %3 shape=[512,512] dtype=float64 parameter=true
"""
LOANS = """\
import torch

class Loans(torch.utils.data.Dataset):
    def __getitem__(self, index):
        return torch.tensor(self.rows[index], dtype=torch.double)
"""


def test_a_model_and_data_of_two_files_are_cast_together() -> None:
    project = read_project({"/p/train.py": TWO_FILES.format(model=".double()"), "/p/loans.py": LOANS})
    rule = rule_named("float64-on-device")
    assert rule is not None
    (draft,) = rule.find(Context(project.profile, project.texts.get))
    (fix,) = draft.fixes
    changed = {
        file: apply(text, [edit for edit in fix.edits if edit.file == file])
        for file, text in project.profile.sources.items()
    }
    assert "Linear(512, 512).float()" in changed["/p/train.py"]
    assert "dtype=torch.float32" in changed["/p/loans.py"]


def test_data_alone_is_not_cast_where_the_model_is_float64_as_well() -> None:
    """What makes the model float64 is not written out: a product of both types would fail."""
    project = read_project({"/p/train.py": TWO_FILES.format(model=".to(kind)"), "/p/loans.py": LOANS})
    rule = rule_named("float64-on-device")
    assert rule is not None
    (draft,) = rule.find(Context(project.profile, project.texts.get))
    assert not draft.fixes
    assert "only one of the two places was found" in draft.message
