"""Another layout of convolutions where the CPU is the device: only what was faster when it was tried."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.diagnosis import Diagnosis, diagnose
from warpline.model.change import Change, Replace
from warpline.model.profile import Profile
from warpline.model.report import Basis, Predicted
from warpline.rulekit import Context
from warpline.rulekit.model_lines import named_at
from warpline.text.edits import apply
from warpline.wire.births import Executed, UserFrame
from warpline.wire.run import Site

TRAINED = """\
#> device kind={device}; steps step_ms=20
import torch

class Spots(torch.nn.Module):
    def forward(self, slides):
        return self.spread(slides).relu()
        #^ cost step_ms={ms} device_ms={ms} backward_ms=2
        #^ op aten::mkldnn_convolution shapes=[[4,24,32,32]] strides={strides} dtypes=float device_ms={ms}
        #^ node aten.convolution.default args=[%20,%21] shape=[4,24,32,32] function=Spots.forward
        #^ node aten.relu.default args=[%0] shape=[4,24,32,32] function=Spots.forward

{before}
spots = Spots()
for slides, wanted in batches:
    loss = (spots(slides) - wanted).square().mean()
    loss.backward()
    optimizer.step()
"""
FIRST, LAST = "[[24576,1024,32,1]]", "[[24576,1,768,24]]"
#: As it is recorded in inference mode.
SERVED = """\
#> device kind=cpu; steps step_ms=20
import torch

class Spots(torch.nn.Module):
    def forward(self, slides):
        return self.spread(slides).relu()
        #^ cost step_ms=15 device_ms=15 function=Spots.forward
        #^ op aten::mkldnn_convolution shapes=[[4,24,32,32]] strides={strides} dtypes=float device_ms=15
        #^ node aten.conv2d.default args=[%20,%21] shape=[4,24,32,32] function=Spots.forward
        #^ node aten.relu.default args=[%0] shape=[4,24,32,32] function=Spots.forward

spots = Spots().eval()
#^ site module type=train.Spots
with torch.inference_mode():
    for slides in batches:
        counted.append(spots(slides))
"""


def told(code: str, basis: Basis = "probed", step_ms: float = 12.0) -> Diagnosis:
    """What is found where the trial gave this step."""
    example = read_example(code)

    def predict(profile: Profile, change: Change) -> Predicted | None:
        return Predicted(step_ms, 20 / step_ms, basis) if isinstance(change, Replace) else None

    diagnosis = diagnose(example.profile, texts(example), predict=predict)
    assert not [note for note in diagnosis.notes if "failed" in note]
    return diagnosis


def trained(**facts: object) -> str:
    return TRAINED.format(**{"device": "cpu", "ms": 15, "strides": FIRST, "before": "", **facts})


def test_of_a_model_that_is_trained() -> None:
    diagnosis = told(trained())
    (one,) = [one for one in diagnosis.findings if one.rule == "channels-first-conv"]
    assert one.line == 8
    assert [fix.title for fix in one.fixes] == ["Convert the model to channels_last"]
    change = diagnosis.changes[one.id]
    assert isinstance(change, Replace)
    assert (change.by, [line for _, line in change.places]) == ("channels_last", [5])


@pytest.mark.parametrize(
    ("facts", "basis", "step_ms"),
    [
        ({}, "simulated", 12.0),  # nothing was tried
        ({}, "probed", 20.0),  # it was, and the layout does not matter
        ({"strides": LAST}, "probed", 12.0),  # it is the other layout already
        ({"ms": 1.5}, "probed", 18.0),  # a small part of the step
        ({"device": "mps"}, "probed", 12.0),
    ],
)
def test_nothing_is_found(facts: dict[str, object], basis: Basis, step_ms: float) -> None:
    found = told(trained(**facts), basis, step_ms).findings
    assert "channels-first-conv" not in {one.rule for one in found}


def test_a_model_that_is_only_called_is_converted_where_it_is_made() -> None:
    (one,) = [one for one in told(SERVED.format(strides=FIRST)).findings if one.rule == "channels-first-conv"]
    assert one.line == 7
    ((edit,),) = [fix.edits for fix in one.fixes]
    assert "spots.to(memory_format=torch.channels_last)" in edit.text


def test_one_that_is_converted_already_is_left_alone() -> None:
    more = "spots.to(memory_format=torch.channels_last)\nwith torch.inf"
    (one,) = [
        one
        for one in told(SERVED.format(strides=FIRST).replace("with torch.inf", more)).findings
        if one.rule == "channels-first-conv"
    ]
    assert one.fixes == ()
    assert "already" in one.message


@pytest.mark.parametrize(("bases", "edits"), [("", 0), ("(torch.nn.Module)", 1)])
def test_an_object_that_is_given_the_model_is_not_converted(bases: str, edits: int) -> None:
    """It is no module, and has no ``to``."""
    holder = f"class Counter{bases}:\n    def __init__(self, net):\n        self.net = net\n\n"
    holder += "spots = Counter(Spots().eval())"
    code = SERVED.format(strides=FIRST).replace("spots = Spots().eval()", holder)
    (one,) = [one for one in told(code).findings if one.rule == "channels-first-conv"]
    assert len(one.fixes) == edits


MADE = """\
def build(width):
    return Spots(int(width))

