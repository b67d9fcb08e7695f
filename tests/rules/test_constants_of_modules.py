"""constant-rebuilt in a module that is called for a constant: one of its own, or of what it is given."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.rulekit import Context
from warpline.rules.constant_rebuilt import ConstantRebuilt
from warpline.text.edits import apply
from warpline.wire.dataflow import Frame

SCRIPT = """\
import torch

class Walks(torch.nn.Module):
    def forward(self, weights):
        walk = {read}.softmax(1)
        #^ cost step_ms=1 device_ms=1 forward_ms=1; tensor %9 shape=[8192,8192] {kind}
        #^ node aten._softmax.default function=Walks.forward args=[%9,1,False] shape=[8192,8192]
        return walk @ walk
        #^ cost step_ms=4 device_ms=4 forward_ms=4
        #^ node aten.mm.default function=Walks.forward args=[%0,%0] shape=[8192,8192]

for x in batches:
    walks = supports({given})  #> cost step_ms=0.1
    hops = walks @ x
    #^ cost step_ms=9 device_ms=9 forward_ms=9; node aten.mm.default args=[%1,%8] shape=[8192,512]
    train(hops)  #> cost device_ms=30
"""


@pytest.mark.parametrize(
    ("read", "given", "kind", "line"),
    [
        ("self.weights", "", "buffer=true", "return walk @ walk"),
        ("weights", "weights", "", "walks = supports(weights)"),
        ("self.weights", "", "parameter=true", "walks = supports()"),
    ],
)
def test_what_a_module_computes_of_its_buffers_is_kept_there(
    read: str, given: str, kind: str, line: str
) -> None:
    example = read_example(SCRIPT.format(read=read, given=given, kind=kind))
    called = ((FILE, "Walks.forward"),)
    lines = [
        replace(cost, called=called if "supports" in example.text.splitlines()[cost.line - 1] else ())
        for cost in example.profile.lines
    ]
    facts = example.profile.facts
    facts = replace(facts, dataflow=replace(facts.dataflow, again=(0, 1)))
    profile = replace(example.profile, lines=tuple(lines), facts=facts)
    (draft,) = ConstantRebuilt().find(Context(profile, texts(example)))
    assert example.text.splitlines()[draft.line - 1].strip() == line


PROPERTY = """\
import torch

class Walks(torch.nn.Module):
    @property
    def walk(self):
        return self.weights.softmax(1)
        #^ cost step_ms=4 device_ms=4 forward_ms=4; tensor %9 shape=[8192,8192] buffer=true
        #^ node aten._softmax.default function=Walks.walk args=[%9,1,False] shape=[8192,8192]

    def forward(self, x):
        return self.walk @ x
        #^ cost step_ms=9 device_ms=9 forward_ms=9
        #^ node aten.mm.default function=Walks.forward args=[%0,%8] shape=[8192,512]
"""


def test_what_a_property_computes_is_told_in_the_property() -> None:
    example = read_example(PROPERTY)
    lines = [
        replace(cost, function="Walks.forward", called=((FILE, "Walks.walk"),))
        if "self.walk" in example.text.splitlines()[cost.line - 1]
        else replace(cost, function="Walks.walk")
        for cost in example.profile.lines
    ]
    (draft,) = ConstantRebuilt().find(Context(replace(example.profile, lines=tuple(lines)), texts(example)))
    assert "softmax" in example.text.splitlines()[draft.line - 1]


INIT = """\
    def __init__(self, weights):
        super().__init__()
        self.register_buffer("weights", weights)

    @property
