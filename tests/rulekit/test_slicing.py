"""Batches that a loop slices."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.rulekit.context import Context
from warpline.rulekit.slicing import sliced
from warpline.rules.small_batch import SmallBatch
from warpline.text.edits import apply
from warpline.wire.loops import Loop

RANGE = """\
SIZE = 32  # here
for at in range(0, len(ids), SIZE):
    found.append(model(ids[at : at + SIZE].cuda()))  #> cost step_ms=9 calls=1
"""
OPTION = """\
parser.add_argument("--batch-size", type=int, default=8)  # here
def chunks(args, data):
    for start in tqdm(range(0, len(data), args.batch_size)):
        end = start + args.batch_size
        yield data[start : args.batch_size + start].to("cuda")  #> cost step_ms=1 calls=1
"""
SPLIT = """\
class Config:
    rows: int = 16  # here
def scores(cfg, queries):
    for part in enumerate(queries.split(cfg.rows)):
        out = model(part)  #> cost step_ms=9 calls=1
"""
STRIDE = """\
for at in range(0, len(signal), 4):
    found.append(model(signal[at : at + window]))  #> cost step_ms=9 calls=1
"""
POSITIONS = """\
for at in range(0, ids.size(1), 32):
    found.append(model(ids[:, at : at + 32]))  #> cost step_ms=9 calls=1
"""
HEADS = """\
for part in x.split(8, dim=1):
    out = model(part)  #> cost step_ms=9 calls=1
"""
PIECES = RANGE.replace("calls=1", "calls=12")
WORDS = """\
for word in text.split(","):
    found.append(model(word))  #> cost step_ms=9 calls=1
"""
YIELDED = """\
parser.add_argument("--at-once", type=int, default=4)  # here
def lots(o):
    while True:
        yield from torch.randperm(o.count).split(o.at_once)
for update, lot in zip(range(o.updates), lots(o)):
    loss = model(signal[lot])  #> cost step_ms=9 calls=1
"""
MADE = """\
def parts(data):
    for at in range(0, len(data), 16):  # here
        yield data[at : at + 16]
def sampler(count):
    return BatchSampler(SequentialSampler(range(count)), 16, drop_last=False)
for part in parts(data):
    out = model(part)  #> cost step_ms=9 calls=1
"""
RETURNED = (
    MADE.replace("  # here", "").replace("=False)", "=False)  # here").replace("in parts", "in sampler")
)
TAKEN = """\
def take(items, n):
    items = iter(items)
    while chunk := list(itertools.islice(items, n)):
        yield torch.stack(chunk)
for ids in take(texts, 2):  # here
    out = model(ids)  #> cost step_ms=9 calls=1
