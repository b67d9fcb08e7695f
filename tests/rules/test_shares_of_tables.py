"""Embeddings of one size share what all lines that look rows up in them, and the optimizer, take."""

from __future__ import annotations

import json
import shlex

import pytest

from tests.annotated import read_example, texts
from warpline.diagnosis.diagnose import diagnose
from warpline.model.change import Change, Replace, Scale, Together
from warpline.model.report import Finding, Predicted

RULE = "dense-embedding-gradient"

TWO = """\
#> device kind=cpu; steps step_ms=40
import torch

head = torch.nn.Embedding(90000, 64)  #> site module type=Embedding num_embeddings=90000 embedding_dim=64
tail = torch.nn.Embedding(90000, 64)  #> site module type=Embedding num_embeddings=90000 embedding_dim=64
both = [*head.parameters(), *tail.parameters()]
optimizer = torch.optim.SGD(both, lr=0.1)
#^ site optimizer type=SGD elements=11520000 shapes=[[2,90000,64]] with.momentum=0 with.weight_decay=0
for one, other, wrong in batches:
    h = head(one)
    #^ cost step_ms=5 device_ms=5 backward_ms=5; op aten::embedding shapes=[[90000,64],[512]] device_ms=0
    #^ op aten::embedding_dense_backward phase=backward shapes=[[512,64],[512]] device_ms=0
    #^ op aten::fill_ phase=backward shapes=[[90000,64],[]] device_ms=5
    right = h * tail(other)
    #^ cost step_ms=4 device_ms=4 backward_ms=4; op aten::embedding shapes=[[90000,64],[512]] device_ms=0
    #^ op aten::embedding_dense_backward phase=backward shapes=[[512,64],[512]] device_ms=0
    #^ op aten::fill_ phase=backward shapes=[[90000,64],[]] device_ms=4
    {last}
    loss = right.sum() - false.sum()  #> cost step_ms=16 device_ms=16
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    #^ use optimizer; cost step_ms=8 device_ms=8; op aten::add_ shapes=[[90000,64],[90000,64]] device_ms=8
"""
LAST = """\
false = h[:, None] * tail(wrong)
    #^ cost step_ms=7 device_ms=7 backward_ms=7
    #^ op aten::embedding shapes=[[90000,64],[512,{many}]] device_ms=0
    #^ op aten::embedding_dense_backward phase=backward shapes=[[512,{many},64],[512,{many}]] device_ms=0
    #^ op aten::fill_ phase=backward shapes=[[90000,64],[]] device_ms=7"""


def parts(change: Change | None) -> list[Scale]:
    assert isinstance(change, Replace) and isinstance(change.otherwise, Together)
    return [one for one in change.otherwise.changes if isinstance(one, Scale)]


def found(code: str) -> list[tuple[Finding, Change | None]]:
    example = read_example(code)
    diagnosis = diagnose(example.profile, texts(example))
    mine = [one for one in diagnosis.findings if one.rule == RULE]
    return [(one, diagnosis.changes.get(one.id)) for one in mine]


def of_both(code: str) -> tuple[Finding, list[Change]]:
    """The only finding, and what becomes of each of the two tables."""
    ((one, change),) = found(code)
    assert isinstance(change, Together) and len(change.changes) == 2
    return one, list(change.changes)


def test_two_tables_and_three_lines() -> None:
    """All that the fill and the update take is 24 ms: half of it for each table. Both become sparse."""
    one, changes = of_both(TWO.format(last=LAST.format(many=5)))
    assert one.line == 3
    assert "Its optimizer has 2 such tables, which one edit makes sparse: 24.0 ms in all." in one.message
    assert [edit.start[0] for edit in one.fixes[0].edits] == [3, 4]
    assert one.evidence[0].value == round((512 * 2 + 512 * 5) / 2), "rows read"
    assert [each.value for each in one.evidence if each.unit == "ms"][-1] == pytest.approx(24.0)
    for change in changes:
        assert {each.places[0][1] for each in parts(change)} == {8, 9, 10, 14}
        assert all(each.apart and each.host == each.device for each in parts(change))


