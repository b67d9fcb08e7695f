"""Models whose ``forward`` is called by its name, beside a loss that is called itself."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.diagnosis.diagnose import diagnose
from warpline.text.edits import apply

CODE = """\
#> steps step_ms=40 device_busy_percent=30
import torch
from torch import nn

loss_fn = {loss}
net = Siamese()
net.cuda()
optimizer = torch.optim.Adam(net.parameters())
for left, right, same in loader:
    output = {call}
    #^ cost step_ms=25 device_ms=6 idle_ms=19 cpu_ms=25 launches=1500
    #^ op aten::convolution device_ms=5 shapes=[[8,64,8,8]] dtypes=c10::Half strides=[[4096,64,8,1]]
    #^ kernel nchwToNhwcKernel count=100 device_ms=3
    loss = loss_fn(output, same)
    loss.backward()  #> cost step_ms=15 device_ms=5 idle_ms=10 cpu_ms=15 launches=1000
    optimizer.step()
"""


@pytest.mark.parametrize("loss", ["nn.BCEWithLogitsLoss()", "contrast"])
@pytest.mark.parametrize(
    ("call", "compiled"),
    [
        ("net.forward(left, right)", "net.forward = torch.compile(net.forward)"),
        ("net(left, right)", "net.compile()"),
    ],
)
def test_edits_are_of_the_model(loss: str, call: str, compiled: str) -> None:
    example = read_example(CODE.format(loss=loss, call=call))
    findings = {one.rule: one for one in diagnose(example.profile, texts(example)).findings}
    for rule, line in (
        ("launch-bound", compiled),
        ("channels-first-conv", "net.to(memory_format=torch.channels_last)"),
    ):
        text = apply(example.text, findings[rule].fixes[0].edits)
        assert text == example.text.replace("net.cuda()\n", f"net.cuda()\n{line}\n")


@pytest.mark.parametrize("call", ["super().forward(left)", "Base.forward(self, left)"])
def test_a_base_class_is_no_model(call: str) -> None:
    example = read_example(CODE.format(loss="contrast", call=call))
    for one in diagnose(example.profile, texts(example)).findings:
        assert not any("Base" in edit.text for fix in one.fixes for edit in fix.edits)
