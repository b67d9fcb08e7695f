"""An optimizer that works through lists of tensors is fused where a trial shows that this gains."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.diagnosis import Diagnosis, diagnose
from warpline.model.change import Change, Replace
from warpline.model.profile import Profile
from warpline.model.report import Predicted
from warpline.text.edits import apply

LISTS = """\
import torch
import lightning as L

trainer = L.Trainer(precision="bf16-mixed", gradient_clip_val=1.0)
#^ site framework construction=lightning.Trainer type=Trainer "values={values}"
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
#^ site optimizer type=AdamW fused=None foreach=None parameters=76
for x in loader:
    model(x).backward()  #> cost device_ms=40
    optimizer.step()
    #^ cost step_ms=6 device_ms=5 launches=24; use optimizer
    #^ kernel "void at::native::multi_tensor_apply_kernel<int>(int)" count=20 device_ms=5
"""


def judged(code: str, basis: str = "probed", after_ms: float = 42.0) -> tuple[str, Diagnosis]:
    """The text and the diagnosis where a trial of the optimizer leaves so much of the step's 46 ms."""
    example = read_example(code)

    def predict(_: Profile, change: Change) -> Predicted:
        assert isinstance(change, Replace)
        assert (change.by, change.options) == ("optimizer", ("AdamW", "foreach"))
        return Predicted(after_ms, 46 / after_ms, "probed" if basis == "probed" else "simulated")

    return example.text, diagnose(example.profile, texts(example), predict=predict)


def test_lists_that_a_trial_beats_are_fused() -> None:
    text, found = judged(LISTS.replace("values={values}", "values={}"))
    (finding,) = found.findings
    assert "updates 76 tensors with 20 kernels a step" in finding.message
    assert "AdamW(model.parameters(), lr=1e-3, fused=True)" in apply(text, finding.fixes[0].edits)


@pytest.mark.parametrize(("basis", "after_ms"), [("simulated", 42.0), ("probed", 45.9)])
def test_without_a_trial_that_gains_there_is_no_finding(basis: str, after_ms: float) -> None:
    _, found = judged(LISTS.replace("values={values}", "values={}"), basis, after_ms)
    assert not found.findings
    assert any("per-tensor-optimizer" in note for note in found.notes)


def test_what_the_host_takes_is_launch_overhead() -> None:
    code = LISTS.replace("values={values}", "values={}").replace("device_ms=5", "device_ms=0.1")
    assert not judged(code)[1].findings
    assert not judged(code)[1].notes


@pytest.mark.parametrize(
    ("values", "raises"),
    [
        ("{'precision': 'bf16-mixed', 'gradient_clip_val': 1.0}", True),
        ("{'precision': 'bf16-mixed', 'gradient_clip_val': None}", False),
        ("{'precision': '32-true', 'gradient_clip_val': 1.0}", False),
    ],
)
def test_a_framework_that_clips_in_half_precision_takes_no_fused_optimizer(values: str, raises: bool) -> None:
    _, found = judged(LISTS.replace("{values}", values))
    (finding,) = found.findings
    assert (not finding.fixes) == raises
    assert ("`gradient_clip_val` of `Trainer` raises" in finding.message) == raises