def test_adding_the_rows_goes_with_the_fill() -> None:
    """The dense gradient's rows are added one by one; a sparse one has them as they are."""
    adding = "embedding_dense_backward phase=backward shapes=[[512,64],[512]] device_ms="
    code = TWO.format(last=LAST.format(many=5)).replace(adding + "0", adding + "2")
    _, (change, _) = of_both(code.replace("device_ms=5 backward_ms=5", "device_ms=7 backward_ms=7"))
    assert isinstance(change, Replace)
    assert dict(zip(change.places, change.shares, strict=True))["/example/train.py", 8] == 0.5
    assert change.options == ("SGD", "2", "896", "90000", "64"), "two look-ups in each table"


def test_tables_with_one_setting_are_one_finding() -> None:
    """One edit makes both sparse: the gain is that of both."""
    code = TWO.format(last=LAST.format(many=5)).replace(
        "head = torch.nn.Embedding(90000, 64)  #> site",
        "head, tail = torch.nn.Embedding(90000, 64), torch.nn.Embedding(90000, 64)\n#^ site",
    )
    ((one, change),) = found(code.replace("\ntail = torch.nn.Embedding(90000, 64)  #> site", "\n#^ site"))
    assert isinstance(change, Together) and len(change.changes) == 2
    assert "The same setting is that of 2 tables: 24.0 ms in all." in one.message
    assert one.evidence[-1].value == pytest.approx(24.0)


def test_two_tables_and_two_lines() -> None:
    one, _ = of_both(TWO.format(last="false = right"))
    assert one.evidence[-1].value == pytest.approx(17.0)


@pytest.mark.parametrize(("many", "tried"), [(40, True), (60, True), (90, False)])
def test_many_rows_of_both_are_read(many: int, tried: bool) -> None:
    """A line that reads more than a tenth of a table counts: a trial decides for up to a quarter."""
    example = read_example(TWO.format(last=LAST.format(many=many)))
    assert not found(TWO.format(last=LAST.format(many=many)))
    probed = diagnose(example.profile, texts(example), predict=lambda *_: Predicted(25.0, 1.6, "probed"))
    assert ["24.0 ms in all" in one.message for one in probed.findings if one.rule == RULE] == [True] * tried


#: The tables are in a group of their own; the last parameters of the optimizer's record are of the rest.
GROUPS = """\
rest = {{"params": list(tower.parameters()), "momentum": 0.9}}
optimizer = torch.optim.SGD([rest, {{"params": both}}], lr=0.1)
#^ site optimizer type=SGD elements=11530000 shapes=[[2,90000,64],[1,100,100]] settings={settings}"""
STILL = {"momentum": 0, "weight_decay": 0}


def grouped(tables: dict[str, float], rest: dict[str, float]) -> str:
    groups = [{**tables, "shapes": [[2, 90000, 64]]}, {**rest, "shapes": [[1, 100, 100]]}]
    made = GROUPS.format(settings=shlex.quote(json.dumps(groups).replace(" ", "")))
    optimizer = "\n".join(TWO.split("\n")[6:8])
    return TWO.format(last="false = right").replace(optimizer, made)


@pytest.mark.parametrize(
    ("tables", "rest", "count"),
    [
        (STILL, STILL, 1),
        (STILL, {"momentum": 0.9, "weight_decay": 0.01}, 1),  # only the others' rows all move
        ({"momentum": 0.9, "weight_decay": 0}, STILL, 0),
        ({"momentum": 0, "weight_decay": 0.1}, STILL, 0),
        ({"weight_decay": 0}, STILL, 1),  # Adagrad has no momentum
    ],
)
def test_the_group_of_the_tables_decides(
    tables: dict[str, float], rest: dict[str, float], count: int
) -> None:
    assert len(found(grouped(tables, rest))) == count


def test_groups_that_are_added_later_may_have_the_tables_too() -> None:
    code = grouped(STILL, STILL).replace(
        "for one, other", 'optimizer.add_param_group({"params": more})\nfor one, other'
    )
    assert found(code) == []


@pytest.mark.parametrize(
    ("of_tables", "offered"),
    [("", True), (", fused=None", True), (", fused=True", False), (", **more", False)],
)
def test_another_fused_optimizer_changes_nothing(of_tables: str, offered: bool) -> None:
    code = TWO.format(last="false = right")
    made = next(line for line in code.split("\n") if "torch.optim" in line)
    other = "other = torch.optim.Adam(tower.parameters(), fused=True)\n"
    code = code.replace(made, other + made.replace("lr=0.1", f"lr=0.1{of_tables}"))
    assert {bool(draft.fixes) for draft, _ in found(code)} == {offered}
