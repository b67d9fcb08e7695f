"""Loops whose rounds are in a function that they call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.annotated import FILE, read_example, texts
from tests.rulekit.graph import recording
from tests.rulekit.graph.recording import recorded
from warpline.model.change import Replace, Scale, Together
from warpline.model.profile import MOST_OPS_A_LINE
from warpline.rulekit import Context
from warpline.rulekit.rounds import rounds
from warpline.rulekit.vectorised import at_once
from warpline.rules.python_loop_over_tensor import PythonLoopOverTensor
from warpline.syntax.edits import Refused
from warpline.wire.dataflow import Dataflow
from warpline.wire.run import DeviceFacts

torch = pytest.importorskip("torch")

SCRIPT = """\
def overlap(box, boxes):
    low = torch.maximum(box, boxes)  #> cost step_ms=9 calls=200; op aten::maximum count=200 cpu_ms=9

def all_overlaps(a, b):
    rows = []
    for i in range(len(a)):
        rows.append(overlap({argument}, b))  #> cost step_ms=2 calls=200; op aten::select count=200 cpu_ms=1
        #^ cost calls=200
    return torch.stack(rows)
"""


def lines(argument: str) -> list[set[int]]:
    """Of each loop, its lines."""
    example = read_example(SCRIPT.format(argument=argument))
    function = (FILE, "overlap")
    costs = tuple(
        replace(cost, function="overlap") if cost.line == 2 else replace(cost, called=(function,))
        for cost in example.profile.lines
    )
    found = rounds(Context(replace(example.profile, lines=costs), texts(example)))
    return [{cost.line for cost in one.costs} for one in found]


def test_what_a_round_hands_to_a_function_is_worked_on_there() -> None:
    assert lines("a[i]") == [{2, 7}]


def test_a_call_that_gets_nothing_of_the_round_is_no_part_of_it() -> None:
    assert lines("a") == []


def test_a_function_that_two_lines_of_a_round_call_counts_once() -> None:
    twice = SCRIPT.replace(
        "    return torch", "        rows.append(overlap(b[i], a))  #> cost calls=200\n    return torch"
    )
    example = read_example(twice.format(argument="a[i]"))
    function = (FILE, "overlap")
    costs = tuple(
        replace(cost, function="overlap") if cost.line == 2 else replace(cost, called=(function,))
        for cost in example.profile.lines
    )
    (one,) = rounds(Context(replace(example.profile, lines=costs), texts(example)))
    assert sorted(cost.line for cost in one.costs) == [2, 7, 8]


GROUPS = """\
for k in range(200):
    whole.append(x[rows == k].mean(0))  #> cost step_ms=2 calls=200 device_ms=1.8 cpu_ms=1.8
    #^ op aten::index count=200 device_ms=0.8; op aten::eq count=200 device_ms=0.6
    #^ op aten::mean count=200 device_ms=0.04; op aten::fill_ phase=backward count=200 device_ms=0.36
"""


@pytest.mark.parametrize(
    ("kind", "small_ns", "gone_ms"),
    [
        ("cpu", 1000.0, 1.16 + 0.2 + 0.04),
        ("cpu", 1e6, 1.8),
        ("cpu", None, 1.16),
        ("cuda", 1000.0, 1.16),
    ],
)
def test_what_each_operator_takes_before_it_computes_goes_with_a_loop_on_a_cpu(
    kind: str, small_ns: float | None, gone_ms: float
) -> None:
    """Runs from before that was measured say only what taking the pieces takes, and their gradients."""
    example = read_example(GROUPS)
    facts = replace(example.profile.facts, small_op_ns=small_ns)
    manifest = replace(example.profile.manifest, device=DeviceFacts(kind=kind))
    (draft,) = PythonLoopOverTensor().find(
        Context(replace(example.profile, facts=facts, manifest=manifest), texts(example))
    )
    assert isinstance(draft.change, Replace)
    assert isinstance(draft.change.otherwise, Together)
    (scale,) = draft.change.otherwise.changes
    assert isinstance(scale, Scale)
    assert scale.device == pytest.approx(1 - (1 - 1 / 200) * gone_ms / 1.8)
    assert scale.host == pytest.approx(1 / 200)


WRITTEN = """\
for step in range(100):
    i = 0
    {head}
        {body}  #> cost step_ms=9 calls=200; op aten::select count=200 cpu_ms=1
        #^ op aten::sort count=200 cpu_ms=8
