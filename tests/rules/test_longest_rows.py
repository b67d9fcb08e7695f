"""padded-batches: each batch as wide as its own longest row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.rulekit import Context, Draft
from warpline.rules.padded_batches import PaddedBatches
from warpline.text.edits import apply
from warpline.wire.dataflow import Padding
from warpline.wire.run import CompileEvent

SCRIPT = """\
#> steps step_ms=60
import torch

LIMIT = 256
{before}
def together(rows):
    {made}
    {loop}
        {store}
    return ids

class Net(torch.nn.Module):
    def forward(self, ids):
        x = self.words(ids)
        #^ tensor %20 shape=[32,256] dtype=int64; tensor %21 shape=[900,64] parameter=true
        #^ tensor %22 shape=[{place},64] parameter=true
        #^ node aten.embedding.default args=[%21,%20] shape=[32,256,64]
        real = ids != 0  #> node aten.{compare}.Scalar args=[%20,0] shape=[32,256] dtype=bool
        {more}
        #^ node aten.{op}.default args=[%0,%22{numbers}] shape=[32,256,64]
        return x  #> cost device_ms=50; node aten.add.Tensor args=[%0,%0] shape=[32,256,64]

for rows in batches:
    batch = together(rows)  #> cost step_ms=0.2 cpu_ms=0.2 calls=1
    loss = net(batch)
