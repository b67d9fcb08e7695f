"""What a table's gradient costs beside its operators."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.diagnosis.diagnose import diagnose
from warpline.model.change import Change
from warpline.model.profile import Profile
from warpline.model.report import Predicted

TABLE = """\
#> {device}; steps step_ms=20
import torch
table = torch.nn.Embedding(1000000, 64)
#^ site module type=Embedding num_embeddings=1000000 embedding_dim=64
optimizer = torch.optim.SGD(table.parameters(), lr=0.05)
#^ site optimizer type=SGD elements=64000000 shapes=[[1,1000000,64]] with.momentum=0 with.weight_decay=0
for ids, wanted in loader:
    loss = (table(ids).sum(1) - wanted).square().mean()
    #^ cost step_ms=9 cpu_ms=9 device_ms=9; op aten::embedding shapes=[[1000000,64],[512,8]] device_ms=1
    #^ op aten::embedding_dense_backward phase=backward shapes=[[512,8,64],[512,8]] device_ms=8
    optimizer.zero_grad()  #> cost step_ms=4 cpu_ms=4 calls=1
    loss.backward()
    optimizer.step()  #> use optimizer; cost step_ms=5 cpu_ms=5 device_ms=5; op aten::add_ device_ms=5
"""


@pytest.mark.parametrize(("device", "spent_ms"), [("device kind=cpu", 17.0), ("device kind=cuda", 13.0)])
def test_a_cpu_gives_the_memory_of_the_gradient_back(device: str, spent_ms: float) -> None:
    example = read_example(TABLE.replace("{device}", device))
    (found,) = (
        one
        for one in diagnose(example.profile, texts(example)).findings
        if one.rule == "dense-embedding-gradient"
    )
    spent = next(one for one in found.evidence if one.unit == "ms")
    assert spent.value == pytest.approx(spent_ms)


@pytest.mark.parametrize(
    ("batch", "by", "basis", "found"),
    [
        (2000, "aten::embedding", "simulated", True),  # few rows: the usual gain is known
        (25000, "aten::embedding", "probed", True),
        (25000, "aten::embedding", "simulated", False),
        (40000, "aten::embedding", "probed", False),  # most of the table is read
        (25000, "aten::_embedding_bag", "probed", False),  # no trial is made of it
    ],
)
def test_up_to_a_quarter_of_the_rows_a_trial_decides(batch: int, by: str, basis: str, found: bool) -> None:
    def predict(profile: Profile, change: Change) -> Predicted:
        return Predicted(14.0, 20 / 14, "probed" if basis == "probed" else "simulated")

    text = TABLE.replace("{device}", "device kind=cuda").replace("[512,8", f"[{batch},8")
    example = read_example(text.replace("aten::embedding", by))
    findings = diagnose(example.profile, texts(example), predict=predict).findings
    assert ("dense-embedding-gradient" in {one.rule for one in findings}) is found


PLAIN = "with.momentum=0 with.weight_decay=0"
FEATURES = """\
#> device kind=cpu; steps step_ms=30
import torch
sizes = dict(shop=90000, street=50000)
tables = torch.nn.ModuleDict([(name, torch.nn.Embedding(rows, 8)) for name, rows in sizes.items()])
#^ site module type=Embedding num_embeddings=90000 embedding_dim=8 count=2
optimizer = torch.optim.SGD(tables.parameters(), lr=0.05)
#^ site optimizer type=SGD elements=1050000 shapes=[[1,90000,8],[1,50000,8]] {plain}
for ids, wanted in loader:
    found = [table(ids[name]).sum(1) for name, table in tables.items()]
    #^ cost step_ms=9 cpu_ms=9 device_ms=9; op aten::embedding shapes=[[90000,8],[512,8]] device_ms=1
    #^ op aten::embedding_dense_backward phase=backward shapes=[[512,8,8],[512,8]] device_ms=8
    #^ op aten::embedding shapes=[[50000,{columns}],[512,8]] device_ms=1
    loss = (sum(found) - wanted).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  #> use optimizer; cost step_ms=9 cpu_ms=9 device_ms=9; op aten::add_ device_ms=9
"""


@pytest.mark.parametrize(("columns", "together"), [(8, True), (16, False)])
def test_tables_of_several_sizes_that_one_call_makes_become_sparse_together(
    columns: int, together: bool
) -> None:
    code = (
        FEATURES.replace("{plain}", PLAIN)
        .replace("{columns}", f"{columns}")
        .replace("[1,50000,8]", f"[1,50000,{columns}]")
    )
    example = read_example(code)
    findings = diagnose(example.profile, texts(example)).findings
    by_line = {one.line: one for one in findings if one.rule == "dense-embedding-gradient"}
    assert by_line.keys() == ({3} if together else {3, 6})
    found = by_line[3]
    assert ("that of 2 tables" in found.message) is together
    assert [edit.text for fix in found.fixes for edit in fix.edits] == [", sparse=True"]


def test_one_of_them_that_needs_dense_gradients_keeps_all_dense() -> None:
    code = FEATURES.replace("{plain}", PLAIN).replace("{columns}", "8")
    code = code.replace("shapes=[[1,90000,8],[1,50000,8]]", "shapes=[[1,90000,8]]").replace(
        "for ids",
        "other = torch.optim.SGD([tables['street'].weight], momentum=0.9)\n"
        "#^ site optimizer type=SGD elements=400000 shapes=[[1,50000,8]] with.momentum=0.9\nfor ids",
    )
    example = read_example(code)
    findings = diagnose(example.profile, texts(example)).findings
    (found,) = (one for one in findings if one.rule == "dense-embedding-gradient")
    assert found.fixes == ()
    assert "other embeddings take the same setting" in found.message
