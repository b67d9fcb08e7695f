"""What a step calls that could be compiled, and where compiled code would fail or give other values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.model.report import Fix, OpUse
from warpline.rulekit import Context, Refused
from warpline.rulekit.compiling import Target, target
from warpline.rulekit.training import training_steps
from warpline.text.edits import apply

ACTOR_CRITIC = """\
import copy
import torch
from torch import nn

class Critic(nn.Module):
    def forward(self, x):
        return x

def mlp(n):
    return nn.Sequential(nn.Linear(n, n), nn.ReLU())

class Agent:
    def __init__(self):
        self.actor = mlp(4).cuda()
        self.critic = Critic().cuda()
        self.target = copy.deepcopy(self.critic)

    def update(self, x):
        with torch.no_grad():
            y = self.target(x)
        loss = self.criterion(self.critic(self.actor(x)), y)
        loss.backward()
"""
GAN = """\
import torch
from torch import nn
makers = dict(device="cuda")
left, right = (nn.Sequential(nn.Linear(8, 8)).to(**makers) for _ in range(2))
judge = nn.Linear(8, 1).cuda()
augment = make_augmentation()
for x in batches:
    loss = judge(augment(left(x))).mean() + judge(right(x)).mean()
    loss.backward()
"""


def aim(text: str, *operators: str) -> Target:
    example = read_example(text)
    profile = example.profile
    if operators:
        first, *others = profile.lines
        ops = tuple(OpUse(name, "backward", 1.0, 0.1, ()) for name in operators)
        profile = replace(profile, lines=(replace(first, ops=ops), *others))
    context = Context(profile, texts(example))
    return target(context, training_steps(context))


def made(text: str) -> list[str]:
    fix: Fix = aim(text).fixes[0]()
    return [line.strip() for line in apply(text, fix.edits).splitlines() if "compile" in line]


def test_several_models_are_compiled_where_each_is_made() -> None:
    assert made(ACTOR_CRITIC) == [
        "self.actor.forward = torch.compile(self.actor.forward)",
        "self.critic.compile()",
    ]
    found = aim(ACTOR_CRITIC)
    assert (found.promised, found.graphs, found.place) == (True, False, (FILE, 14))


def test_models_of_one_statement_and_nothing_that_is_no_module() -> None:
    assert made(GAN) == [
        "left.forward = torch.compile(left.forward)",
        "right.forward = torch.compile(right.forward)",
        "judge.forward = torch.compile(judge.forward)",
    ]


def test_a_frozen_teacher_beside_the_model_in_one_statement() -> None:
    text = """\
student = Net()
teacher = Net().requires_grad_(False)
teacher.requires_grad_(False)
for x in batches:
    loss = distance(student(x), teacher(x))
    loss.backward()

def distance(a, b):
    return (a - b).square().mean()
"""
    assert made(text) == ["student.compile()"]


@pytest.mark.parametrize("copied", ["copy.deepcopy(net)", "AveragedModel(net)", "torch.save(net, 'net.pt')"])
def test_a_forward_that_is_set_does_not_survive_a_copy(copied: str) -> None:
    text = f"""\
import copy, torch
from torch import nn
from torch.optim.swa_utils import AveragedModel
net = nn.Sequential(nn.Linear(8, 8)).cuda()
kept = {copied}
for x in batches:
    loss = net(x).mean()
    loss.backward()
"""
    with pytest.raises(Refused, match="does not survive"):
        made(text)
    assert made(text.replace("(net", "(net.state_dict()")) == ["net.forward = torch.compile(net.forward)"]
    # A class of the script's own is compiled by `compile()`, which a copy leaves behind.
    own = text.replace("nn.Sequential(nn.Linear(8, 8))", "Net()")
    assert made(own) == ["net.compile()"]


def test_gradients_of_gradients_are_not_compiled() -> None:
    text = "model = Net()\nfor x in batches:\n    loss = model(x).mean()  #> cost\n    loss.backward()\n"
    node = "autograd::engine::evaluate_function: "
    assert aim(text, node + "TanhBackward0").promised
    found = aim(text, node + "TanhBackward0", node + "TanhBackwardBackward0")
    assert not found.promised
    for fix in found.fixes:
        with pytest.raises(Refused, match="gradients of gradients"):
            fix()


FLOWS = """\
import torch
from flows import *

def build(device):
    layers = [Layer(4) for _ in range(3)]
    flow = Chain(*layers).to(device)
    #^ site module type=flows.Chain
    print(sum(p.numel() for p in flow.parameters()))
    return flow

def likelihood(flow, x):
    return flow(x).sum()

def train(flow, batches):
    for x in batches:
        loss = -likelihood(flow, x)  #> cost step_ms=9 cpu_ms=9 launches=300
        loss.backward()

