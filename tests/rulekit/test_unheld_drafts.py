"""Which call is the teacher's, where teacher and pupil run the same lines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.rulekit import Context
from warpline.rulekit.graph.unheld import Unheld
from warpline.rulekit.unheld_drafts import for_nobody, unheld_at
from warpline.rules.wasted_gradient import WastedGradient
from warpline.text.edits import apply
from warpline.wire.dataflow import Dataflow
from warpline.wire.facts import Flags

SCRIPT = """\
class Net:
    def forward(self, x):
        return self.layer(x)  #> cost step_ms=9

def loss(x, guide):
    mine = pupil(x)  #> cost step_ms=1
    return distance(mine, guide)

def guiding(x):
    guide = expert(x)  #> cost step_ms=1
    return guide
"""
FORWARD = (FILE, "Net.forward")


def teacher(functions: dict[int, str]) -> int | None:
    """The line of the call; ``functions``: those of the two that call."""
    example = read_example(SCRIPT)
    lines = tuple(
        replace(cost, function="Net.forward")
        if cost.line == 3
        else replace(cost, function=functions[cost.line], called=(FORWARD,))
        for cost in example.profile.lines
    )
    context = Context(replace(example.profile, lines=lines), texts(example))
    inner = context.cost(FILE, 3)
    assert inner is not None
    # The operators of what no optimizer has come first.
    found = unheld_at(context, Unheld({(FILE, 3): 0.5}, {FORWARD: [True, False]}), inner)
    return found.line if found is not None else None


def test_lines_of_one_function_run_in_their_order() -> None:
    assert teacher({6: "step", 10: "step"}) == 6


def test_lines_of_two_functions_may_run_in_any() -> None:
    assert teacher({6: "loss", 10: "guiding"}) is None


TOWERS = """\
class Song:
    def forward(self, x):
        return self.layer(x)  #> cost step_ms=9

class Both:
    def forward(self, songs, notes):
        heard = self.song(songs)  #> cost step_ms=1
        written = self.note(notes)  #> cost step_ms=1
        return compared(heard, written)

for songs, notes in loader:
    loss = model(songs, notes)  #> cost step_ms=1
"""
SONG, NOTE, BOTH = (FILE, "Song.forward"), (FILE, "Note.forward"), (FILE, "Both.forward")


@pytest.mark.parametrize(("notes", "line"), [([False], 7), ([True], 12)])
def test_a_forward_pass_that_only_calls_others_is_what_these_are(notes: list[bool], line: int) -> None:
    example = read_example(TOWERS)
    called = {3: ("Song.forward", ()), 7: ("Both.forward", (SONG,)), 8: ("Both.forward", (NOTE,))}
    called[12] = "main", (BOTH,)
    lines = tuple(
        replace(cost, function=called[cost.line][0], called=called[cost.line][1])
        for cost in example.profile.lines
    )
    # The lines of the other part.
    lines = (*lines, replace(lines[0], line=99, function="Note.forward"))
    context = Context(replace(example.profile, lines=lines), texts(example))
    inner = context.cost(FILE, 3)
    assert inner is not None
    found = unheld_at(context, Unheld({(FILE, 3): 1.0}, {SONG: [True], NOTE: notes}), inner)
    assert found is not None
    assert found.line == line


@pytest.mark.parametrize("backward_ms", [0.0, 4.0])
def test_the_backward_pass_comes_to_the_teacher_or_does_not(
    backward_ms: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its results may be detached; which half of the operators is its own tells nothing of that."""
    example = read_example(SCRIPT)
    function = {3: "Net.forward", 6: "loss", 10: "guiding"}
    lines = tuple(
        replace(cost, function=function[cost.line], backward_ms=8.0 if cost.line == 3 else 0.0)
        if cost.line != 10
        else replace(cost, function="guiding", called=(FORWARD,), total_backward_ms=backward_ms)
        for cost in example.profile.lines
    )
    facts = replace(example.profile.facts, dataflow=Dataflow(unheld=(1,), shapes=((4, 4),), shape=(0, 0)))
    unheld = Unheld({(FILE, 3): 0.5}, {FORWARD: [True, False]}, frozenset({(FILE, 10)}))
    monkeypatch.setattr("warpline.rulekit.unheld_drafts.of_unheld", lambda graph: unheld)
    monkeypatch.setattr("warpline.rulekit.unheld_drafts.unheld_at", lambda *given: None)
    found = list(for_nobody(Context(replace(example.profile, facts=facts, lines=lines), texts(example))))
    assert [one.line for one in found] == [10] * (backward_ms > 0)


