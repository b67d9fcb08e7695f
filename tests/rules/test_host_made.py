"""launch-bound: what a compiled model no longer makes on the host."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.model.change import Scale, Together
from warpline.rulekit import Context, Draft
from warpline.rules.launch_bound import LaunchBound

CODE = """\
#> steps step_ms=60 device_busy_percent=30
class Net(nn.Module):
    def forward(self, x):
        {inside}
        return self.layers(x)

model = Net().cuda()
for x in batches:
    loss = model(x).mean()
    #^ cost step_ms=25 device_ms=6 idle_ms=19 cpu_ms=25 launches=1500
    {forward}
    loss.backward()  #> cost step_ms=15 device_ms=5 idle_ms=10 cpu_ms=15 launches=1000 calls=1
    {beside}
"""
MADE = (
    "grid = torch.zeros(1 << 20).cuda()  #> cost step_ms=20 device_ms=16 cpu_ms=20; kernel Memcpy kind=copy"
)
SITE = "; site tensor device=cpu to=cuda:0 op={op}"


def _draft(op: str, where: str = "inside") -> Draft:
    made = MADE + SITE.format(op=op)
    lines = {"inside": "pass", "forward": "pass", "beside": "pass", where: made}
    if where == "forward":
        lines["forward"] += "\n    loss = loss + grid.sum()"
    example = read_example(CODE.format(**lines))
    profile = example.profile
    net = ((FILE, "Net.forward"),)
    told = tuple(
        replace(
            cost, function="Net.forward" if cost.line < 5 else "<module>", called=net * ("model(x)" in text)
        )
        for cost in profile.lines
        for text in [example.text.splitlines()[cost.line - 1]]
    )
    (draft,) = LaunchBound().find(Context(replace(profile, lines=told), texts(example)))
    return draft


def test_a_tensor_of_one_number_is_made_on_the_device_by_compiled_code() -> None:
    draft = _draft("zeros")
    assert "tensors of one number on the host, which takes 20.0 ms" in draft.message
    for change in (draft.change, draft.alternative):
        assert isinstance(change, Together)
        assert [one.device < 0.1 for one in change.changes if isinstance(one, Scale)] == [True]


@pytest.mark.parametrize(
    ("op", "where"), [("arange", "inside"), ("randn", "inside"), ("zeros", "beside"), ("zeros", "forward")]
)
def test_other_numbers_and_those_beside_the_model_stay(op: str, where: str) -> None:
    draft = _draft(op, where)
    assert "made on the host" not in [one.metric for one in draft.evidence]
    assert not isinstance(draft.change, Together)
