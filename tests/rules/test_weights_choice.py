"""fp32-matmul where the script chooses the type of a model that only infers."""

from __future__ import annotations

import pytest

from tests.annotated import read_project
from warpline.rulekit import Context, Draft
from warpline.rules import rule_named
from warpline.text.edits import apply

MAIN = """\
#> device kind=cuda capability=(9,0) bf16=true; flags allow_tf32=false autocast=false
#> tensor %5 shape=[8,8] parameter=true
import torch
from dataclasses import asdict
from transformers import BertModel, BertConfig
from settings import Settings

settings = Settings()
options = asdict(settings)
dtype = getattr(torch, options.pop("dtype"))
model = BertModel(BertConfig(**options))
model = {moved}.eval()
for ids in batches:
    found = model(ids)
    #^ cost device_ms=60 step_ms=60; op aten::addmm count=73 device_ms=50 dtypes=float,float,float
    #^ node aten.mm.default args=[{given}] shape=[8,8]
"""
SETTINGS = """\
from dataclasses import dataclass

@dataclass
class Settings:
    hidden_size: int = 8
    dtype: str = "float32"
"""
INSIDE = "%5,%5"  # no number from outside


def drafted(moved: str, given: str = INSIDE, more: str = "") -> tuple[Draft, dict[str, str]]:
    files = {"/p/main.py": MAIN.format(moved=moved, given=given) + more, "/p/settings.py": SETTINGS}
    project = read_project(files)
    rule = rule_named("fp32-matmul")
    assert rule is not None
    (draft,) = rule.find(Context(project.profile, project.texts.get))
    return draft, project.texts


@pytest.mark.parametrize("moved", ["model.to(dtype)", "model.to('cuda', dtype=dtype)"])
def test_the_setting_is_changed_where_it_is_written(moved: str) -> None:
    draft, texts = drafted(moved.replace("model", "BertModel(BertConfig())"))
    assert draft.place == ("/p/settings.py", 6)
    weights, tf32 = draft.fixes
    assert 'dtype: str = "bfloat16"' in apply(texts["/p/settings.py"], weights.edits)
    assert "tf32" in tf32.title.lower()


@pytest.mark.parametrize(
    ("moved", "given", "more"),
    [
        ("Head(8).to(dtype)", INSIDE, ""),  # the script's own, which may be given numbers
        ("BertModel(BertConfig()).to(torch.float32)", INSIDE, ""),  # not a setting
        ("BertModel(BertConfig()).to(dtype)", "%6,%5", "#> tensor %6 shape=[8,8]"),  # float32 meets weights
        ("BertModel(BertConfig()).to(dtype)", INSIDE, "found.backward()  #> cost backward_ms=10"),
    ],
)
def test_weights_are_left_where_they_may_not_change(moved: str, given: str, more: str) -> None:
    draft, _ = drafted(moved, given, more)
    assert draft.place[0] == "/p/main.py"
    assert not any("weights" in fix.title for fix in draft.fixes)