"""
VIEWED = """\
ROWS = 4  # here
def ready(data):
    return data[: len(data) // ROWS * ROWS].view(-1, ROWS, data.size(1))
for rows in ready(catalogue):
    out = model(rows)  #> cost step_ms=9 calls=1
"""
#: The first is the number of batches, and written twice.
FLAT = VIEWED.replace("ROWS, data", "4, data").replace("  # here", "")
NUMBERED = """\
ROWS = 16  # here
for turn in range(len(data) // ROWS):
    out = model(data[turn * ROWS : (turn + 1) * ROWS])  #> cost step_ms=9 calls=1
"""
COUNTED = """\
ROWS = 16
for turn in range(100):
    out = model(data[turn * ROWS : (turn + 1) * ROWS])  #> cost step_ms=9 calls=1
"""
FUNCTION = """\
for part in tqdm(torch.split(frames, 4)):  # here
    out = model(part)  #> cost step_ms=9 calls=1
"""
CHUNKS = """\
parts = torch.chunk(frames, 200)  # here
for part in parts:
    out = model(part)  #> cost step_ms=9 calls=1
"""
PAIRS = """\
SIZE = 8  # here
for x, y in zip(left.split(SIZE), right.split(SIZE)):
    out = model(x, y)  #> cost step_ms=9 calls=1
"""
UNEQUAL = PAIRS.replace("right.split(SIZE)", "right.split(2 * SIZE)").replace("  # here", "")
FEATURES = """\
for part in torch.chunk(x, 8, dim=-1):
    out = model(part)  #> cost step_ms=9 calls=1
"""
#: The ends are cut off at the number of samples, in the slice or in a function that slices.
LAST = """\
SIZE = 5  # here
for at in range(0, len(ids), SIZE):
    found.append(model(ids[at : min(at + SIZE, len(ids))]))  #> cost step_ms=9 calls=1
"""
CALLED = """\
def main():
    score(table, size=4)  # here
def score(table, size):
    for first in range(0, len(table), size):
        found.append(model(table.rows(first, min(first + size, len(table)))))  #> cost step_ms=9 calls=1
class Table:
    def rows(self, first, end):
        return torch.cat([self.whole[first:end], self.rest[first:end]], 1)
"""
WINDOWS = CALLED.replace("first:end", ":, first:end").replace("  # here", "")  # of positions
ELSEWHERE = CALLED.replace("def rows", "def lines").replace("  # here", "")  # not known what it does
#: Lists of rows, from torch's sampler.
SAMPLER = """\
SETTINGS = {"rows": 4}  # here
def score(table, rows):
    for step, some in enumerate(BatchSampler(SequentialSampler(table), rows, drop_last=False)):
        found.append(model(table[some[0] : some[-1] + 1]))  #> cost step_ms=9 calls=1
score(table, SETTINGS["rows"])
"""
LOADED = """\
for rows in DataLoader(table, batch_sampler=BatchSampler(RandomSampler(table), 4, False)):
    found.append(model(rows))  #> cost step_ms=9 calls=1
"""
BY_FOURS = """\
for some in BatchSampler(SequentialSampler(table), 4, False):
    found.append(model(table[some].view(4, -1)))  #> cost step_ms=9 calls=1
"""
#: A name of two loops, and one that a branch may have given another value.
TWICE = """\
def judge(essays, marks, rows=4):  # here
    starts = range(0, len(essays), rows)
    for at in starts:
        found.append(model(essays[at : at + rows]))  #> cost step_ms=9 calls=1
    starts = range(0, len(marks), 64)
    for at in starts:
        kept.append(found[at])
"""
BRANCHED = """\
def judge(essays, rows=4):
    starts = range(0, len(essays), rows)
    if essays.long:
        starts = range(0, len(essays), 2)
    for at in starts:
        found.append(model(essays[at : at + rows]))  #> cost step_ms=9 calls=1
"""
STEPPED = """\
def judge(essays, rows=4):  # here
    first = 0
    while first < len(essays):
        lot = tokens_of(essays[first : first + rows])
        found.append(model(lot))  #> cost step_ms=9 calls=1
        first += rows
"""
OVERLAPPING = STEPPED.replace("first += rows", "first += rows // 2").replace("  # here", "")
INNER = STEPPED.replace("first += rows", "for _ in lot:\n            first += rows").replace("  # here", "")
#: The number of batches has a name, and the ends of the slices.
TALLIED = """\
class Fitter:
    def fit(self, table, lot=6):  # here
        lots = math.ceil(len(table) / lot)
        for turn in range(lots):
            some = order[turn * lot : (turn + 1) * lot]
            out = model(table[some])  #> cost step_ms=9 calls=1
"""
ENDS = """\
def walk(table, opt):
    for turn in range(len(table) // opt.lot):
        first = turn * opt.lot
        last = min(first + opt.lot, len(table))
        out = model(table[first:last])  #> cost step_ms=9 calls=1
class Options:
    lot = 4  # here
"""
#: The same as slices that have a name, and the ends written there.
NAMED = """\
def walk(table, marks, lot=6):  # here
    for turn in range(int(np.ceil(len(table) / lot))):
        rows = slice(turn * lot, min((turn + 1) * lot, len(table)))
        loss = score(model(table[rows]), marks[rows])  #> cost step_ms=9 calls=1
"""
COLUMNS = NAMED.replace("marks[rows]", "marks[:, rows]").replace("  # here", "")
#: A size that is made of the number of batches.
SHARED = """\
@dataclass
class Options:
    lots: int = 64  # here
    lot: int = 0
def main(opt, rows):
    opt.lot = int(rows // opt.lots)
    for first in range(0, rows, opt.lot):
        last = first + opt.lot
        out = model(table[order[first:last]])  #> cost step_ms=9 calls=1
"""
PER_PROCESS = SHARED.replace("int(rows // opt.lots)", "int(256 // opt.lots)").replace("  # here", "")
STORED = """\
class Store:
    def lots(self, count, lot=None):
        rows = len(self.table)
        if lot is None:
            lot = rows // count
        for some in BatchSampler(SubsetRandomSampler(range(rows)), lot, drop_last=True):
            yield self.table[some]
for part in store.lots(32):  # here
    out = model(part)  #> cost step_ms=9 calls=1
"""
ARRAYS = """\
import numpy as np
lots = 500  # here
for some in np.array_split(order, lots):
    out = model(table[some])  #> cost step_ms=9 calls=1
"""
IN_PARTS = (CHUNKS, SHARED, STORED, ARRAYS)
BAR = RANGE.replace("in range", "in tqdm.trange").replace("SIZE):", "SIZE, desc='ids'):")
FIRST_FEW = SAMPLER.replace("enumerate(", "zip(range(9), ").replace("  # here", "")  # more rows if larger


BEFORE = """\
SIZE = 4  # here
for end in range(SIZE, len(rows), SIZE):
    out = model(rows[end - SIZE : end])  #> cost step_ms=9 calls=1
"""
#: The number of rows before each turn's is another one.
LAGGING = """\
SIZE, LAG = 4, 2
for end in range(LAG, len(rows), SIZE):
    out = model(rows[end - LAG : end])  #> cost step_ms=9 calls=1
"""


@pytest.mark.parametrize(
    "code",
    [
        *(BEFORE, LAGGING),
        *(SAMPLER, LOADED, BY_FOURS, FIRST_FEW, TWICE, BRANCHED),
        *(STEPPED, OVERLAPPING, INNER, BAR),
        *(LAST, CALLED, WINDOWS, ELSEWHERE),
        *(RANGE, OPTION, SPLIT, STRIDE, POSITIONS, HEADS, PIECES, WORDS),
        *(NUMBERED, COUNTED, FUNCTION, CHUNKS, PAIRS, UNEQUAL, FEATURES, YIELDED, MADE, RETURNED),
        *(TAKEN, VIEWED, FLAT),
        *(TALLIED, ENDS, NAMED, COLUMNS, SHARED, PER_PROCESS, STORED, ARRAYS),
    ],
)
def test_where_their_size_is_written(code: str) -> None:
    example = read_example(code)
    here = [at for at, line in enumerate(code.split("\n"), 1) if "# here" in line and code is not PIECES]
    found = list(sliced(Context(example.profile, texts(example))))
    assert [one.size.place[1] for one in found] == here
    assert [one.parts for one in found] == [code in IN_PARTS] * len(here)


def test_a_generator_of_another_file() -> None:
    user, made = MADE.replace("  # here", "").split("for part in")
    example = read_example(f"from lots import parts\nfor part in{made}")
    other = FILE.replace("train.py", "lots.py")
    sources = {**example.profile.sources, other: user}
    context = Context(replace(example.profile, sources=sources), sources.get)
    assert [one.size.place for one in sliced(context)] == [(other, 2)]


COMPREHENSION = """\
SIZE = 4
def judge(photos):
    return [inspect(part) for part in photos.split(SIZE)]  #> cost step_ms=1 calls=0
def inspect(part):
    return net(part)  #> cost step_ms=9 calls=1
"""


@pytest.mark.parametrize("header", ["for part in photos.split(SIZE)", "for photo in photos", None])
def test_a_comprehension_whose_turns_are_the_steps(header: str | None) -> None:
    example = read_example(COMPREHENSION)
    loop = Loop(FILE, 3, "judge", header) if header is not None else None
    manifest = replace(example.profile.manifest, request=replace(example.profile.manifest.request, loop=loop))
    found = list(sliced(Context(replace(example.profile, manifest=manifest), texts(example))))
    assert [one.size.place[1] for one in found] == ([1] if header and "split" in header else [])


#: The number stands in the loop more than once, or with another meaning.
AGAIN = """\
for at in range(0, len(ids), 32):
    found.append(model(ids[at : at + 32], mask[at : 32 + at]))  #> cost step_ms=9 calls=1
"""
BOTH = """\
for x, y in zip(left.split(8), right.split(8)):
    out = model(x, y)  #> cost step_ms=9 calls=1
"""


@pytest.mark.parametrize(
    ("code", "count"),
    [
        (AGAIN, 3),
        (BEFORE.partition("\n")[2].replace("SIZE", "8"), 3),
        (BOTH, 2),
        (AGAIN + "    done = at / 32\n", 0),
    ],
)
def test_a_number_that_is_written_again_is_changed_everywhere_or_not_at_all(code: str, count: int) -> None:
    example = read_example(code)
    found = list(sliced(Context(example.profile, texts(example))))
    assert [1 + len(one.again) for one in found] == [count] * bool(count)


FEW = """\
#> steps step_ms=40 device_busy_percent=30; memory peak_bytes=4000000000
import torch
for x, y in zip(LEFT, RIGHT):
    out = model(x, y)  #> cost step_ms=40 device_ms=12 idle_ms=28 cpu_ms=40 launches=1500 calls=1
"""


@pytest.mark.parametrize(
    ("cut", "after"),
    [("split(8)", "split(16)"), ("chunk(80)", "chunk(40)"), ("chunk(81)", "the number of parts is odd")],
)
def test_the_edit_keeps_what_is_taken_side_by_side_together(cut: str, after: str) -> None:
    example = read_example(FEW.replace("LEFT", f"left.{cut}").replace("RIGHT", f"right.{cut}"))
    (draft,) = SmallBatch().find(Context(example.profile, texts(example)))
    if not draft.fixes:
        assert after in draft.message
        return
    text = apply(example.text, draft.fixes[0].edits)
    assert f"zip(left.{after}, right.{after})" in text
    assert ("80 parts" if "80" in cut else "8 samples per batch") in draft.message


def test_a_number_that_is_written_in_each_step_is_changed_there() -> None:
    code = (
        STEPPED.replace("rows=4):  # here", "rows):").replace("+ rows]", "+ 16]").replace("+= rows", "+= 16")
    )
    example = read_example(code)
    (found,) = sliced(Context(example.profile, texts(example)))
    assert (found.number, len(found.again)) == (16, 1)


@pytest.mark.parametrize("argv", [("--batch-size", "64"), ("--batch-size=64",)])
def test_not_the_default_of_an_option_that_the_command_line_sets(argv: tuple[str, ...]) -> None:
    example = read_example(OPTION)
    manifest = replace(example.profile.manifest, argv=argv)
    assert not list(sliced(Context(replace(example.profile, manifest=manifest), texts(example))))