"""
KNOWN = {
    "before": "",
    "made": "ids = torch.zeros(len(rows), LIMIT, dtype=torch.long)  #> cost step_ms=0.2 cpu_ms=0.2",
    "loop": "for i, row in enumerate(rows):",
    "store": "ids[i, : len(row)] = row",
    "place": 32,
    "compare": "ne",
    "more": "x = x + self.shift",
    "op": "mul",
    "numbers": "",
}


def drafted(
    script: str = SCRIPT,
    shared: int = 180,
    compiled: bool = False,
    hidden: int | None = None,
    **parts: object,
) -> tuple[str, Draft]:
    """``hidden``: the value of a mask, where that shows the padding."""
    example = read_example(script.format(**(KNOWN | parts)))
    facts = example.profile.facts
    shown = {"value": 20 if hidden is None else hidden, "mask": hidden is not None}
    padding = (Padding(**shown, site=0, rows=32, columns=256, padded=6000, shared=shared),)
    events = (CompileEvent("recompile", FILE, 1, ""),) if compiled else ()
    facts = replace(facts, dataflow=replace(facts.dataflow, padding=padding), compile_events=events)
    (draft,) = PaddedBatches().find(Context(replace(example.profile, facts=facts), texts(example)))
    return example.text, draft


def after(**parts: Any) -> str | None:
    """The script with the edit; None where none is offered."""
    text, draft = drafted(**parts)
    assert draft.fixes or "its own longest row" in draft.message
    return apply(text, draft.fixes[0].edits) if draft.fixes else None


def made_of(size: str) -> str:
    return f"ids = torch.full((len(rows), {size}), 0)  #> cost step_ms=0.2 cpu_ms=0.2"


@pytest.mark.parametrize(
    ("loop", "store", "longest"),
    [
        ("for i, row in enumerate(rows):", "ids[i, : len(row)] = row", "len(row) for row in rows"),
        ("for one, row in zip(ids, rows):", "one[: len(row)] = row", "len(row) for row in rows"),
        (
            "for one, (row, _) in zip(ids, rows):",
            "one[: len(row)] = torch.tensor(row)",
            "len(row) for row, _ in rows",
        ),
        ("for i in rows:", "ids[rows.index(i)][:i.size] = i.all", "i.size for i in rows"),
        (
            "for i, row in enumerate(rows):",
            "n = min(len(row), LIMIT); ids[i, :n] = row[:n]",
            "min(len(row), LIMIT) for row in rows",
        ),
    ],
)
def test_the_longest_row_sets_the_width(loop: str, store: str, longest: str) -> None:
    found = after(loop=loop, store=store) or ""
    assert f"    longest = max({longest})\n    ids = torch.zeros(len(rows), longest, dtype" in found


def test_rows_that_are_cut_are_cut_as_before() -> None:
    found = after(store="ids[i, : len(row)] = row[:LIMIT]") or ""
    assert "    longest = min(max(len(row) for row in rows), LIMIT)\n" in found
    found = after(store="ids[i, : len(row)] = 1") or ""
    assert "    longest = min(max(len(row) for row in rows), LIMIT)\n" in found


def test_a_name_for_the_width() -> None:
    found = after(made="width = LIMIT\n    " + made_of("width")) or ""
    assert "    width = max(len(row) for row in rows)\n    ids = torch.full((len(rows), width), 0)\n" in found


def test_rows_with_zeros_behind_them() -> None:
    listed = "ids = torch.tensor([row + [0] * (LIMIT - len(row)) for row in rows])"
    found = after(
        made="width = LIMIT  #> cost step_ms=0.2",
        loop=f"if len(rows):\n        {listed.replace('LIMIT', 'width')}",
        store="pass",
    )
    assert "    width = max(len(row) for row in rows)\n" in (found or "")


@pytest.mark.parametrize(
    "parts",
    [
        {"compare": "add"},  # nothing leaves the padding out
        {"place": 256},  # a table of that many positions is added as a whole
        {"more": "x = x.view(-1, LIMIT, 64)", "op": "view", "numbers": ",[-1,256,64]"},
        {"more": "x = x.view(-1, self.limit, 64)", "op": "view", "numbers": ",[-1,256,64]"},
        {"store": "ids[i, -len(row):] = row"},  # padding before the row
        {"store": "ids[i] = row"},
        {"store": "ids[i, 1 : 5] = row"},
        {"store": "row = read(row); ids[i, : len(row)] = row"},
        {"loop": "for i, row in enumerate(map(read, rows)):"},
        {"loop": "for i, row in some(rows):"},
        {"made": made_of("LIMIT") + "\n    marks = torch.ones(len(rows), LIMIT)"},  # nothing tells its rows
        {"made": "ids = torch.zeros(len(rows), 2, LIMIT)  #> cost step_ms=0.2 cpu_ms=0.2"},
        {"compiled": True},
    ],
)
def test_a_width_that_something_may_count_on(parts: dict[str, Any]) -> None:
    assert after(**parts) is None


def test_a_table_that_is_cut_to_the_rows_has_any_length() -> None:
    parts: dict[str, Any] = {"place": 256, "op": "slice", "numbers": ",0,0,256"}
    assert after(**parts, more="x = x + self.place[: ids.shape[1]]")
    assert after(**parts, more="x = x + self.place[:LIMIT]") is None


@pytest.mark.parametrize(
    ("more", "offered"),
    [
        ("x = x + self.pe[:, : x.size(1)]", True),
        ("pe = self.pe[:, : x.size(1)]\n        x = x + pe", True),
        ("pe = self.pe\n        x = x + pe", False),
        ("x = x + self.pe[:, :LIMIT]", False),
    ],
)
def test_a_slice_of_all_of_a_table_is_no_operator(more: str, offered: bool) -> None:
    assert bool(after(place=256, op="add", more=more)) is offered


@pytest.mark.parametrize(("shape", "each"), [("[8192,256]", True), ("[2048,256]", False)])
def test_a_layer_may_have_as_many_features_as_a_row_has_entries(shape: str, each: bool) -> None:
    """A product over positions has less rows than the batch has positions."""
    made = f"#> node aten.relu.default args=[%0] shape={shape}; node aten.mm.default args=[%2,%22]"
    more = f"x = self.wide(x)  {made}\n        x = x * 2"
    assert bool(after(place=256, op="slice", more=more)) is each


def test_only_what_all_rows_share_is_promised() -> None:
    _, draft = drafted(shared=32)
    assert draft.fixes
    assert draft.cost_ms is not None
    assert draft.saving_ms == pytest.approx(draft.cost_ms * (32 / 256) / (6000 / (32 * 256)))
    assert "Put rows of similar length into one batch, too." in draft.message
    _, draft = drafted(shared=32, compare="add")
    assert draft.saving_ms == draft.cost_ms


CALLED = """\
{before}
def filled(rows, width):
    ids = torch.zeros(len(rows), width, dtype=torch.long)  #> cost step_ms=0.2 cpu_ms=0.2
    {loop}
    return ids

