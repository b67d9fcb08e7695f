"""The line that makes the order in which a program takes its batches."""

from __future__ import annotations

from tests.annotated import FILE, read_example, texts
from warpline.rulekit import Context
from warpline.rulekit.graph import graph_of
from warpline.rulekit.visiting import visited_at

ROWS = 64
#: What the step records of ``taken`` and of the mask: 64 of 9,000 lengths, compared with 200 columns.
TAKEN = (
    "#> tensor %20 shape=[9000] dtype=int64; tensor %21 shape=[200] dtype=int64;"
    " node aten.slice.Tensor args=[%20,0,64,128] shape=[64] dtype=int64"
)
LOOKED_UP = (
    "#> tensor %20 shape=[9000] dtype=int64; tensor %21 shape=[200] dtype=int64;"
    " tensor %22 shape=[9000] dtype=int64; node aten.slice.Tensor args=[%22,0,64,128] shape=[64];"
    " node aten.index.Tensor args=[%20,[%0]] shape=[64] dtype=int64"
)
MASK = (
    "#> node aten.unsqueeze.default args=[%{0},1] shape=[64,1];"
    " node aten.lt.Tensor args=[%21,%{1}] shape=[64,200] dtype=bool"
)


def place(code: str) -> int | None:
    example = read_example(code)
    context = Context(example.profile, texts(example))
    found = visited_at(context, graph_of(example.profile.facts.dataflow), ROWS)
    return None if found is None else found[1] * (found[0] == FILE)


def test_an_order_drawn_anew_for_each_epoch() -> None:
    assert (
        place(f"""\
import torch
for epoch in range(9):
    shuffled = torch.randperm(len(tracks)).to(device)
    for begin in range(0, len(tracks), 64):
        chosen = lengths[shuffled[begin : begin + 64]]  {LOOKED_UP}
        inside = steps < chosen.unsqueeze(1)  {MASK.format(1, 2)}
        model(tracks, inside).backward()
""")
        == 3
    )


def test_lengths_arranged_by_what_a_function_returns() -> None:
    assert (
        place(f"""\
import torch
class Reader:
    def turns(self):
        ids = torch.arange(self.count)
        return self.count // 64, ids
    def run(self, lengths):
        batches, ids = self.turns()
        lengths = lengths[ids.cuda()]
        for batch in range(batches):
            part = slice(64 * batch, 64 * batch + 64)
            own = lengths[part]  {TAKEN}
            score(own, steps[:200] < own.unsqueeze(1))  {MASK.format(0, 1)}
""")
        == 4
    )


def test_rows_in_their_stored_order_have_no_line_of_their_own() -> None:
    assert place(f"""\
lengths = torch.load("lengths.pt")
for begin in range(0, 9000, 64):
    own = lengths[begin : begin + 64]  {TAKEN}
    score(own, steps < own.unsqueeze(1))  {MASK.format(0, 1)}
""") is None  # fmt: skip


def test_nor_an_order_by_length() -> None:
    assert place(f"""\
order = torch.argsort(lengths)
for begin in range(0, 9000, 64):
    own = lengths[order][begin : begin + 64]  {TAKEN}
    score(own, steps < own.unsqueeze(1))  {MASK.format(0, 1)}
""") is None  # fmt: skip


def test_nor_one_that_only_some_runs_shuffle() -> None:
    assert place(f"""\
order = torch.arange(9000)
if shuffle:
    order = torch.randperm(9000)
for begin in range(0, 9000, 64):
    own = lengths[order[begin : begin + 64]]  {LOOKED_UP}
    score(own, steps < own.unsqueeze(1))  {MASK.format(1, 2)}
""") is None  # fmt: skip


def test_nor_the_first_rows_of_a_table_that_is_as_long() -> None:
    assert place(f"""\
places = torch.arange(9000)
for batch in batches:
    own = places[:64]  {TAKEN}
    score(own, steps < own.unsqueeze(1))  {MASK.format(0, 1)}
""") is None  # fmt: skip


def test_an_order_chosen_in_one_of_two_ways_is_not_followed() -> None:
    assert place(f"""\
def visits(count):
    if shuffle:
        return torch.randperm(count)
    return torch.arange(count)
order = visits(9000)
for begin in range(0, 9000, 64):
    own = lengths[order[begin : begin + 64]]  {LOOKED_UP}
    score(own, steps < own.unsqueeze(1))  {MASK.format(1, 2)}
""") is None  # fmt: skip