"""


def heads(head: str, body: str) -> list[int]:
    """Of each loop, the line it begins on."""
    example = read_example(WRITTEN.format(head=head, body=body))
    found = rounds(Context(example.profile, texts(example)))
    return [one.source.line(one.loop) for one in found]


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("for i in range(len(x)):", "out[i] = torch.sort(x[i])"),
        ("for i in range(len(x)):", "self.out[i] = torch.sort(self.x[i])"),
        ("for i in range(len(x)):", "out[i].add_(torch.sort(x[i]))"),
        ("for i in range(len(x)):", "out[i : i + 4] += torch.sort(x[i])"),
        ("for i in range(len(x)):", "y = x[i]; h = torch.sort(y); y = h * 2"),
        ("for i in range(len(x)):", "y = x[i]; y = torch.sort(y); y = scale(y)"),
        ("while i < len(x):", "out.append(torch.sort(x[i]))"),
        ("while i < len(x) and open_:", "out[:, i] = torch.sort(x[:, i])"),
    ],
)
def test_a_loop_that_stores_by_its_number_is_no_recurrence(head: str, body: str) -> None:
    assert heads(head, body) == [3]


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("for i in range(len(x)):", "out[i] = cell(x[i], out[i - 1])"),
        ("for i in range(len(x)):", "h[:], extra = cell(x[i], h)"),
        ("for i in range(len(x)):", "x[i].addmm_(x[i + 1] - x[i], w[i])"),
        ("for i in range(1, len(x)):", "x[i] += torch.sort(x[i - 1])"),
        ("for i in range(len(x)):", "self.h = cell(x[i], self.h)"),
        ("for i in range(len(x)):", "h = cell(y, x[i]); y = drop(h)"),
        ("while i < len(x):", "h = cell(x[i], h)"),
        ("while i < len(x):", "loss(x[i]).backward()"),
    ],
)
def test_what_needs_the_round_before_or_trains_stays_a_loop(head: str, body: str) -> None:
    assert heads(head, body) == []


NESTED = """\
for step in range(100):
    for i in range(len(x)):
        y = x[i]  #> cost step_ms=1 calls=64; op aten::select count=64 cpu_ms=1
        for layer in {inner}:
            y = layer(y){more}  #> cost step_ms=9 calls=256; op aten::sort count=256 cpu_ms=8
        out.append(y)  #> cost step_ms=0.1 calls=64
"""


@pytest.mark.parametrize(
    ("inner", "more"), [("layers", ""), ("range(4)", " + layer")], ids=["layers", "a number of times"]
)
def test_the_time_of_a_loop_inside_that_takes_no_pieces_is_of_the_rounds(inner: str, more: str) -> None:
    example = read_example(NESTED.format(inner=inner, more=more))
    (found,) = rounds(Context(example.profile, texts(example)))
    assert found.source.line(found.loop) == 2
    assert found.count == 64
    assert sum(cost.step_ms for cost in found.costs) == pytest.approx(10.1)


def test_a_loop_inside_that_takes_pieces_itself_is_told_alone() -> None:
    example = read_example(
        "for step in range(100):\n    for i in range(8):\n        for j in range(8):\n"
        "            out[i, j] = torch.sort(x[i, j])  #> cost step_ms=9 calls=64; "
        "op aten::select count=128 cpu_ms=1; op aten::sort count=64 cpu_ms=8\n"
    )
    found = rounds(Context(example.profile, texts(example)))
    assert [one.source.line(one.loop) for one in found] == [3]


PIECES = """\
def pool(h, sizes):
    parts = [atoms.mean(dim=0) for atoms in h.split(sizes)]
    #^ cost step_ms=9 calls=1; {kept}
    return torch.stack(parts)
