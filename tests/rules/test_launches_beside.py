"""launch-bound counts what compiling the model changes: nothing that the loop does beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.model.change import ABOUT, CompiledCalls, NoAnomalyDetection, Replace, Together
from warpline.model.profile import LineCost
from warpline.rulekit import Context, Draft
from warpline.rules.launch_bound import LaunchBound
from warpline.wire.dataflow import Dataflow, Frame

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


def _calling(
    lines: Sequence[LineCost], functions: dict[int, str], calls: dict[int, str]
) -> tuple[LineCost, ...]:
    return tuple(
        replace(
            cost,
            function=functions.get(cost.line, "<module>"),
            called=((FILE, calls[cost.line]),) if cost.line in calls else (),
        )
        for cost in lines
    )


def test_what_an_average_of_weights_launches_is_not_compiled() -> None:
    example = read_example(CODE)
    lines = _calling(example.profile.lines, FUNCTIONS, CALLS)
    assert {cost.line for cost in lines} == {*FUNCTIONS, *CALLS, 15}
    (draft,) = LaunchBound().find(Context(replace(example.profile, lines=lines), texts(example)))
    # The function that the model calls as well is compiled with it.
    assert draft.cost_ms == pytest.approx(5 + 15 + 8)
    assert draft.fixes[0].title == "Compile the model"


@pytest.mark.parametrize(("parameters", "checked"), [(10, 0.25), (90, 1.0)])
def test_compiled_code_is_one_operator_for_anomaly_detection(parameters: int, checked: float) -> None:
    checks = "check_ms=6 traceback_ms=5; op aten::isnan phase=backward count=40"
    example = read_example(CODE.replace("idle_ms=15 launches=600", f"idle_ms=15 launches=600 {checks}"))
    flow = Dataflow(parameters=tuple(range(parameters)))
    facts = replace(example.profile.facts, dataflow=flow)
    lines = _calling(example.profile.lines, FUNCTIONS, CALLS)
    profile = replace(example.profile, facts=facts, lines=lines)
    (draft,) = LaunchBound().find(Context(profile, texts(example)))
    assert isinstance(draft.change, Together)
    assert draft.change.changes[0] == NoAnomalyDetection(((FILE, 10),), checked)


#: A model whose last function reads a number ("0" is a value, "1" what is computed of it).
READS = """\
#> steps step_ms=60 device_busy_percent=30
class Net(nn.Module):
    def forward(self, x):
        return self.scaled(x)  #> cost step_ms=18 device_ms=3 idle_ms=15 launches=600 calls=1

    def scaled(self, x):
        return x if x.max() > 1 else -x  #> cost step_ms=18 device_ms=3 idle_ms=15 launches=600 calls=1

model = Net().cuda()
for x in batches:
    loss = model(x).mean()  #> cost calls=1
    loss.backward()  #> cost step_ms=10 device_ms=2 idle_ms=8 launches=300 calls=1
"""


@pytest.mark.parametrize(("made", "ungraphed", "calls"), [((1,), (), 1.0), ((), (), 3.0), ((), (0,), 2.0)])
def test_each_read_within_cuts_what_is_compiled(
    made: tuple[int, ...], ungraphed: tuple[int, ...], calls: float
) -> None:
    """By the functions of the model that are running then, two here: half a call each without autograd."""
    example = read_example(READS)
    functions = {3: "Net.forward", 6: "Net.scaled"}
    lines = _calling(example.profile.lines, functions, {3: "Net.scaled", 10: "Net.forward"})
    flow = Dataflow(
        missing="",
        names=("aten._local_scalar_dense.default",),
        name=(0,),
        site=(-1,),
        arguments=(["%0"],),
        outputs=(made,),
        frames=(Frame(FILE, 10, "<module>"), *(Frame(FILE, *one) for one in functions.items())),
        stacks=((-1, 0), (0, 1), (1, 2)),
        stack=(2,),
        ungraphed=ungraphed,
    )
    facts = replace(example.profile.facts, dataflow=flow)
    profile = replace(example.profile, facts=facts, lines=lines)
    (draft,) = LaunchBound().find(Context(profile, texts(example)))
    assert isinstance(draft.change, Replace)
    assert isinstance(draft.change.otherwise, Together)
    (compiled,) = (one for one in draft.change.otherwise.changes if isinstance(one, CompiledCalls))
    assert compiled.calls == calls


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


#: A policy that is called in each of eight turns, beside a world that is not trained.
IMAGINED = """\
#> steps step_ms=60 device_busy_percent=30
import torch
from torch import nn

def far(x):
    return (x * x).mean()  #> cost step_ms={far} idle_ms={far} device_ms=1 launches=200 calls=8