ADAPTED = """\
model = Decoder()  #> site module type=__main__.Decoder
optimizer = torch.optim.AdamW(adapters(model))  #> site optimizer type=AdamW shapes=[[1,16,64]]
for x in loader:
    loss = model(x).mean()
    #^ cost step_ms=20 device_ms=20 backward_ms=15
    #^ op aten::mm phase=backward shapes=[[512,64],[64,256]] device_ms=4
    #^ op aten::mm phase=backward shapes=[[64,512],[512,256]] device_ms=5
    #^ op aten::mm phase=backward shapes=[[16,512],[512,64]] device_ms=1
    #^ op aten::add_ phase=backward shapes=[[64,256],[64,256],[]] device_ms=1
    #^ op aten::convolution_backward phase=backward shapes=[[2,8,9,9],[2,4,9,9],[8,4,3,3]] device_ms=6
    loss.backward()
    optimizer.step()  #> use optimizer; cost step_ms=1 device_ms=1
"""


def adapted(*shapes: tuple[int, ...], rows: int = 512) -> list[tuple[int, float]]:
    """Line and cost of what is found; ``shapes``: of the weights that no optimizer has."""
    example = read_example(ADAPTED.replace("512", str(rows)))
    numbers = tuple(range(len(shapes)))
    flow = Dataflow(missing="", shapes=shapes, shape=numbers, unheld=numbers)
    facts = replace(example.profile.facts, dataflow=flow, flags=Flags(grad_enabled_in_step=True))
    context = Context(replace(example.profile, facts=facts), texts(example))
    return [(draft.line, draft.saving_ms) for draft in WastedGradient().find(context)]


BANK = """\
optimizer = torch.optim.AdamW(net.parameters())  #> site optimizer type=AdamW shapes=[[1,64,64]]
#> tensor %20 shape=[64,64] parameter=true unheld=true; tensor %21 shape=[64,64] parameter=true
for x in loader:
    made = net(x)
    #^ cost step_ms=9 device_ms=9 backward_ms=6; node aten.mm.default args=[%22,%21] shape=[32,64]
    #^ op aten::mm phase=backward shapes=[[64,32],[32,64]] device_ms=6
    loss = bank(made).mean()
    #^ cost step_ms=9 device_ms=9 backward_ms=6; node aten.mm.default args=[%0,%20] shape=[32,64]
    #^ op aten::mm phase=backward shapes=[[64,32],[32,64]] device_ms=3
    #^ op aten::mm phase=backward shapes=[[32,64],[64,64]] device_ms=3
    loss.backward()  #> pass roots=[%1] read=[%21] cleared=[%20]
"""


def test_weights_of_a_shape_that_is_trained_elsewhere() -> None:
    example = read_example(BANK)
    facts = replace(example.profile.facts, flags=Flags(grad_enabled_in_step=True))
    found = WastedGradient().find(Context(replace(example.profile, facts=facts), texts(example)))
    assert [(draft.cause.line, draft.saving_ms) for draft in found] == [(4, 3.0)]


JUDGED = """\
#> flags grad_enabled_in_step=true
#> tensor %20 shape=[64,64] parameter=true unheld=true; tensor %21 shape=[64,64] parameter=true
judge = Judge().eval()  #> site untrained type=Judge weights=1 evaluated=true
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)  #> site optimizer shapes=[[1,64,10]]
for x in loader:
    made = net(x)
    #^ cost step_ms=6 device_ms=6 backward_ms=4; node aten.mm.default args=[%22,%21] shape=[64,64]
    loss = judge(made).mean()
    #^ cost step_ms=20 device_ms=20 backward_ms=12
    #^ op aten::mm phase=backward shapes=[[64,512],[512,64]] device_ms=6
    #^ {weight} shape=[64,64]
    #^ node aten.mm.default args=[%0,%1] shape=[64,64]
    loss.backward()
"""


def judged(weight: str) -> list[tuple[int, float]]:
    """Line of the finding and what it saves; ``weight``: what is done to the judge's weight alone."""
    example = read_example(JUDGED.format(weight=weight))
    return [
        (one.line, one.saving_ms) for one in WastedGradient().find(Context(example.profile, texts(example)))
    ]


def test_a_layer_takes_a_view_of_its_weight_first() -> None:
    assert judged("node aten.t.default args=[%20]") == [(1, 6.0)]


def test_a_line_that_computes_of_such_weights_alone_and_of_others() -> None:
    # Half of the numbers are the weight's own: that half of the pass goes, and of the rest its gradient.
    ((line, saved),) = judged("node aten.mul.Tensor args=[%20,%20]")
    share = 3 / 6
    assert (line, saved) == (1, pytest.approx(12 * share + 6 * (1 - share)))


