"""Small batches where the CPU is the device: only of steps that train nothing."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.diagnosis.diagnose import diagnose
from warpline.model.change import LargerBatch, Replace, Together

CODE = """\
#> device kind={device}; steps step_ms=20; memory peak_bytes={peak} free_bytes=8000000000
from torch.utils.data import DataLoader
loader = DataLoader(patients, batch_size=3)  #> site loader batch_size=3 num_workers=0
optimizer = Evolution(net)
for rows in loader:
    #^ use loader; cost step_ms=2 idle_ms=2 loader_ms=2 cpu_ms=2 launches=9
    risk = net(rows)
    #^ cost step_ms=14 device_ms=7 idle_ms=7 cpu_ms=14 launches=700 {more}
    kept.append(risk.sigmoid())  #> cost step_ms=4 device_ms=3 idle_ms=1 cpu_ms=4 launches=90
    optimizer.tell(risk)  #> {uses}
"""
CPU = {"device": "cpu", "peak": 1_000_000_000, "more": "", "uses": ""}


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({}, True),
        ({"more": "backward_ms=2"}, False),
        ({"uses": "site optimizer type=SGD; use optimizer; cost cpu_ms=0.1"}, False),
        ({"peak": 9_000_000_000}, False),  # twice that does not fit
        ({"device": "rocm"}, False),  # nothing says how much of it a kernel fills
        ({"device": "mps"}, False),
    ],
)
def test_of_steps_that_train_nothing(facts: dict[str, object], found: bool) -> None:
    example = read_example(CODE.format(**CPU | facts))
    diagnosis = diagnose(example.profile, texts(example))
    mine = [one for one in diagnosis.findings if one.rule == "small-batch"]
    assert [one.line for one in mine] == [2] * found
    if found:
        change = diagnosis.changes[mine[0].id]
        assert isinstance(change, Together)
        assert {one.value for one in mine[0].evidence if one.metric == "time between operators"} == {
            8.0,
            40.0,
        }
        tried = {one.places[0][1]: one.shares for one in change.changes if isinstance(one, Replace)}
        assert tried == {5: (0.5,), 6: (0.75,)}
        assert change.changes[-1] == LargerBatch(2)


def test_work_that_is_all_operators_gains_nothing() -> None:
    code = CODE.format(**CPU).replace("device_ms=7 idle_ms=7", "device_ms=13.5 idle_ms=0.5")
    example = read_example(code)
    assert "small-batch" not in {one.rule for one in diagnose(example.profile, texts(example)).findings}
