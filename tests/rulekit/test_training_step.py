"""Where a training step's forward pass and model are found, however the loop is written."""

import pytest

from tests.annotated import read_project
from warpline.rulekit import Context
from warpline.rulekit.model_lines import about_model, is_torchs, model_class, model_name
from warpline.rulekit.training import TrainingStep, training_steps
from warpline.syntax.edits import Edits, Refused
from warpline.text.edits import apply

MARKED = """
from torch.profiler import record_function

model = Net().cuda()
for x, y in loader:
    with record_function("copy"):
        x = x.cuda()
    with record_function("forward"):
        loss = criterion(model(x), y)
    with record_function("backward"):
        optimizer.zero_grad()
        loss.backward()
    with record_function("optimizer"):
        optimizer.step()
"""

LAYERS = """
layers = nn.ModuleList(Layer() for _ in range(6)).cuda()
for x in batches:
    h = x
    for layer in layers:
        h = layer(h)
    loss = torch.atan(h).mean()
    loss.backward()
"""

SEVERAL = """
first, second = Conv().cuda(), Conv().cuda()
for x in batches:
    loss = second(first(x)).mean()
    loss.backward()
"""


#: How a model is made, and whether ``Module.compile()`` would do anything for it.
MAKINGS = {
    "net = nn.Sequential(nn.Linear(8, 8), nn.ReLU())": True,
    "net = nn.Sequential(nn.Linear(8, 8)).cuda().to(memory_format=torch.channels_last)": True,
    "net = make()": True,
    "net = Net(8).cuda()": False,
    "net = timm.create_model('resnet50')": False,
    "net = nn.ModuleList([nn.Linear(8, 8)])": True,
    "net = nn.ModuleList(Layer() for _ in range(6)).cuda()": False,
}


@pytest.mark.parametrize(("making", "torchs"), MAKINGS.items())
def test_modules_of_torchs_own_are_told_by_how_they_are_made(making: str, torchs: bool) -> None:
    code = f"""
import torch
from torch import nn

def make():
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU())

{making}
for x in batches:
    net(x).mean().backward()
"""
    assert is_torchs(step_of(code), "net") is torchs


def step_of(code: str) -> TrainingStep:
    project = read_project({"/project/train.py": code})
    (found,) = training_steps(Context(project.profile, project.texts.get))
    return found


def with_line(code: str) -> str:
    step = step_of(code)
    edits = Edits(step.source)
    about_model(step, edits, "{model}.compile()", each="{model}.compile()")
    return apply(code, edits.fix("", "unsafe").edits)


def test_a_with_around_backward_alone_does_not_hide_the_forward_pass() -> None:
    step = step_of(MARKED)
    assert [step.source.code(entry).strip().splitlines()[0] for entry in step.forward] == [
        'with record_function("forward"):'
    ]
    assert len(step.optimizer_steps()) == 1
    assert "model = Net().cuda()\nmodel.compile()\n" in with_line(MARKED)


SCALED = """
model = Net().cuda()
for x, y in loader:
    with torch.autocast("cuda", enabled=scaler is not None):
        loss = criterion(model(x), y)
    if scaler is not None:
        scaler.scale(loss).backward()
    elif clipped:
        loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
    else:
        loss.backward()
"""


def test_the_forward_pass_is_before_the_if_around_backward() -> None:
    (example,) = [read_project({"/example/train.py": SCALED})]
    steps = training_steps(Context(example.profile, example.texts.get))
    assert len(steps) == 3
    for step in steps:
        assert [step.source.line(one) for one in step.forward] == [4]
        assert model_name(step) == "model"


def test_a_builtin_is_no_model() -> None:
    code = """
import torch

net = torch.nn.Linear(8, 8).cuda()
for k in range(9):
    window = slice(4 * k, 4 * k + 4)
    first = int(k == 0)
    loss = torch.nn.functional.mse_loss(net(xs[window]), ys[window]) * first
    loss.backward()
"""
    assert "net = torch.nn.Linear(8, 8).cuda()\nnet.compile()\n" in with_line(code)