def untrained(line: str, site: str, below: str = "") -> tuple[int, str]:
    """Line of the finding and that line with its edit, where the first one is ``line`` with that site."""
    text = ADAPTED.replace("model = Decoder()  #> site module type=__main__.Decoder", f"{line}  {site}")
    example = read_example(text + below)
    flow = Dataflow(missing="", shapes=((64, 256),), shape=(0,), unheld=(0,))
    facts = replace(example.profile.facts, dataflow=flow, flags=Flags(grad_enabled_in_step=True))
    (draft,) = WastedGradient().find(Context(replace(example.profile, facts=facts), texts(example)))
    edited = apply(example.text, draft.fixes[0].edits) if draft.fixes else example.text
    return draft.line, edited.split("\n")[0]


def test_gradients_are_not_asked_for_where_the_module_is_set_to_evaluate() -> None:
    line = "body = build().to(device).eval()"
    site = "#> site untrained type=Sequential weights=2 evaluated=true"
    assert untrained(line, site) == (1, f"{line}.requires_grad_(False)")


def test_or_where_it_is_made() -> None:
    site = "#> site untrained type=Bank weights=2 evaluated=false"
    assert untrained("bank = Bank(3).cuda()", site) == (1, "bank = Bank(3).requires_grad_(False).cuda()")
    assert untrained("bank = build(3)", site) == (1, "bank = build(3)")  # what it returns is not told


def test_a_method_of_the_class_s_own_is_not_called() -> None:
    site = "#> site untrained type=Bank weights=2 evaluated=false"
    own = "from torch import nn\nclass {}(nn.Module):\n    def requires_grad_(self, layers):\n        pass\n"
    line = "bank = Bank(3).cuda()"
    after = "bank = nn.Module.requires_grad_(Bank(3), False).cuda()"
    assert untrained(line, site, own.format("Bank")) == (1, after)
    assert untrained(line, site, own.format("Other")) == (1, "bank = Bank(3).requires_grad_(False).cuda()")


def test_an_edit_freezes_all_that_is_not_trained_or_there_is_none() -> None:
    site = "site untrained type={} weights=2 evaluated=false"
    both = f"#> {site.format('Bank')}; {site.format('Filters')}"
    line, text = "bank, filters = Bank(3), Filters()", "bank, filters = Bank(3).requires_grad_(False), "
    assert untrained(line, both) == (1, f"{text}Filters().requires_grad_(False)")
    assert untrained(line, both + " shared=true") == (1, line)  # the same place makes one that is trained


def test_products_that_make_gradients_of_frozen_weights() -> None:
    assert adapted((64, 256)) == [(1, 6.0)]


def test_half_of_a_convolution_s_backward_pass_makes_the_gradient_of_its_filters() -> None:
    assert adapted((8, 4, 3, 3)) == [(1, 3.0)]
    assert adapted((8, 4, 1, 1)) == []


def test_weights_of_the_shape_of_trained_ones_are_not_told_apart() -> None:
    assert adapted((16, 64)) == []


def test_half_of_the_products_is_for_the_input_if_there_are_as_many_rows() -> None:
    assert adapted((64, 256), rows=64) == [(1, (4 + 5) / 2 + 1)]


NEW_LAYER = """\
#> flags grad_enabled_in_step=true
class Block:
    def {name}(self, x):
        out = nn.Linear(1024, 1024)(x)
        #^ cost step_ms=20 device_ms=20 forward_ms=20
        #^ op aten::uniform_ device_ms=12 count=1; op aten::addmm device_ms=8 count=1
        #^ node aten.empty.memory_format args=[[1024,1024]] shape=[1024,1024] function=Block.{name}
        #^ node aten.uniform_.default args=[%0,-0.03,0.03] shape=[1024,1024] function=Block.{name}
        #^ node aten.mm.default args=[%9,%1] shape=[32,1024] function=Block.{name}
        return out.relu()  #> cost step_ms=30 device_ms=30
"""


def new_layers(name: str, unheld: tuple[int, ...]) -> list[tuple[int, str]]:
    example = read_example(NEW_LAYER.format(name=name))
    facts = example.profile.facts
    flow = replace(facts.dataflow, parameters=unheld, unheld=unheld)
    profile = replace(example.profile, facts=replace(facts, dataflow=flow))
    drafts = WastedGradient().find(Context(profile, texts(example)))
    return [(draft.line, draft.message) for draft in drafts]


def test_a_layer_that_a_forward_pass_makes_is_told_where_it_is_made() -> None:
    ((line, message),) = new_layers("forward", (1,))
    assert line == 3 and "`__init__`" in message


def test_parameters_from_before_and_of_an_attack_are_another_matter() -> None:
    assert not any("made again" in message for _, message in new_layers("forward", (1, 9)))
    assert not any("made again" in message for _, message in new_layers("attack", (1,)))