def choose(name, **more):
    return KINDS[name](**more)

def run():
    {given}
    Fitting(net).fit()

run()
"""


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ("net = choose('build', width=8).train()", 8),
        ("net = choose('build', width=len(KINDS)).to(place())", 8),
        ("net, rate = choose('build', width=8)", 2),
        ("net = Fitted(choose('build', width=8))", 2),  # of another class, perhaps
        ("fit(choose('build', width=8))", 2),
    ],
)
def test_a_model_of_functions_has_its_name_where_they_return_it_to(given: str, line: int) -> None:
    """As for an object that is given the model, and calls it by a name of its own."""
    example = read_example(MADE.format(given=given))
    running = {2: "build", 5: "choose", 8: "run", 11: "<module>"}
    frames = tuple(UserFrame(FILE, at, name) for at, name in running.items())
    facts = {"type": "spots.Spots"}
    born = Site("module", FILE, 2, "build", facts, frames=(UserFrame(FILE, 1, "Spots.__init__"), *frames))
    source, found = named_at(Context(example.profile, texts(example)), born)
    assert (source.path, found) == (FILE, line)


@pytest.mark.parametrize(
    ("back", "after", "fixed"),
    [
        ("spots.train()", "", "return spots.train().to(memory_format=torch.channels_last)"),
        ('spots.to("cpu")', "", 'return spots.to("cpu", memory_format=torch.channels_last)'),
        ("spots", "", "    spots = Spots()\n    spots.to(memory_format=torch.channels_last)\n    return"),
        ("spots", "two = make()", "spots = make()\nspots.to(memory_format=torch.channels_last)"),
        (
            "spots.train()",
            "spots.to(device)",
            "spots.to(device)\nspots.to(memory_format=torch.channels_last)",
        ),
        ("spots.parts()", "", "spots = make()\nspots.to(memory_format=torch.channels_last)"),
    ],
)
def test_a_function_that_finishes_the_model(back: str, after: str, fixed: str) -> None:
    code = trained(before=f"def make():\n    spots = Spots()\n    return {back}\n")
    code = code.replace("\nspots = Spots()\n", f"\nspots = make()\n{after}\n")
    (one,) = [one for one in told(code).findings if one.rule == "channels-first-conv"]
    text = read_example(code).text
    changed = apply(text, one.fixes[0].edits)
    assert fixed in changed
    assert text.splitlines()[one.line - 1].strip() in fixed.splitlines()[0].replace(
        ".to(memory_format=torch.channels_last)", ""
    ).replace(", memory_format=torch.channels_last", "")


CONVERTED = "spots = spots.to(memory_format=torch.channels_last)"
CONDITION = 'if spots.device.type == "cuda":'


def converted_in(code: str, block: str, *, ran: bool) -> str | None:
    """The text with the edit where lines below the model's making convert it; None without an edit."""
    loop = "\nwith torch.inf" if "with torch.inf" in code else "\nfor slides, wanted"
    example = read_example(code.replace(loop, block + loop))
    lines = enumerate(example.text.splitlines(), 1)
    executed = Executed({FILE: tuple(at for at, line in lines if ran or "format" not in line)}, complete=True)
    profile = replace(example.profile, facts=replace(example.profile.facts, executed=executed))
    found = diagnose(profile, texts(example), predict=lambda *_: Predicted(12.0, 20 / 12, "probed"))
    (one,) = [one for one in found.findings if one.rule == "channels-first-conv"]
    return apply(example.text, one.fixes[0].edits) if one.fixes else None


@pytest.mark.parametrize("code", [trained(), SERVED.format(strides=FIRST)])
def test_a_condition_that_was_false_goes(code: str) -> None:
    changed = converted_in(code, f"\n{CONDITION}\n    {CONVERTED}", ran=False)
    assert changed is not None
    assert f"\n{CONVERTED}\n" in changed and CONDITION not in changed


@pytest.mark.parametrize(
    ("block", "ran"),
    [
        (f"\n{CONDITION}\n    {CONVERTED}", True),
        (f"\n{CONDITION}\n    print()\n    {CONVERTED}", False),
        (f"\n{CONDITION}\n    {CONVERTED}\nelse:\n    print()", False),
        (f"\nif fast:\n    print()\nel{CONDITION}\n    {CONVERTED}", False),
    ],
)
def test_other_conditions_stay(block: str, ran: bool) -> None:
    assert converted_in(trained(), block, ran=ran) is None
