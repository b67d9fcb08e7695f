"""A network of convolutions in channels_last: which of the recorded operators are tried together."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.annotated import FILE, read_example
from warpline.capture import probing
from warpline.model.change import ChannelsLast, Fuse, Replace
from warpline.model.profile import LineCost, Op, Profile
from warpline.probing import by_question, informed, questions
from warpline.probing.layouts import questions_for
from warpline.rulekit import Context
from warpline.rulekit.convolutions import network_places
from warpline.wire.probing import Answer, Cost, Probed, Question, QuestionBatch, Tensor
from warpline.wire.run import Request

SCRIPT = """\
import torch
from torch import nn

torch.manual_seed(0)

def block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.SiLU(True))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = block(3, 8)
        self.blocks = nn.ModuleList(block(8, 8) for _ in range(3))
        self.up, self.head = nn.ConvTranspose2d(8, 8, 2, 2), nn.Linear(8, 4)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.stem(x), 2)
        for one in self.blocks:
            x = one(x)
        x = self.up(x) + {last}
        return self.head({pooled})

net = Net(){mode}
images = torch.randn(2, 3, 16, 16)

def step():
    {autocast}
        out = net(images * 2)
        loss = out.square().mean()
    {ending}
"""
USUAL = {
    "last": "1",
    "pooled": "x.mean((2, 3))",
    "mode": "",
    "autocast": 'with torch.autocast("cpu", torch.bfloat16):',
    "ending": "loss.backward()",
}
SERVED = {"autocast": "with torch.inference_mode():", "ending": "pass", "mode": ".eval()"}


def profiled(**given: str) -> Profile:
    """A run whose lines cost what convolutions and norms of their sizes do, as far as trials look at it."""
    pytest.importorskip("torch")
    from warpline.capture.runner.dataflow.mode import Recording
    from warpline.capture.runner.lines.names import QualifiedNames
    from warpline.capture.runner.lines.userfiles import UserFiles

    sites: Any = SimpleNamespace(user_files=UserFiles(["/example"], []), names=QualifiedNames())
    recording = Recording(sites)
    scope: dict[str, Any] = {"__name__": "__main__"}
    text = SCRIPT.format(**USUAL | given)
    exec(compile(text, FILE, "exec"), scope)
    recording.start()
    try:
        scope["step"]()
    finally:
        flow = recording.stop()
    assert flow.missing == ""
    base = read_example(text).profile
    ops = (
        Op("aten::cudnn_convolution", "forward", 3, 3.0, 1.0, ((2, 8, 8, 8), (8, 8, 3, 3))),
        Op("aten::convolution_backward", "backward", 3, 6.0, 1.0, ((2, 8, 8, 8),) * 2 + ((8, 8, 3, 3),)),
        Op("aten::cudnn_convolution", "forward", 1, 2.0, 1.0, ((2, 3, 16, 16), (8, 3, 3, 3))),
        Op("aten::native_batch_norm", "forward", 3, 1.5, 1.0, ((2, 8, 8, 8), (8,))),
        Op("aten::native_batch_norm_backward", "backward", 3, 3.0, 1.0, ((2, 8, 8, 8),) * 2),
    )
    line = 1 + text.splitlines().index("            x = one(x)")
    return replace(
        base,
        facts=replace(base.facts, dataflow=flow),
        lines=(LineCost(FILE, line, "Net.forward", 20.0, 20.0, ops=ops),),
        sources={FILE: text},
    )


def on_a_cpu(profile: Profile) -> Profile:
    device = replace(profile.manifest.device, kind="cpu")
    return replace(profile, manifest=replace(profile.manifest, device=device))


def change_of(profile: Profile) -> Replace:
    context = Context(profile, profile.sources.get)
    return Replace("channels_last", network_places(context), ChannelsLast())


def operators(question: Question) -> list[str]:
    return [name.split(".")[1] for name, *_ in json.loads(question.options[0])["operators"]]


def test_each_piece_begins_with_a_convolution_and_equal_ones_are_one() -> None:
    profile = profiled()
    change = change_of(profile)
    text = profile.sources[FILE].splitlines()
    assert [text[line - 1].strip() for _, line in change.places] == [
        "x = nn.functional.max_pool2d(self.stem(x), 2)",
        "x = one(x)",
        "x = self.up(x) + 1",
    ]
    repeated, stem, *others = questions(profile, change)
    assert operators(repeated)[:3] == ["_to_copy", "convolution", "add_"]  # counts the batches
    assert {"batch_norm", "silu_"} <= set(operators(repeated))
    assert "native_batch_norm" not in operators(repeated)
    assert "max_pool2d_with_indices" in operators(stem)
    assert [operators(one)[-2:] for one in others] == [["convolution", "add"]]
    assert all(one.backward and "same" in one.options for one in (repeated, stem, *others))


def test_a_group_norm_takes_any_layout() -> None:
    """Its operator below autograd takes only two, and others meet: of diffusers' UNet nothing was tried."""
    normed = "nn.functional.group_norm(x.mT + x.mT.contiguous().relu(), 2)"
    profile = on_a_cpu(profiled(last=f"{normed}.mean((2, 3), True)"))
    (whole,) = questions(profile, change_of(profile))
    assert "group_norm" in operators(whole)
    from warpline.capture.runner.probing.layouts import channels_last

    pair = channels_last(whole, "cpu")
    assert len(pair.after()) == len(pair.before())


