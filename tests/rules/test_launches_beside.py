"""launch-bound counts what compiling the model changes: nothing that the loop does beside it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.rulekit import Context
from warpline.rules.launch_bound import LaunchBound

CODE = """\
#> steps step_ms=60 device_busy_percent=30
def scaled(x):
    return x * x.sigmoid()  #> cost step_ms=6 device_ms=1 idle_ms=5 launches=100

def update(slow, fast):
    scaled(fast)  #> cost calls=1
    slow.lerp_(fast, 0.1)  #> cost step_ms=20 device_ms=4 idle_ms=16 launches=900

class Net(nn.Module):
    def forward(self, x):
        return scaled(self.first(x))  #> cost step_ms=18 device_ms=3 idle_ms=15 launches=600

model = Net().cuda()
for x in batches:
    loss = model(x).mean()  #> cost calls=1
    loss.backward()  #> cost step_ms=10 device_ms=2 idle_ms=8 launches=300 calls=1
    update(average, weights)  #> cost calls=1
"""
#: Functions by their lines, and what each line calls.
FUNCTIONS = {2: "scaled", 5: "update", 6: "update", 10: "Net.forward"}
CALLS = {5: "scaled", 10: "scaled", 14: "Net.forward", 16: "update"}


def test_what_an_average_of_weights_launches_is_not_compiled() -> None:
    example = read_example(CODE)
    lines = tuple(
        replace(
            cost,
            function=FUNCTIONS.get(cost.line, "<module>"),
            called=((FILE, CALLS[cost.line]),) if cost.line in CALLS else (),
        )
        for cost in example.profile.lines
    )
    assert {cost.line for cost in lines} == {*FUNCTIONS, *CALLS, 15}
    (draft,) = LaunchBound().find(Context(replace(example.profile, lines=lines), texts(example)))
    # The function that the model calls as well is compiled with it.
    assert draft.cost_ms == pytest.approx(5 + 15 + 8)
    assert draft.fixes[0].title == "Compile the model"


def test_a_library_that_selects_rows_is_no_loop_of_the_user_s() -> None:
    """Eight micro-batches of a model that selects something once."""
    inside = "inside file=/lib/transformers/modeling_gpt2.py line=9 step_ms=40"
    code = f"""\
#> steps step_ms=60 device_busy_percent=30
for x in batches:
    loss = model(x).mean()
    #^ cost calls=8 step_ms=50 device_ms=9 idle_ms=41 launches=900; op aten::select count=8; {inside}
    loss.backward()  #> cost step_ms=10 device_ms=2 idle_ms=8 launches=300 calls=8
"""
    loop = code.replace(f"; {inside}", "")
    kinds = "; ".join(f"op aten::mul count=8 shapes=[[{at}]]" for at in range(96))
    for text, spent in ((code, 49), (loop, 8), (code.replace(inside, kinds), 49)):  # torch's own, the last
        example = read_example(text)
        (draft,) = LaunchBound().find(Context(example.profile, example.profile.sources.get))
        assert draft.cost_ms == spent