"""


def test_pieces_of_many_sizes_are_counted_in_the_recorded_step() -> None:
    """What takes them is not kept of the line, nor each of their sizes."""
    kept = [f"op aten::mean count=2 cpu_ms=0.1 shapes=[[{at},4]]" for at in range(9, 9 + MOST_OPS_A_LINE)]
    example = read_example(PIECES.format(kept="; ".join(kept)))
    flow = _pooled([9 + at % 100 for at in range(200)])
    assert {flow.sites[at].line for at in flow.site} > {2, 4}
    facts = replace(example.profile.facts, dataflow=flow)
    context = Context(replace(example.profile, facts=facts), texts(example))
    (one,) = rounds(context)
    assert (one.count, one.uneven) == (200, True)
    with pytest.raises(Refused, match="index_add_"):
        at_once(context, one)


def _pooled(sizes: list[int]) -> Dataflow:
    """The example's own lines as the runner records them, each at its number."""
    text = PIECES.format(kept="")
    scope: dict[str, Any] = {"torch": torch}
    exec(compile(text, str(Path(recording.__file__).parent / "pooled.py"), "exec"), scope)
    flow = recorded(lambda: scope["pool"](torch.zeros(sum(sizes), 4), sizes)).flow
    return replace(flow, sites=tuple(replace(site, file=FILE) for site in flow.sites))


def test_the_number_of_a_place_that_is_written_to_is_nothing_that_a_round_gave() -> None:
    example = read_example(
        """\
for i in range(len(sets)):
    for j in range(len(others)):
        scores[i, j] = distance(sets[i], others[j])
        #^ cost step_ms=9 calls=144; op aten::select count=144 cpu_ms=1
"""
    )
    found = rounds(Context(example.profile, texts(example)))
    assert [one.source.line(one.loop) for one in found] == [2]


MODULES = """\
class Power(nn.Module):
    def forward(self, row):
        {work}
        return self.inner(row)  #> cost step_ms=1 calls=20

class Inner(nn.Module):
    def forward(self, row):
        return row.square()  #> cost step_ms=9 calls=20; op aten::square count=20 cpu_ms=9

class Net(nn.Module):
    def forward(self, x):
        return torch.stack([self.power({piece}) for row in {pieces}])  #> cost step_ms=1 calls=1; {took}

    def other(self, x):
        return x  #> cost calls=1
"""
UNBOUND = "op aten::unbind count=1 shapes=[[20,4]]"


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({}, [{4, 8, 12}]),
        ({"pieces": "x.split(4)", "took": "op aten::split count=1 shapes=[[80,4]]"}, []),  # of batches
        ({"work": "self.seen = row"}, []),
        ({"work": "self.seen.append(row)"}, []),
        ({"piece": "x"}, []),
        ({"called": ((12, "Power.forward"), (4, "Inner.forward"), (15, "Power.forward"))}, []),
        ({"called": ((12, "Power.forward"), (4, "Inner.forward"), (15, "Inner.forward"))}, []),
    ],
)
def test_the_lines_of_a_module_that_each_round_calls_are_the_loop_s(
    changed: dict[str, Any], found: list[set[int]]
) -> None:
    called = changed.pop("called", ((12, "Power.forward"), (4, "Inner.forward")))
    parts = {"work": "row = row + 1", "piece": "row", "pieces": "x.unbind(0)", "took": UNBOUND, **changed}
    example = read_example(MODULES.format(**parts))
    inside = {4: "Power.forward", 8: "Inner.forward", 12: "Net.forward", 15: "Net.other"}
    costs = tuple(
        replace(
            cost,
            function=inside[cost.line],
            called=tuple((FILE, name) for line, name in called if line == cost.line),
        )
        for cost in example.profile.lines
    )
    loops = rounds(Context(replace(example.profile, lines=costs), texts(example)))
    assert [{cost.line for cost in one.costs} for one in loops] == found


