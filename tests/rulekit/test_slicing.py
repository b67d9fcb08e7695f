"""Batches that a loop slices."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import read_example, texts
from warpline.rulekit.context import Context
from warpline.rulekit.slicing import sliced

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


@pytest.mark.parametrize("code", [RANGE, OPTION, SPLIT, STRIDE, POSITIONS, HEADS, PIECES, WORDS])
def test_where_their_size_is_written(code: str) -> None:
    example = read_example(code)
    here = [at for at, line in enumerate(code.split("\n"), 1) if "# here" in line and code is not PIECES]
    assert [found.place[1] for found in sliced(Context(example.profile, texts(example)))] == here


@pytest.mark.parametrize("argv", [("--batch-size", "64"), ("--batch-size=64",)])
def test_not_the_default_of_an_option_that_the_command_line_sets(argv: tuple[str, ...]) -> None:
    example = read_example(OPTION)
    manifest = replace(example.profile.manifest, argv=argv)
    assert not list(sliced(Context(replace(example.profile, manifest=manifest), texts(example))))