"""


@pytest.mark.parametrize(
    ("more", "offered"),
    [
        ("", True),
        ("walks.weights = other", False),
        ("walks.load_state_dict(kept)", False),
        ("with torch.inference_mode():\n    walks(x)", False),
    ],
)
def test_a_property_of_buffers_is_computed_once(more: str, offered: bool) -> None:
    example = read_example(PROPERTY.replace("    @property\n", INIT) + more)
    lines = [
        replace(cost, function=f"Walks.{'walk' if 'soft' in written else 'forward'}")
        for cost in example.profile.lines
        for written in [example.text.splitlines()[cost.line - 1]]
    ]
    (draft,) = ConstantRebuilt().find(Context(replace(example.profile, lines=tuple(lines)), texts(example)))
    assert bool(draft.fixes) is offered
    if offered:
        after = apply(example.text, draft.fixes[0].edits)
        assert "    @cached_property\n    def walk(self):\n" in after


LOOPED = """\
import torch

def bank():
    rows = []
    for m in range(40):  #> cost calls={calls}
        rows.append(edges[m : m + 1].exp())
        #^ cost step_ms=4 device_ms=4 forward_ms=4; tensor %9 shape=[40,8192]
        #^ node aten.exp.default function=bank args=[%9] shape=[40,8192]
    return torch.cat(rows)

for x in batches:
    power = bank() @ x
    #^ cost step_ms=9 device_ms=9 forward_ms=9; node aten.mm.default args=[%0,%8] shape=[40,512]
"""


@pytest.mark.parametrize(
    ("calls", "again", "found"),
    [(41, (0,), True), (1, (0,), False), (41, (), False)],  # it is the loop of the steps; another value
)
def test_a_loop_that_begins_anew_in_each_step(calls: int, again: tuple[int, ...], found: bool) -> None:
    example = read_example(LOOPED.format(calls=calls))
    facts = example.profile.facts
    facts = replace(facts, dataflow=replace(facts.dataflow, again=again))
    drafts = ConstantRebuilt().find(Context(replace(example.profile, facts=facts), texts(example)))
    assert bool(list(drafts)) is found


OF_BUFFERS = """\
import torch

def walks(weights, reach):
    {work}
    #^ cost step_ms=4 device_ms=4 forward_ms=4; tensor %9 shape=[8192,8192] buffer=true
    #^ node aten.div.Tensor function=walks args=[%9,0.5] shape=[8192,8192]
    #^ node {node} function=walks args=[%0,%0] shape=[8192,8192]