model = build("cuda")
train(model, batches)
"""


@pytest.mark.parametrize("name", ["model", "flow"])
def test_a_model_of_another_file_s_class_that_a_function_makes_and_another_one_calls(name: str) -> None:
    given = FLOWS.replace("model", name).replace("(flow, ", f"({name}, ").replace("-flow(", f"-{name}(")
    found, example = aim(given), read_example(given)
    assert found.place == (FILE, 6)
    (after, *_) = (apply(example.text, fix().edits) for fix in found.fixes)
    assert "    flow = Chain(*layers).to(device)\n    flow.compile()\n" in after


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('model = build("cuda")', 'model = build("cuda")\nother = build("cpu")'),
        ("    return flow", "    return flow.train()"),
        (
            "    print(sum(p.numel() for p in flow.parameters()))",
            "    if wide:\n        flow = Chain(*layers[:2])",
        ),
    ],
)
def test_a_model_that_is_not_made_in_one_place_of_a_function_is_compiled_by_its_caller(
    old: str, new: str
) -> None:
    given = FLOWS.replace(old, new).replace("(flow, ", "(model, ")
    example = read_example(given)
    (after, *_) = (apply(example.text, fix().edits) for fix in aim(given).fixes)
    assert 'model = build("cuda")\nmodel.compile()\n' in after


def test_what_is_handed_over_and_no_class_of_a_module_is_none() -> None:
    given = FLOWS.replace("type=flows.Chain", "type=flows.Layer").replace("(flow, ", "(model, ")
    with pytest.raises(Refused, match="not found"):
        aim(given).fixes[0]()


CLOSED = """\
import torch
from torch import nn

class Tagger(nn.Module):
    def forward(self, words):
        return self.out(words)  #> cost step_ms=9 cpu_ms=9 launches=300

def built(width):
    tagger = Tagger(width)
    #^ site module type=__main__.Tagger count={count}
    return tagger

def updates(net, optimizer):
    def update(words):
        loss = net(words).sum()  #> cost step_ms=1 cpu_ms=1 calls=1
        loss.backward()
        optimizer.step()
    return update

def run(width):
    tagger = built(width)
    fit(updates(tagger, torch.optim.Adam(tagger.parameters())))
"""


def closed(text: str) -> Target:
    """The target of the training step, where the record says who calls whom."""
    example = read_example(text)
    said = example.text.splitlines()
    lines = tuple(
        replace(cost, function="updates.<locals>.update", called=((FILE, "Tagger.forward"),))
        if "net(words)" in said[cost.line - 1]
        else replace(cost, function="Tagger.forward")
        for cost in example.profile.lines
    )
    context = Context(replace(example.profile, lines=lines), texts(example))
    return target(context, training_steps(context))


def test_a_model_that_a_closure_calls_is_compiled_where_it_gets_its_name() -> None:
    text = CLOSED.format(count=1)
    found = closed(text)
    afters = [apply(read_example(text).text, fix().edits) for fix in found.fixes]
    assert found.place == (FILE, 9)
    assert "    tagger = Tagger(width)\n    tagger.compile()\n    return tagger\n" in afters[0]
    assert '    tagger.compile(mode="reduce-overhead")\n    return tagger\n' in afters[1]
    assert (FILE, 6) in found.inside


@pytest.mark.parametrize(
    "text",
    [
        CLOSED.format(count=2),
        CLOSED.format(count=1).replace("    tagger = Tagger(width)\n", "    return Tagger(width)\n"),
    ],
)
def test_one_of_several_or_without_a_name_is_not(text: str) -> None:
    for fix in closed(text).fixes:
        with pytest.raises(Refused):
            fix()


THROUGH = """\
import torch
from torch import nn

class Flow(nn.Module):
    def forward(self, x):
        return self.out(x)  #> cost step_ms=9 cpu_ms=9 launches=300
    def log_probs(self, x):
        return {call}.sum(-1)  #> cost step_ms=1 cpu_ms=1 calls=1

flow = Flow()  #> site module type=__main__.Flow
flow.to(device)
for x in batches:
    loss = -flow.log_probs(x).mean()  #> cost step_ms=1 cpu_ms=1 calls=1
    loss.backward()
"""


def through(text: str) -> tuple[str, Target]:
    """The same for a model that is called by a method of its own."""
    example = read_example(text)
    called = {
        6: ("Flow.forward", ()),
        8: ("Flow.log_probs", ("Flow.forward",)),
        13: ("", ("Flow.log_probs",)),
    }
    lines = tuple(
        replace(
            cost, function=called[cost.line][0], called=tuple((FILE, one) for one in called[cost.line][1])
        )
        for cost in example.profile.lines
    )
    context = Context(replace(example.profile, lines=lines), texts(example))
    return example.text, target(context, training_steps(context))


def test_a_model_that_is_called_by_a_method_of_its_own_which_calls_it() -> None:
    text, found = through(THROUGH.format(call="self(x)"))
    assert "flow.to(device)\nflow.compile()\n" in apply(text, found.fixes[0]().edits)
    assert (found.promised, found.calls, found.place) == (True, 1.0, (FILE, 11))
    assert found.inside == {(FILE, 6), (FILE, 8)}


def test_compiling_it_changes_nothing_where_the_method_goes_around_its_call() -> None:
    _, found = through(THROUGH.format(call="self.forward(x)"))
    assert not found.promised
    with pytest.raises(Refused):
        found.fixes[0]()