@pytest.mark.parametrize("size", [20, 70])
def test_as_many_rounds_as_the_dimension_has_entries(size: int) -> None:
    code = (
        "def work(x):\n    return torch.stack([row * 2 for row in x.unbind(1)])  #> cost step_ms=9 calls=1\n"
    )
    example = read_example(code)
    path = str(Path(recording.__file__).parent / "entries.py")
    scope: dict[str, Any] = {"torch": torch}
    exec(compile(example.text, path, "exec"), scope)
    flow = recorded(lambda: scope["work"](torch.randn(4, size))).flow
    flow = replace(flow, sites=tuple(replace(site, file=FILE) for site in flow.sites))
    facts = replace(example.profile.facts, dataflow=flow)
    (one,) = rounds(Context(replace(example.profile, facts=facts), texts(example)))
    assert one.count == size


TURNS = """\
def spread(x, names):
    found = {{}}
    for row, name in zip(x, names):
        #^ cost step_ms=0.1 calls={heads}; op aten::unbind count={calls} shapes=[[64,100]] cpu_ms=0.1
        low, high = row.min() * 2, row.max() * 2
        #^ cost step_ms=9 calls={turns}; op aten::mul count={products} cpu_ms=5
        found[name] = high - low  #> cost step_ms=2 calls={turns}; op aten::sub count={turns} cpu_ms=2
    return found
"""


@pytest.mark.parametrize(("calls", "turns"), [(1, 64), (1, 24), (3, 72)])
def test_a_loop_that_ends_before_the_pieces_do(calls: int, turns: int) -> None:
    """More operators of a kind in each round are not more rounds, and pieces that none takes are none."""
    products = max(2 * turns, 32 * calls)
    example = read_example(TURNS.format(calls=calls, heads=turns + calls, turns=turns, products=products))
    (one,) = rounds(Context(example.profile, texts(example)))
    assert one.count == turns


@pytest.mark.parametrize("wanted", [24, 40])
def test_a_comprehension_that_ends_before_the_pieces_do(wanted: int) -> None:
    code = (
        "def work(x, names):\n    return {name: (row * 2 + 1) * 3 for name, row in zip(names, x)}\n"
        "    #^ cost step_ms=9 calls=1; op aten::unbind count=1 shapes=[[60,4]]\n"
        f"    #^ op aten::mul count={2 * wanted}\n"
    )
    example = read_example(code)
    path = str(Path(recording.__file__).parent / "entries.py")
    scope: dict[str, Any] = {}
    exec(compile(example.text, path, "exec"), scope)
    flow = recorded(lambda: scope["work"](torch.randn(60, 4), range(wanted))).flow
    flow = replace(flow, sites=tuple(replace(site, file=FILE) for site in flow.sites))
    facts = replace(example.profile.facts, dataflow=flow)
    (one,) = rounds(Context(replace(example.profile, facts=facts), texts(example)))
    assert one.count == wanted


LAYERS = """\
def heads(x, layers):
    for layer in range(4):  #> cost calls=5
        for i in range({each}):  #> cost calls={heads}
            x[:, i] = x[:, i].relu()
            #^ cost step_ms=9 calls={turns}
            #^ op aten::select count={turns} cpu_ms=4; op aten::relu count={turns} cpu_ms=4
    return x
"""


@pytest.mark.parametrize(("each", "found"), [(1, []), (4, [4.0]), (16, [16.0])])
def test_rounds_are_told_for_each_time_that_a_loop_begins(each: int, found: list[float]) -> None:
    """Two layers call it twice as often as the outer loop does."""
    example = read_example(LAYERS.format(each=each, heads=8 * (each + 1), turns=8 * each))
    some = [*rounds(Context(example.profile, texts(example)))]
    assert [one.each for one in some] == found
    assert all(one.count == 8 * each for one in some)