def test_layers_that_the_step_calls_itself_are_each_taken() -> None:
    assert ".cuda()\nfor layer in layers:\n    layer.compile()\nfor x in" in with_line(LAYERS)


def test_one_of_several_modules_is_not_taken_for_the_model() -> None:
    with pytest.raises(Refused, match="the model was not found"):
        with_line(SEVERAL)


def test_what_the_loop_does_beside_the_model_is_told_from_it() -> None:
    beside = step_of(MARKED).beside
    assert [line for number, line in enumerate(MARKED.splitlines(), 1) if number in beside] == [
        '    with record_function("copy"):',
        "        x = x.cuda()",
        '    with record_function("optimizer"):',
        "        optimizer.step()",
    ]


BESIDE = """
with torch.device("cuda"):
    encoder = Text.from_pretrained("a")
unet = Unet.from_pretrained("b")
{frozen}
for pixels, text in loader:
{called}
    loss = F.mse_loss(unet(pixels, states), pixels)
    loss.backward()
"""


@pytest.mark.parametrize(
    ("frozen", "called", "name"),
    [
        ("encoder.requires_grad_(False)", "    states = encoder(text)[0]", "unet"),
        ("", "    with torch.no_grad():\n        states = encoder(text)[0]", "unet"),
        ("", "    states = encoder(text)[0]", "encoder"),
        (
            "encoder.requires_grad_(False); unet.requires_grad_(False)",
            "    states = encoder(text)[0]",
            "encoder",
        ),
    ],
)
def test_what_is_frozen_is_not_the_model(frozen: str, called: str, name: str) -> None:
    assert model_name(step_of(BESIDE.format(frozen=frozen, called=called))) == name


@pytest.mark.parametrize(
    ("making", "called", "name"),
    [
        ("torch.nn.Linear(8, 8)", "rolled_out(f, x)", "f"),
        ("Flow()", "rolled_out(x, field=f)", "f"),
        ("Plan()", "rolled_out(f, x)", None),  # an object that is no module
        ("torch.nn.Linear(8, 8)", "elsewhere(f, x)", "f"),
    ],
)
def test_a_model_that_a_function_is_given(making: str, called: str, name: str | None) -> None:
    code = f"""
import torch
from losses import elsewhere

class Flow(torch.nn.Module):
    def forward(self, x):
        return x

class Plan:
    pass

def rolled_out(field, x):
    for _ in range(4):
        x = x + field(x)
    return x

f = {making}
for x in batches:
    loss = {called}.mean()
    loss.backward()
"""
    assert model_name(step_of(code)) == name


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ("return library.Net(64)", "library.Net"),
        ("return Other(64)", ""),
        ("return build(False)", ""),  # its own first line is meant, but that is not followed
    ],
)
def test_a_function_that_makes_the_model_on_several_lines(second: str, expected: str) -> None:
    text = f"""
import library

def build(small):
    if small:
        return library.Net(8)
    {second}

model = build(small).cuda().eval()
for x in batches:
    model(x).mean().backward()
"""
    example = read_project({"train.py": text})
    context = Context(example.profile, example.profile.sources.get)
    (step,) = training_steps(context)
    assert model_class(step, "model") == expected


AUGMENTED = """
warp = kornia.Warp(0.2)  # no module, as far as the text says
network = zoo.make("small")
for batch in stream:
    x, y = warp(*batch)  #> cost step_ms=3 device_ms=3 launches=9 {warped}
    out = network(x)  #> cost step_ms=20 device_ms=20 launches=90 {out}
    loss = out.sub(y).abs().mean()
    loss.backward()
"""


@pytest.mark.parametrize(
    ("warped", "out", "name"),
    [
        ("", "nodes=40", "network"),  # only the model's line adds to autograd's graph
        ("nodes=4", "nodes=40", "warp"),  # an encoder may be trained as well
        ("", "", "warp"),  # nothing was recorded of the graph
    ],
)
def test_what_makes_a_batch_is_no_model(warped: str, out: str, name: str) -> None:
    assert model_name(step_of(AUGMENTED.format(warped=warped, out=out))) == name
