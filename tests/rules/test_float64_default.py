"""Float64 as torch's default type: the finding and the edit stand at the call that sets it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import read_project
from warpline.rulekit import Context, Draft
from warpline.rules import rule_named
from warpline.text.edits import apply
from warpline.wire.births import Setting
from warpline.wire.run import UserFrame

TRAIN = """\
import numpy as np
import torch
from precise import begin

begin()
{made}
model = torch.nn.Linear(64, 64)
for step in range(100):
    y = model(x)
    #^ cost device_ms=9; op aten::mm device_ms=9 dtypes=double,double shapes=[[32,64],[64,64]]
    #^ node aten.mm.default args=[%2,%3] shape=[32,64]
    #> tensor %2 shape=[32,64] dtype={read}; tensor %3 shape=[64,64] dtype=float64 parameter=true
"""
PRECISE = """\
import torch

def begin(kind=torch.float64):
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
"""
CALL = 5  # its line there
MADE = "x = torch.from_numpy(np.sin(raw)).to(torch.get_default_dtype())"


def drafted(
    made: str = MADE, precise: str = PRECISE, value: str = "torch.float64", read: str = "float64"
) -> tuple[dict[str, str], Draft]:
    files = {"/p/train.py": TRAIN.format(made=made, read=read), "/p/precise.py": precise}
    project = read_project(files)
    frames = (UserFrame("/p/precise.py", CALL, "begin"), UserFrame("/p/train.py", 5, "<module>"))
    settings = (
        Setting("default_dtype", "torch.float64", frames, 1),
        Setting("default_dtype", value, frames, 2),
    )
    facts = replace(project.profile.facts, settings=settings)
    rule = rule_named("float64-on-device")
    assert rule is not None
    (draft,) = rule.find(Context(replace(project.profile, facts=facts), project.texts.get))
    return project.texts, draft


def edited(texts: dict[str, str], draft: Draft) -> dict[str, str]:
    (fix,) = draft.fixes
    return {name: apply(text, [e for e in fix.edits if e.file == name]) for name, text in texts.items()}


def test_the_call_is_found_and_edited() -> None:
    texts, draft = drafted(precise=PRECISE.replace("kind=torch.float64", ""))
    assert (draft.file, draft.line) == ("/p/precise.py", CALL)
    assert "comes from `torch.set_default_dtype`" in draft.message
    after = edited(texts, draft)
    assert after["/p/precise.py"].endswith("torch.set_default_dtype(torch.float32)\n")
    assert after["/p/train.py"] == texts["/p/train.py"]


def test_what_is_float64_besides_is_cast_in_each_file() -> None:
    texts, draft = drafted("x = torch.from_numpy(np.sin(raw))\nscale = torch.ones(3, dtype=torch.double)")
    after = edited(texts, draft)
    assert "from_numpy(np.sin(raw)).float()" in after["/p/train.py"]
    assert "dtype=torch.float32)" in after["/p/train.py"]
    assert "kind=torch.float32" in after["/p/precise.py"]


@pytest.mark.parametrize(
    "made",
    [
        "x = torch.load('x.pt')",
        "x = torch.as_tensor(frame.values)",
        MADE + "\nkinds = torch.from_numpy(table.kinds)\nothers = torch.from_numpy(np.cos(raw))",
        MADE + "\nloader = torch.utils.data.DataLoader(Rows())  #> site loader rows_type=Rows",
    ],
)
def test_data_that_may_stay_float64_leaves_the_advice(made: str) -> None:
    _, draft = drafted(made)
    assert (draft.file, draft.line) == ("/p/precise.py", CALL)
    assert not draft.fixes


def test_a_loader_is_no_matter_where_the_step_reads_no_float64() -> None:
    loader = "\nloader = torch.utils.data.DataLoader(Rows())  #> site loader rows_type=Rows"
    _, draft = drafted(MADE + loader, read="float32")
    assert draft.fixes


def test_a_type_that_a_caller_may_pass_is_left_to_the_user() -> None:
    passed = PRECISE.replace("dtype(torch.float64)", "dtype(kind)").replace("def", "begin(given)\ndef", 1)
    _, draft = drafted(precise=passed.replace("import torch\n\n", "import torch\n"))
    assert (draft.file, draft.line) == ("/p/precise.py", CALL)
    assert not draft.fixes


def test_a_default_type_that_was_set_back_is_not_meant() -> None:
    _, draft = drafted("x = torch.from_numpy(np.sin(raw))", value="torch.float32")
    assert draft.file == "/p/train.py"