MADE = """\
import torch
#> flags grad_enabled_in_step=true
#> tensor %20 shape=[64,64] parameter=true unheld=true; tensor %21 shape=[64,10] parameter=true
#> tensor %24 shape=[64,64] parameter=true
{made}  #> site untrained type=Body weights=1 {facts}
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)  #> site optimizer
for x in loader:
    features = {call}
    #^ cost step_ms=20 device_ms=20 backward_ms=12; node aten.mm.default args=[%22,%20] shape=[32,64]
    loss = head(features).mean()
    #^ cost step_ms=6 device_ms=6 backward_ms=4; node aten.mm.default args=[%0,%21] shape=[32,10]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
{more}
"""


def made(line: str, facts: str = "", call: str = "body(x)", more: str = "") -> list[str]:
    """The line of the finding, and its edits' first lines."""
    example = read_example(MADE.format(made=line, facts=facts, call=call, more=more))
    found = list(WastedGradient().find(Context(example.profile, texts(example))))
    if not found:
        return []
    (draft,) = found
    old = example.text.split("\n")
    edited = [apply(example.text, fix.edits).split("\n") for fix in draft.fixes]
    first = [next(b.strip() for a, b in zip(old, new, strict=False) if a != b) for new in edited]
    return [old[draft.line - 1].strip(), *first]


def held(name: str) -> str:
    """The fact that this name alone holds the module."""
    return f"""held='["{name}"]'"""


NO_GRAD = "with torch.no_grad():"


def test_what_is_not_trained_is_frozen_where_it_is_made() -> None:
    assert made("body = Body().cuda()") == [
        "body = Body().cuda()",
        "body = Body().requires_grad_(False).cuda()",
        NO_GRAD,
    ]
    copied = "body = copy.deepcopy(other)"
    assert made(copied, held("body")) == [copied, f"{copied}.requires_grad_(False)", NO_GRAD]
    part = "class Net:\n    def __init__(self):\n        self.body = build(3)"
    frozen = ["self.body = build(3)", "self.body = build(3).requires_grad_(False)", NO_GRAD]
    assert made(part, held("Net.body")) == frozen


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        ("body, other = Body(), Body()", ""),
        ("body = Body()", "shared=true"),
        ("body = build(3)", held("other")),
        ("body = wrapped(build(3))", held("Wrapped.body")),
        ("body, other = build(3)", held("body")),
        ("Body().requires_grad_(wanted)", ""),
    ],
)
def test_where_that_does_not_tell_it_is_the_call(line: str, facts: str) -> None:
    assert made(line, facts) == ["features = body(x)", NO_GRAD]


def test_parameters_that_no_whole_module_has_are_left_to_the_call() -> None:
    assert made("body = Body()").pop(0) == "body = Body()"
    assert made("body = Body()", "weights=0") == ["features = body(x)", NO_GRAD]


def test_a_statement_that_calls_elements_has_no_edit_of_its_own() -> None:
    assert made("other = 3", call='nets["pupil"](nets["body"](x))') == [
        'features = nets["pupil"](nets["body"](x))'
    ]


@pytest.mark.parametrize(
    "more",
    [
        "def fit(net):\n    return torch.optim.SGD(net.parameters(), lr=0.1)\nfit(body)  #> skipped",
        "class Fit:\n    def __init__(self, net):\n        self.own = torch.optim.SGD(net.parameters())\n"
        "def fit(net):\n    return Fit(net)\nfit(body)  #> skipped",
    ],
)
def test_a_function_that_trains_it_later(more: str) -> None:
    assert made("body = Body()", more=more) == []
    assert made("body = Body()", more=more.replace("  #> skipped", ""))


def test_a_loop_that_asks_for_its_gradients_again() -> None:
    loop = "for p in {}.parameters():\n    p.requires_grad = wanted"
    frozen = ["body = Body()", "body = Body().requires_grad_(False)", NO_GRAD]
    assert made("body = Body()", held("Net.body"), more=loop.format("net.head")) == frozen
    by_call = ["features = body(x)", NO_GRAD]
    assert made("body = Body()", held("Net.body"), more=loop.format("net.body")) == by_call


ATTACKED = """\
#> flags grad_enabled_in_step=true
#> tensor %20 shape=[64,512] parameter=true unheld=true; tensor %8 shape=[32,64] leaf=true
judge = Judge().eval()  #> site untrained type=Judge weights=1 evaluated=true
for noise in noises:
    judge(noise.requires_grad_()).mean().backward()
    #^ cost step_ms=20 device_ms=20 backward_ms=12; node aten.mm.default args=[%8,%20] shape=[32,512]
    #^ op aten::mm phase=backward shapes=[[64,32],[32,512]] device_ms=6
    if last:
        report({read})  #> skipped
"""


@pytest.mark.parametrize(("read", "lines"), [("noise.grad", []), ("noise", [1])])
def test_without_an_optimizer_gradients_may_be_read_later(read: str, lines: list[int]) -> None:
    example = read_example(ATTACKED.format(read=read))
    found = WastedGradient().find(Context(example.profile, texts(example)))
    assert [draft.line for draft in found] == lines
