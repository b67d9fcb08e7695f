"""Elementwise operators where the CPU is the device: reported only where compiling them was tried."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import Example, read_example, texts
from warpline.diagnosis.diagnose import diagnose
from warpline.model.change import Change, Replace
from warpline.model.profile import Profile
from warpline.model.report import Finding, Predicted

CODE = """\
#> device kind={device}; steps step_ms=20
import torch

{above}
def settle(dust, wind):
    lift = wind * wind * 0.5
    #^ cost step_ms={ms} device_ms={ms} calls=1; op aten::mul count=2 device_ms={ms}
    #^ node aten.mul.Tensor args=[%20,%20] shape=[500,500] function=settle
    #^ node aten.mul.Tensor args=[%0,0.5] shape=[500,500] function=settle
    fall = torch.exp(-dust)
    #^ cost step_ms={ms} device_ms={ms} calls=1; op aten::exp count=1 device_ms={ms}
    #^ node aten.neg.default args=[%21] shape=[500,500] function=settle
    #^ node aten.exp.default args=[%2] shape=[500,500] function=settle
    {last} dust + 0.01 * (lift - fall)
    #^ cost step_ms={ms} device_ms={ms} calls=1; op aten::sub count=1 device_ms={ms}
    #^ node aten.sub.Tensor args=[%1,%3] shape=[500,500] function=settle
    #^ node aten.mul.Tensor args=[%4,0.01] shape=[500,500] function=settle
    #^ node aten.add.Tensor args=[%21,%5] shape=[500,500] function=settle

def main():
    for hour in range(9000):
        dust = settle(dust, wind)  #> cost step_ms=0.1 calls=1 {called}
"""
AS_IT_IS = {"device": "cpu", "ms": 5, "above": "", "last": "return", "called": ""}
STEP_IN_MAIN = """\
#> device kind=cpu; steps step_ms=20
import torch

def main():
    for hour in range(9000):
        lift = wind * wind * 0.5
        #^ cost step_ms=9 device_ms=9 calls=1; op aten::mul count=2 device_ms=9
        #^ node aten.mul.Tensor args=[%20,%20] shape=[500,500] function=main
        #^ node aten.mul.Tensor args=[%0,0.5] shape=[500,500] function=main
        dust = dust + lift - dust.exp()
        #^ cost step_ms=9 device_ms=9 calls=1; op aten::exp count=1 device_ms=9
        #^ node aten.add.Tensor args=[%21,%1] shape=[500,500] function=main
        #^ node aten.exp.default args=[%21] shape=[500,500] function=main
        #^ node aten.sub.Tensor args=[%2,%3] shape=[500,500] function=main