def imagine(policy, world, x):
    cost = 0.0
    for _ in range(8):
        action = policy(x)  #> cost step_ms=20 idle_ms=15 device_ms=5 launches=400 calls=8
        x = world(x, action)  #> cost calls=8
        cost = cost + far(x)  #> cost calls=8
    return cost

class World(nn.Module):
    def forward(self, x, action):
        return self.body(x) + action  #> cost step_ms={world} idle_ms={world} device_ms=2 launches=300 calls=8

policy = nn.Sequential(nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 64)).cuda()
world = load(path)
for x in batches:
    loss = imagine(policy, world, x)  #> cost calls=1
    loss.backward()  #> cost step_ms=1 idle_ms=1 launches=1 calls=1
"""


def imagined(far: float, world: float) -> Draft:
    example = read_example(IMAGINED.format(far=far, world=world))
    names = {5: "far", 10: "imagine", 11: "imagine", 12: "imagine", 17: "World.forward"}
    calls = {11: "World.forward", 12: "far", 22: "imagine"}
    lines = tuple(
        replace(
            cost,
            function=names.get(cost.line, "<module>"),
            called=((FILE, calls[cost.line]),) if cost.line in calls else (),
        )
        for cost in example.profile.lines
    )
    assert {*names, *calls} <= {cost.line for cost in lines}
    (draft,) = LaunchBound().find(Context(replace(example.profile, lines=lines), texts(example)))
    return draft


def test_what_the_step_calls_beside_the_model_is_not_promised() -> None:
    draft = imagined(far=8, world=4)
    assert [fix.title for fix in draft.fixes] == ["Compile the model"]  # which runs eight times
    assert draft.saving_ms == pytest.approx(15 + 1)
    assert isinstance(draft.change, Replace)
    assert {line for _, line in draft.change.places} == {10, 23}


def test_the_calls_of_the_model_are_counted() -> None:
    change = imagined(far=8, world=4).change
    assert isinstance(change, Replace)
    assert isinstance(change.otherwise, Together)
    assert [one.calls for one in change.otherwise.changes if isinstance(one, CompiledCalls)] == [8.0]
    assert change.options == ("", f"{ABOUT}8")


def test_a_model_that_launches_little_beside_the_rest_is_not_compiled() -> None:
    draft = imagined(far=30, world=4)
    assert not draft.fixes
    assert draft.change is None
    assert draft.cost_ms == pytest.approx(15 + 4 + 30 + 1)
    assert "compile a function that calls all of it" in draft.message
    assert draft.line == 22


#: A model that pools the bins of a histogram one by one.
POOLS = """\
#> steps step_ms=60 device_busy_percent=30
class Histogram(nn.Module):
    def forward(self, x):
        weights = self.first(x).softmax(1)
        #^ cost step_ms=9 device_ms=1 idle_ms=8 launches=300 calls=1
        return torch.stack([x[i] * weights[i] for i in range(32)])
        #^ cost step_ms=18 device_ms=6 idle_ms=12 launches=600 calls={turns}
        #^ op aten::select count={turns}; kernel vectorized_elementwise_kernel count=64 device_ms=4

    def spread(self, x):
        return x.max()  #> cost device_ms=6 step_ms=6 launches=2 calls=1

model = Histogram().cuda()
for x in batches:
    loss = model(x).mean()  #> cost calls=1
    loss.backward()  #> cost step_ms=10 device_ms=2 idle_ms=8 launches=300 calls=1
"""


def pooled(turns: int = 32) -> Draft:
    example = read_example(POOLS.format(turns=turns))
    functions = {3: "Histogram.forward", 4: "Histogram.forward", 7: "Histogram.spread"}
    lines = _calling(example.profile.lines, functions, {4: "Histogram.spread", 11: "Histogram.forward"})
    (draft,) = LaunchBound().find(Context(replace(example.profile, lines=lines), texts(example)))
    return draft


def test_a_loop_over_rows_within_the_model_is_compiled_with_it() -> None:
    draft = pooled()
    assert draft.cost_ms == pytest.approx(8 + 12 + 8)
    assert isinstance(draft.change, Together)  # each is tried apart
    rest, loop = draft.change.changes
    assert isinstance(rest, Replace)
    assert isinstance(loop, Replace)
    # What never waits for a launch is compiled, too.
    assert ({line for _, line in rest.places}, {line for _, line in loop.places}) == ({3, 7, 12}, {4})
    assert "merges elementwise kernels there, which take 4.00 ms" in draft.message


def test_a_loop_of_many_turns_would_be_compiled_for_minutes() -> None:
    assert pooled(turns=1000).cost_ms == pytest.approx(8 + 8)