def together(rows):"""


def called(call: str, before: str = "", loop: str = "") -> tuple[int, str | None]:
    """The line of the finding, and the line of the call with its edit, where a function gets the width."""
    loop = loop or "for one, row in zip(ids, rows): one[: len(row)] = row"
    parts = {"before": CALLED.format(before=before, loop=loop).removesuffix("def together(rows):")}
    text, draft = drafted(**parts, made=f"ids = {call}", loop="if rows:", store="pass")
    line = next(at for at, one in enumerate(text.split("\n"), 1) if "ids = filled" in one)
    edited = apply(text, draft.fixes[0].edits).split("\n")[line - 1] if draft.fixes else None
    return draft.line - line, edited.strip() if edited else None


def test_a_function_fills_rows_up_to_what_its_caller_says() -> None:
    longest = "max(len(row) for row in self.kept)"
    assert called("filled(rows, LIMIT)") == (0, "ids = filled(rows, max(len(row) for row in rows))")
    assert called("filled(width=LIMIT, rows=self.kept)") == (
        0,
        f"ids = filled(width={longest}, rows=self.kept)",
    )
    cut = "for one, row in zip(ids, rows): one[: len(row)] = row[:width]"
    found = called("filled(rows, 256)", loop=cut)
    assert found == (0, "ids = filled(rows, min(max(len(row) for row in rows), 256))")


def test_a_call_that_has_not_the_rows_under_a_name() -> None:
    assert called("filled(read(rows), LIMIT)") == (0, None)
    assert called(
        "filled(rows, LIMIT)",
        loop="rows = some(rows)\n    for one, row in zip(ids, rows): one[: len(row)] = row",
    ) == (0, None)


def test_calls_of_one_function_pass_the_same_width() -> None:
    both = "filled(rows, LIMIT)\n    marks = filled({}, LIMIT)"
    found = called(both.format("self.marks"))
    assert found == (0, "longest = max(len(row) for row in (*rows, *self.marks))")
    assert called(both.format("rows")) == (0, "longest = max(len(row) for row in rows)")
    assert called(both.format("rows").replace("marks", "rows = some(rows)\n    marks"))[1] is None
    assert called("filled(rows, LIMIT)\n    if rows:\n        marks = filled(rows, LIMIT)")[1] is None


def test_a_function_that_several_functions_give_the_width() -> None:
    line, _ = called("filled(rows, LIMIT)", before="def other(rows):\n    return filled(rows, LIMIT)\n")
    assert line < 0  # there the rows are told


BEFORE = (
    SCRIPT.partition("for rows in batches")[0]
    + """\
kept = [together(rows).pin_memory() for rows in batches]
{after}
for batch in kept:
    loss = net(batch)  #> cost step_ms=0.2 cpu_ms=0.2 calls=1
"""
)
MADE = KNOWN["made"].partition("  #>")[0]


@pytest.mark.parametrize("hidden", [None, 1])
def test_batches_that_are_made_before_the_steps(hidden: int | None) -> None:
    text, draft = drafted(BEFORE, hidden=hidden, made=MADE, after="")
    assert text.splitlines()[draft.line - 1].strip() == MADE
    assert "    longest = max(len(row) for row in rows)\n" in apply(text, draft.fixes[0].edits)


@pytest.mark.parametrize(
    "after",
    [
        "kept = torch.stack(kept)",  # then all have to be equally wide
        "kept = DataLoader(torch.utils.data.TensorDataset(torch.cat(kept)))",
    ],
)
def test_batches_that_are_joined_are_told_where_they_are_made(after: str) -> None:
    text, draft = drafted(BEFORE, made=MADE, after=after)
    assert text.splitlines()[draft.line - 1].strip() == MADE
    assert not draft.fixes


@pytest.mark.parametrize(
    ("made", "after"),
    [
        (MADE, "def spare(rows):\n    ids = torch.ones(len(rows), LIMIT)\n"
        "    for one, row in zip(ids, rows):\n        one[: len(row)] = row\n    return ids"),
        ("ids = torch.zeros(len(rows), 128)", "kept = kept[:8]"),
    ],
)  # fmt: skip
def test_batches_from_before_that_something_else_may_need_so_wide(made: str, after: str) -> None:
    text, draft = drafted(BEFORE, made=made, after=after)
    assert "self.words(ids)" in text.splitlines()[draft.line - 1]
    assert not draft.fixes