"""


def told(
    code: str, basis: str = "probed", step_ms: float = 6.0, reason: str = ""
) -> tuple[list[Finding], list[Change]]:
    """What is found where the trial gave this step, and the changes that were asked about."""
    example = read_example(code)
    asked: list[Change] = []

    def predict(profile: Profile, change: Change) -> Predicted:
        asked.append(change)
        return Predicted(step_ms, 20 / step_ms, basis)  # type: ignore[arg-type]

    diagnosis = diagnose(
        example.profile, texts(example), predict=predict, not_compiling=lambda profile, change: reason
    )
    assert not [note for note in diagnosis.notes if "failed" in note]
    return [one for one in diagnosis.findings if one.rule == "unfused-elementwise"], asked


def test_a_function_that_gained_when_it_was_tried() -> None:
    (one,), asked = told(CODE.format(**AS_IT_IS))
    assert (one.line, [fix.title for fix in one.fixes]) == (4, ["Compile settle"])
    assert one.predicted is not None
    assert one.predicted.basis == "probed"
    (change,) = [change for change in asked if isinstance(change, Replace)]
    assert (change.by, change.options, {line for _, line in change.places}) == (
        "compiled",
        ("", "1"),
        {5, 6, 7},
    )


def test_a_gain_that_a_trial_may_have_wrong_is_a_hint() -> None:
    for step_ms, severity in ((16.0, "information"), (18.0, "hint")):  # of 20 ms
        (one,), _ = told(CODE.format(**AS_IT_IS), step_ms=step_ms)
        assert one.severity == severity


def test_a_trial_with_rounds_that_differ_too_much_is_no_finding() -> None:
    example = read_example(CODE.format(**AS_IT_IS))
    diagnosis = diagnose(
        example.profile,
        texts(example),
        predict=lambda profile, change: Predicted(6.0, 20 / 6, "probed"),
        undecided=lambda profile, change: isinstance(change, Replace),
    )
    assert "unfused-elementwise" not in {one.rule for one in diagnosis.findings}
    (note,) = [note for note in diagnosis.notes if "unfused-elementwise" in note]
    assert note.endswith(
        "only a trial tells what it gains, and its rounds differ too much to say that it gains"
    )


@pytest.mark.parametrize(
    ("facts", "basis", "step_ms"),
    [
        ({}, "simulated", 6.0),  # nothing was tried
        ({}, "probed", 20.0),  # tried, and as slow
        ({"ms": 0.5}, "probed", 18.0),  # too little of the step to compile anything for a trial
        ({"device": "mps"}, "probed", 6.0),  # nothing can be tried there
        ({"above": "@torch.compile"}, "probed", 6.0),
    ],
)
def test_nothing_is_found(facts: dict[str, object], basis: str, step_ms: float) -> None:
    assert told(CODE.format(**AS_IT_IS | facts), basis, step_ms)[0] == []


def test_that_nothing_was_tried_is_said() -> None:
    example = read_example(CODE.format(**AS_IT_IS))
    notes = diagnose(example.profile, texts(example)).notes
    assert [note for note in notes if "unfused-elementwise at train.py:4 is not shown" in note]


def test_without_a_compiler_the_finding_says_so_and_offers_nothing() -> None:
    reason = "torch.compile does not work here: No working C++ compiler found"
    (one,), _ = told(CODE.format(**AS_IT_IS), "simulated", 20.0, reason)
    assert one.message.endswith(f"No edit is offered: {reason}.")
    assert (one.fixes, one.predicted) == ((), None)


def test_the_loop_of_the_steps_is_not_compiled() -> None:
    (one,), _ = told(STEP_IN_MAIN)
    assert one.line in (5, 6)
    assert one.fixes == ()
    assert "the loop of the steps is in this function" in one.message


def test_what_the_loop_of_the_steps_calls_is_compiled_without_it() -> None:
    example = read_example(CODE.format(**AS_IT_IS | {"called": "; op aten::mean count=1 device_ms=0.1"}))
    lines = [
        replace(one, function="main", called=((one.file, "settle"),))
        if one.line > 9
        else replace(one, function="settle")
        for one in example.profile.lines
    ]
    profile = replace(example.profile, lines=tuple(lines))
    found = diagnose(profile, texts(example), predict=lambda *_: Predicted(6.0, 20 / 6, "probed")).findings
    assert [(one.line, len(one.fixes)) for one in found if one.rule == "unfused-elementwise"] == [(4, 1)]


def test_generators_are_not_compiled() -> None:
    (one,), _ = told(CODE.format(**AS_IT_IS | {"last": "yield"}))
    assert one.fixes == ()
    assert "generators" in one.message


@pytest.mark.parametrize(
    ("drawn", "decorator"),
    [
        ("aten.randn_like.default args=[%21]", '@torch.compile(options={"fallback_random": True})'),
        ("aten.bernoulli_.float args=[%21,0.5]", '@torch.compile(options={"fallback_random": True})'),
        ("aten.exp.default args=[%21]", "@torch.compile"),
    ],
)
def test_random_numbers_stay_those_of_torch(drawn: str, decorator: str) -> None:
    code = CODE.format(**AS_IT_IS).replace("aten.neg.default args=[%21]", drawn)
    (one,), _ = told(code)
    assert [edit.text.strip() for edit in one.fixes[0].edits if "compile" in edit.text] == [decorator]


CALLER = """
def night(dust, gusts):
    wind = torch.tensor(gusts)
    #^ cost step_ms=0.1 device_ms=0.1 calls=1; op aten::lift_fresh count=1
    dust = settle(dust, wind)  #> cost step_ms=0.1 calls=1
    return dust * 0.5
    #^ cost step_ms={ms} device_ms={ms} calls=1; op aten::mul count=1 device_ms={ms}
    #^ node aten.mul.Tensor args=[%6,0.5] shape=[500,500] function=night
"""


OTHER_CALLER = """
def check(dust, wind):
    return settle(dust, wind)  #> cost step_ms=0.1 calls=1