class Spread(torch.nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.register_buffer("weights", weights)
        self.reach = 0.5

    def forward(self, x):
        hops = walks({given})
        #^ cost step_ms=0.1
        {more}
        return hops @ x
        #^ cost step_ms=9 device_ms=9 forward_ms=9
        #^ node aten.mm.default function=Spread.forward args=[%1,%8] shape=[8192,512]

spread = Spread(w)
{later}
"""


def offered(autocast: bool = False, **parts: str) -> int:
    parts = {
        "work": "return (weights / reach).softmax(1)",
        "node": "aten._softmax.default",
        "given": "self.weights, self.reach",
        "more": "pass",
        "later": "",
    } | parts
    example = read_example(OF_BUFFERS.format(**parts))
    flags = replace(example.profile.facts.flags, autocast=autocast)
    profile = replace(example.profile, facts=replace(example.profile.facts, flags=flags))
    (draft,) = ConstantRebuilt().find(Context(profile, texts(example)))
    return len(draft.fixes)


def test_what_a_function_computes_of_buffers_becomes_a_buffer() -> None:
    assert offered() == 1
    assert offered(autocast=True) == 1


@pytest.mark.parametrize(
    "parts",
    [
        {"later": "spread.weights = other"},
        {"later": "spread.weights.copy_(other)"},
        {"later": "spread.weights[0] = 1.0"},
        {"later": "torch.nn.init.normal_(spread.weights)"},
        {"later": 'spread.register_buffer("weights", other)'},
        {"later": "for one in spread.buffers():\n    one.zero_()"},
        {"later": "spread.reach, more = 0.7, 1"},
        {"later": 'spread.load_state_dict(torch.load("kept.pt"))'},
        {"given": "self.weights, x.shape[0]"},
        {"given": "self.weights, reach", "later": "reach = 0.5\nreach = 0.7"},
        {"given": "self.weights, other.reach"},
        {"given": "*self.weights"},
    ],
)
def test_what_may_change_is_computed_again(parts: dict[str, str]) -> None:
    assert offered(**parts) == 0


REGISTERED = """
class Field({base}):
    def __init__(self, weights):
        super().__init__()
        self.register_buffer("weights", weights)
"""


@pytest.mark.parametrize(("base", "edits"), [("torch.nn.Module", 1), ("Spread", 0)])
def test_a_buffer_of_the_same_name_is_another_modules(base: str, edits: int) -> None:
    assert offered(later=REGISTERED.format(base=base)) == edits


def test_products_under_autocast_have_another_type_there() -> None:
    parts = {"work": "return weights / reach @ weights", "node": "aten.mm.default"}
    assert offered(**parts) == 1
    assert offered(autocast=True, **parts) == 0


BY_METHOD = """\
import torch

class Other(torch.nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.weights = weights

class Spread({base}):
    def __init__(self, weights):
        {head}
        {weights} = weights
        self.reach = 0.5

    def walks(self):
        far = self.weights / self.{read}
        #^ cost step_ms=4 device_ms=4 forward_ms=4; tensor %9 shape=[8192,8192] {kind}
        #^ node aten.div.Tensor function=Spread.walks args=[%9,0.5] shape=[8192,8192]
        {work}
        #^ cost step_ms=4 device_ms=4 forward_ms=4
        #^ node aten._softmax.default function=Spread.walks{inner} args=[%0,1,False] shape=[8192,8192]

    def forward(self, x):
        hops = self.walks()
        #^ cost step_ms=0.1
        return hops @ x
        #^ cost step_ms=9 device_ms=9 forward_ms=9
        #^ node aten.mm.default function=Spread.forward args=[%1,%8] shape=[8192,512]

spread = Spread(w)
{later}
"""
MODULE = {
    "base": "torch.nn.Module",
    "head": 'super().__init__()\n        self.register_buffer("weights", weights)',
    "weights": "self.first",
    "read": "reach",
    "kind": "buffer=true",
    "work": "return far.softmax(1)",
    "later": "",
    "inner": "",
}
PLAIN = MODULE | {"base": "", "head": "pass", "weights": "self.weights"}


def kept(parts: dict[str, str], again: tuple[int, ...] = ()) -> str | None:
    """The script with the edit; None where none is offered."""
    example = read_example(BY_METHOD.format(**parts).replace("Spread()", "Spread"))
    rows = example.text.splitlines()
    lines = [
        replace(
            cost,
            function="Spread.forward" if "hops" in rows[cost.line - 1] else "Spread.walks",
            called=((FILE, "Spread.walks"),) if "self.walks()" in rows[cost.line - 1] else (),
        )
        for cost in example.profile.lines
    ]
    facts = example.profile.facts
    facts = replace(facts, dataflow=replace(facts.dataflow, again=again))
    profile = replace(example.profile, lines=tuple(lines), facts=facts)
    (draft,) = ConstantRebuilt().find(Context(profile, texts(example)))
    assert rows[draft.line - 1].strip() == "hops = self.walks()"
    return apply(example.text, draft.fixes[0].edits) if draft.fixes else None


def test_what_a_method_computes_of_its_object_is_kept_there() -> None:
    after = kept(MODULE) or ""
    assert '        self.register_buffer("hops", self.walks(), persistent=False)\n' in after
    assert "        hops = self.hops\n" in after
    after = kept(PLAIN | {"kind": ""}, again=(0, 1)) or ""
    assert "        self.hops = self.walks()\n" in after
    assert "        hops = self.hops\n" in after
    # In a comprehension, which has a function of its own before Python 3.12.
    work = {"work": "return torch.stack([far.softmax(1)])", "inner": ".<locals>.<listcomp>"}
    after = kept(MODULE | work, again=(0, 1)) or ""
    assert "        hops = self.hops\n" in after
    # Where the object has something else of that name.
    after = kept(MODULE | {"later": "print(spread.hops)"}) or ""
    assert '        self.register_buffer("kept_walks", self.walks(), persistent=False)\n' in after
    assert "        hops = self.kept_walks\n" in after


@pytest.mark.parametrize(
    "parts",
    [
        {"later": "spread.reach = 0.7"},
        {"later": 'spread.load_state_dict(torch.load("kept.pt"))'},
        {"read": "far"},  # not known from `__init__`
        {"work": "return far.softmax(1), far"},  # no one tensor
        {"work": "self.last = far\n        return far.softmax(1)"},
        {"work": "self.told += 1\n        return far.softmax(1)"},
        {"work": "return walks_of(self, far)"},
        {"base": "Base", "head": "super().__init__()", "weights": "self.weights"},
        {"later": "class Far(Spread):\n    def walks(self):\n        return self.weights"},
        {"later": "class Far(Spread):\n    def more(self):\n        self.reach = 0.7"},
        {"later": "class Far:\n    def more(self, spread):\n        spread.reach += 0.7"},
    ],
)
def test_a_method_whose_result_may_change_is_called_again(parts: dict[str, str]) -> None:
    assert kept(MODULE | parts, again=(0, 1)) is None


def test_what_a_method_computes_of_weights_is_computed_again() -> None:
    assert kept(MODULE | {"kind": "parameter=true"}, again=(0, 1)) is None


OF_NUMBERS = """\
import torch

REACH = 40

def bank(reach):
    at = torch.arange(8192.0)
    #^ cost step_ms=1 device_ms=1 forward_ms=1
    #^ node aten.arange.default function=bank args=[8192] shape=[8192]
    {back}
    #^ cost step_ms=4 device_ms=4 forward_ms=4
    #^ node aten.outer.default function=bank args=[{inputs}] shape=[8192,8192]
    #^ node {last} function=bank args=[%1] shape=[]

class Mel({base}):
    def __init__(self):
        {head}

    def forward(self, x):
        return bank({given}) @ x
        #^ cost step_ms=9 device_ms=9 forward_ms=9
        #^ node aten.mm.default function=Mel.forward args=[%1,%8] shape=[8192,512]
"""


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ({}, True),
        ({"given": "REACH // 2"}, True),
        ({"given": "x.shape[0]"}, False),
        ({"base": "Base"}, False),
        ({"back": "return torch.outer(at, at), at"}, False),
        ({"inputs": "%0,%7"}, False),  # of another tensor, too
        ({"last": "aten.bernoulli.default"}, False),
    ],
)
def test_what_a_function_computes_of_numbers_becomes_a_buffer(parts: dict[str, str], found: bool) -> None:
    known = {"back": "return torch.outer(at, at)", "inputs": "%0,%0", "head": "super().__init__()"}
    known["last"] = "aten.amax.default"  # one number of it
    given = known | {"base": "torch.nn.Module", "given": "REACH"} | parts
    example = read_example(OF_NUMBERS.format(**given))
    lines = [
        replace(cost, called=((FILE, "bank"),)) if cost.function == "<module>" and "@ x" in row else cost
        for cost in example.profile.lines
        for row in [example.text.splitlines()[cost.line - 1]]
    ]
    lines = [replace(cost, function="Mel.forward" if cost.called else "bank") for cost in lines]
    facts = example.profile.facts
    facts = replace(facts, dataflow=replace(facts.dataflow, again=(0, 1)))
    profile = replace(example.profile, lines=tuple(lines), facts=facts)
    (draft,) = ConstantRebuilt().find(Context(profile, texts(example)))
    assert bool(draft.fixes) is found
    if found:
        after = apply(example.text, draft.fixes[0].edits)
        kept = f'self.register_buffer("kept_bank", bank({given["given"]}), persistent=False)'
        assert f"        super().__init__()\n        {kept}\n" in after
        assert "return self.kept_bank @ x" in after


FIELD = """\
import torch

class Waves(torch.nn.Module):
    def forward(self, places):
        return torch.cat([places.sin(), places.cos()], -1)
        #^ cost step_ms=4 device_ms=4 forward_ms=4 function=Waves.forward
        #^ node aten.sin.default function=Waves.forward args=[%9] shape=[8192,64]
        #^ node aten.cos.default function=Waves.forward args=[%9] shape=[8192,64]
        #^ node aten.cat.default function=Waves.forward args=[[%0,%1],-1] shape=[8192,128]

class Body(torch.nn.Module):
    def forward(self, features):
        return self.last(features)
        #^ cost step_ms=9 device_ms=9 forward_ms=9 function=Body.forward
        #^ node aten.mm.default function=Body.forward args=[%2,%8] shape=[8192,3]

class Field(torch.nn.Module):
    def forward(self, places):
        features = self.waves(places)
        #^ cost calls=1 function=Field.forward called='[["/example/train.py","Waves.forward"]]'
        return {rest}
        #^ cost calls=1 function=Field.forward{called}

for step in range(1000):
    train(field(places))
    #^ cost calls=1 called='[["/example/train.py","Field.forward"]]'
"""


@pytest.mark.parametrize(
    ("rest", "called", "line"),
    [
        (
            "self.body(features)",
            """ called='[["/example/train.py","Body.forward"]]'""",
            "features = self.waves(places)",
        ),
        ("features", "", "train(field(places))"),
    ],
)
def test_a_module_whose_other_layers_compute_is_where_the_call_is_told(
    rest: str, called: str, line: str
) -> None:
    example = read_example(FIELD.format(rest=rest, called=called))
    facts = example.profile.facts
    facts = replace(facts, dataflow=replace(facts.dataflow, again=(0, 1, 2)))
    (draft,) = ConstantRebuilt().find(Context(replace(example.profile, facts=facts), texts(example)))
    assert example.text.splitlines()[draft.line - 1].strip() == line


SHARED = """\
import torch

def near(size):
    square = torch.ones(size, size).tril()
    #^ cost step_ms=8 device_ms=8 forward_ms=8 function=near
    #^ node aten.ones.default function=near args=[[8192,8192]] shape=[8192,8192]
    #^ node aten.tril.default function=near args=[%0] shape=[8192,8192]
    return rows(square)  #> cost step_ms=0.1 function=near called='[["/example/train.py","rows"]]'

def rows(x):
    return x.unfold(0, 8, 8).contiguous()
    #^ cost step_ms=0.2 device_ms=0.2 forward_ms=0.2 calls=2 function=rows
    #^ node aten.clone.default function=rows args=[%9] shape=[8192,8]
    #^ node aten.clone.default function=rows args=[%1] shape=[8192,8192]

for x in batches:
    pieces = rows(x)  #> cost step_ms=0.1 called='[["/example/train.py","rows"]]'
    hops = near(8192) @ pieces
    #^ cost step_ms=9 device_ms=9 called='[["/example/train.py","near"]]'
    #^ node aten.mm.default args=[%3,%2] shape=[8192,8]
    train(hops)  #> cost device_ms=30
"""


@pytest.mark.parametrize(("seen", "line"), [(True, "hops = "), (False, "square = ")])
def test_a_function_that_shares_a_helper_with_others(seen: bool, line: str) -> None:
    """The record says which calls of the helper are the function's."""
    example = read_example(SHARED)
    flow = example.profile.facts.dataflow
    order = ["<module>", "<module>", "<module>", "near", "<module>"]  # what called what the operators are in
    if seen:
        outer = tuple(Frame(FILE, 1, name) for name in order)
        stacks = [(-1, 5 + at) for at in range(5)] + [(at, at) for at in range(5)]
        flow = replace(flow, frames=flow.frames + outer, stacks=tuple(stacks), stack=tuple(range(5, 10)))
    facts = replace(example.profile.facts, dataflow=flow)
    (draft,) = ConstantRebuilt().find(Context(replace(example.profile, facts=facts), texts(example)))
    assert example.text.splitlines()[draft.line - 1].strip().startswith(line)
