"""Who calls the model, by the record: not by what it is called."""

from __future__ import annotations

from dataclasses import replace

from tests.annotated import FILE, read_example, texts
from warpline.model.profile import LineCost
from warpline.rulekit import Context
from warpline.rulekit.calling import below, model_born, records_at

SCRIPT = """\
class Block:
    def forward(self, x):
        return self.norm(x)  #> cost step_ms=9 nodes=40

class Net:
    def forward(self, x):
        for block in self.blocks:
            x = block(x)  #> cost step_ms=1
        return x.mean()  #> cost step_ms=1 nodes=2

def solve(field, x):
    return field(x)  #> cost step_ms=1

def main():
    made = build(3)  #> site module type=__main__.Net
    for x in batches:
        print(solve(made, x))  #> cost step_ms=1
"""
FUNCTIONS = {3: "Block.forward", 8: "Net.forward", 9: "Net.forward", 12: "solve", 17: "main"}
CALLED = {8: ["Block.forward"], 12: ["Net.forward"], 17: ["solve"]}
TOTAL = {3: 40, 8: 40, 9: 2, 12: 42, 17: 42}


def context(called: dict[int, list[str]] = CALLED) -> Context:
    example = read_example(SCRIPT)
    lines = tuple(
        replace(
            cost,
            function=FUNCTIONS[cost.line],
            called=tuple((FILE, name) for name in called.get(cost.line, ())),
            total_nodes=float(TOTAL[cost.line]),
        )
        for cost in example.profile.lines
    )
    return Context(replace(example.profile, lines=lines), texts(example))


def at(found: Context, line: int) -> LineCost:
    cost = found.cost(FILE, line)
    assert cost is not None
    return cost


def test_the_graph_is_recorded_at_the_call_of_the_model() -> None:
    found = records_at(context())
    assert found is not None
    assert found.line == 12


def test_a_call_has_all_lines_of_what_it_calls() -> None:
    found = context()
    assert {cost.line for cost in below(found, at(found, 12))} == {3, 8, 9, 12}


def test_a_model_is_found_through_the_functions_that_it_is_handed_to() -> None:
    found = context()
    site = model_born(found, at(found, 3))
    assert site is not None
    assert site.line == 15


def test_a_line_outside_any_forward_is_no_models() -> None:
    found = context()
    assert model_born(found, at(found, 17)) is None


def test_without_calls_in_the_record_nothing_is_said() -> None:
    found = context({})
    assert model_born(found, at(found, 3)) is None