"""


def calling(own_ms: int, calls: int, other: str) -> Example:
    """``settle``, called so often by ``night``."""
    settle = CODE.format(**AS_IT_IS).partition("def main")[0].replace("calls=1", f"calls={calls}")
    example = read_example(settle + CALLER.format(ms=own_ms) + other)
    called = ((example.profile.lines[0].file, "settle"),)
    functions = {line: "night" if 10 < line < 15 else "check" for line in range(11, 20)}
    lines = [
        replace(
            one, function=functions.get(one.line, "settle"), called=called if one.line in (12, 16) else ()
        )
        for one in example.profile.lines
    ]
    return replace(example, profile=replace(example.profile, lines=tuple(lines)))


@pytest.mark.parametrize(
    ("own_ms", "calls", "other", "line"),
    [
        (0, 1, "", 4),  # a tensor of a number would be compiled for each value
        (0, 2, "", 10),  # both calls would be compiled together
        (5, 1, "", 10),  # and what the caller makes of the result
        (5, 2, OTHER_CALLER, 4),  # one of the calls would stay as it is
    ],
)
def test_a_caller_is_compiled_in_place_of_what_it_calls(
    own_ms: int, calls: int, other: str, line: int
) -> None:
    example = calling(own_ms, calls, other)
    found = diagnose(
        example.profile, texts(example), predict=lambda *_: Predicted(6.0, 20 / 6, "probed")
    ).findings
    assert [one.line for one in found if one.rule == "unfused-elementwise"] == [line]


@pytest.mark.parametrize(
    ("tried", "compiled"),
    [
        ({"8": 8.0}, "settle"),  # all calls together compiled for too long
        ({"8": 8.0, "1": 9.0}, "settle"),
        ({"8": 8.0, "1": 6.0}, "night"),
        ({"1": 6.0}, "night"),
        ({}, ""),
    ],
)
def test_what_is_called_again_and_again_may_be_compiled_by_itself(
    tried: dict[str, float], compiled: str
) -> None:
    example = calling(0, 8, "")
    asked: list[str] = []

    def predict(profile: Profile, change: Change) -> Predicted:
        assert isinstance(change, Replace)
        asked.append(change.options[1])
        step_ms = tried.get(asked[-1], 5.0)
        return Predicted(step_ms, 20 / step_ms, "probed" if asked[-1] in tried else "simulated")

    diagnosis = diagnose(example.profile, texts(example), predict=predict)
    found = [one for one in diagnosis.findings if one.rule == "unfused-elementwise"]
    assert asked[:2] == ["8", "1"]  # what is compiled sooner is tried first
    assert [one.fixes[0].title for one in found] == ([f"Compile {compiled}"] if compiled else [])
    assert all(one.predicted is not None and one.predicted.step_ms == min(tried.values()) for one in found)


IN_LAYERS = """\
#> device kind={device}; steps step_ms=20
import torch

class Layer(torch.nn.Module):
    def forward(self, dust):
        fall = torch.exp(-dust)
        #^ cost step_ms=9 device_ms=9 calls=12 function=Layer.forward; op aten::exp count=24 device_ms=9
        #^ kernel vectorized_elementwise_kernel count=24 device_ms=9
        #^ node aten.neg.default args=[%21] shape=[500,500] function=Layer.forward
        #^ node aten.exp.default args=[%0] shape=[500,500] function=Layer.forward
        return dust * fall + self.index
        #^ cost step_ms=9 device_ms=9 calls=12 function=Layer.forward; op aten::add count=24 device_ms=9
        #^ kernel vectorized_elementwise_kernel count=24 device_ms=9
        #^ node aten.mul.Tensor args=[%21,%1] shape=[500,500] function=Layer.forward
        #^ node aten.add.Tensor args=[%2,3] shape=[500,500] function=Layer.forward

layers = [Layer() for _ in range(12)]  #> site module type=__main__.Layer count=12 {variants}
"""


def test_modules_that_are_compiled_apart_beyond_the_limit_gain_nothing() -> None:
    for variants, edited in (("", True), ("variants=8", True), ("variants=12", False)):
        found, _ = told(IN_LAYERS.format(device="cpu", variants=variants))
        assert bool(found) is edited
    (one,), asked = told(IN_LAYERS.format(device="cuda", variants="variants=12"))
    assert one.fixes == ()
    assert not asked
    assert "compile a function that calls all of them" in str(one)