def test_on_a_cpu_the_whole_network_is_one_question_unless_it_takes_long() -> None:
    """What lies between the pieces, and which tensors change their layout, counts too."""
    profile = on_a_cpu(profiled())
    change = change_of(profile)
    (whole,) = questions(profile, change)
    assert operators(whole).count("convolution") == 5
    assert {"max_pool2d_with_indices", "add"} <= set(operators(whole))
    (cost,) = profile.lines
    slow = replace(profile, lines=(replace(cost, step_ms=20_000.0),))
    assert questions(slow, change) == questions(profiled(), change)
    flow = profile.facts.dataflow
    flat = replace(flow, shapes=tuple(shape[:3] for shape in flow.shapes))  # no images
    assert questions(replace(profile, facts=replace(profile.facts, dataflow=flat)), change) == []


def test_what_is_recorded_in_inference_mode_is_tried_too() -> None:
    """Its operators are recorded as they are called, a convolution as ``conv2d``."""
    profile = profiled(**SERVED)
    assert len(change_of(profile).places) == 3
    asked = questions(profile, change_of(profile))
    first = [next(name for name in operators(one) if "conv" in name) for one in asked]
    assert sorted(first) == ["conv2d", "conv2d", "conv_transpose2d"]


def test_the_answers_shorten_the_lines_of_the_network() -> None:
    profile = profiled()
    change = change_of(profile)
    asked = questions(profile, change)
    answers = [Answer(one, Cost(10.0, 1000.0), Cost(10.0, 600.0)) for one in asked]
    made, tried = informed(profile, change, by_question(Probed(tuple(answers))))
    assert tried
    assert isinstance(made, Fuse)
    assert made.places == change.places
    assert made.keep == pytest.approx(0.6)
    assert made.keep_host == pytest.approx(1.0)
    # What a trial takes says how much it counts: the record has the time of convolutions and norms alone.
    first, *others = answers
    quicker = replace(first, before=Cost(10.0, 1e12), after=Cost(10.0, 3e11))
    made, _ = informed(profile, change, by_question(Probed((quicker, *others))))
    assert isinstance(made, Fuse)
    assert made.keep == pytest.approx(0.3, abs=1e-3)
    # Those without an answer may take most of the time.
    assert informed(profile, change, by_question(Probed(tuple(answers[1:])))) == (change, False)


def test_equal_calls_on_several_lines_count_once_each() -> None:
    profile = profiled()
    (cost,) = profile.lines
    halves = (replace(cost, line=line, ops=tuple(replace(op, count=op.count / 2, device_ms=op.device_ms / 2)
              for op in cost.ops)) for line in (cost.line, cost.line + 1))  # fmt: skip
    apart = replace(profile, lines=tuple(halves))
    weights = [[weight for _, weight in questions_for(one, change_of(one), list(one.lines))]
               for one in (profile, apart)]  # fmt: skip
    assert weights[0] == weights[1]


@pytest.mark.process
def test_gradients_may_differ_by_what_rounding_chooses() -> None:
    """The layouts sum up in another order, and this gradient is another number for each rounding."""
    wave = ["mul.Tensor", 1e9], ["sin.default"], ["mul.Tensor", 1e-9]
    operators = [
        ["aten.convolution.default", ["%0", "%1", None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1], [2]]
    ]
    operators += [[f"aten.{name}", [f"%{at}", *rest], [at + 1]] for at, (name, *rest) in enumerate(wave, 2)]
    part = {"operators": operators, "inputs": [0, 1], "leaves": [0, 1], "results": [5]}
    tensors = Tensor((2, 64, 16, 16), "float32"), Tensor((64, 64, 3, 3), "float32")
    asked = Question("channels_last", tensors, (json.dumps(part), "same"), backward=True)
    (answer,) = probing.probe(Request(python=sys.executable), [asked], 30.0, device="cpu", threads=1).answers
    assert answer.error == ""
    assert answer.before is not None


def test_what_cudnn_searches_for_has_time_again_after_all_that_compiles() -> None:
    pytest.importorskip("torch")
    from warpline.capture.runner.probing.answers import in_order

    asked = Question("gelu", ()), Question("channels_last", (), ("benchmark",)), Question("compiled", ())
    for device, again in (("cuda", [(asked[1], 2.0)]), ("cpu", [])):
        wanted = QuestionBatch(device, None, 1.0, 1.0, asked)
        assert list(in_order(wanted, 1.0, 2.0)) == [(asked[0], 1.0), (asked[1], 1.0), (asked[2], 2.0), *again]


def test_weights_are_turned_as_a_model_turns_its_own() -> None:
    """A depthwise weight, contiguous in both layouts, has the strides that operators look at."""
    torch = pytest.importorskip("torch")
    from warpline.capture.runner.probing.layouts import _turned

    layer = torch.nn.Conv2d(8, 8, 3, groups=8)
    turned = _turned(layer.weight)
    before = layer.weight.stride()
    layer.to(memory_format=torch.channels_last)
    assert turned.stride() == layer.weight.stride() != before


@pytest.mark.process
@pytest.mark.parametrize("place", [lambda profile: profile, on_a_cpu], ids=["pieces", "whole"])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"mode": ".eval()"},
        {"autocast": "if True:"},
        {"last": "nn.functional.dropout(x.repeat_interleave(2, 2).repeat_interleave(2, 3), 0.1)"},
        {"pooled": "x.reshape(2, 8, -1).mean(-1)"},
        {"pooled": "x.view(2, 8, 256).mean(-1)"},
        SERVED,
    ],
)
def test_what_is_tried_gives_the_same_in_both_layouts(
    given: dict[str, str], place: Callable[[Profile], Profile]
) -> None:
    profile = place(profiled(**given))
    asked = questions(profile, change_of(profile))
    assert asked
    found = probing.probe(Request(python=sys.executable), asked, 60.0, device="cpu", threads=1)
    assert [one.error for one in found.answers] == [""] * len(asked)
    assert all(one.difference <= 1 for one in found.answers)
    assert any({"convolution", "conv2d"} & {*operators(one.question)} for one in found.answers)


def test_several_networks_in_a_step_are_not_tried() -> None:
    """An optimizer's step between two convolutions: the edit is about one of the networks."""
    profile = profiled()
    flow = profile.facts.dataflow
    sites = tuple(replace(site, via="optimizer") if site.line == change_of(profile).places[1][1] else site
                  for site in flow.sites)  # fmt: skip
    profile = replace(profile, facts=replace(profile.facts, dataflow=replace(flow, sites=sites)))
    assert change_of(profile).places == ()
