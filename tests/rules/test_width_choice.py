"""padded-batches: a collate function that fills rows up to one length or to the longest, by an option."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import read_example, texts
from warpline.rulekit import Context, Draft
from warpline.rules.padded_batches import PaddedBatches
from warpline.text.edits import apply
from warpline.wire.dataflow import Padding
from warpline.wire.sites import Loader

SCRIPT = """\
#> steps step_ms=60
import argparse

import torch
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--limit", type=int, default=4 if SMALL else 256)
{option}
args = parser.parse_args([])

class Collate:
    def __init__(self, limit, padding):
        self.limit, self.padding = limit, padding
    def __call__(self, rows):
        longest = max(len(row) for row in rows)
        {width}
        filled = torch.zeros(len(rows), width, dtype=torch.long)
        for at, row in enumerate(rows):
            filled[at, : len(row)] = row
        return filled

loader = DataLoader(rows, collate_fn=Collate(args.limit, args.padding))  #> site loader
for ids in loader:  #> use loader
    x = words(ids)
    #^ tensor %20 shape=[32,256] dtype=int64; tensor %21 shape=[900,64] parameter=true
    #^ node aten.embedding.default args=[%21,%20] shape=[32,256,64]
    y = x * w  #> cost device_ms=50; node aten.mul.Tensor args=[%0,%0] shape=[32,256,64]
"""
WORD = 'parser.add_argument("--padding", choices=["longest", "max"], default="max")'
FLAG = 'parser.add_argument("--full", dest="padding", action="store_true", default=True)'
BRANCH = """\
if self.padding == "max":
            width = self.limit
        else:
            width = longest"""


def drafted(option: str, width: str, argv: tuple[str, ...] = ()) -> tuple[str, Draft]:
    example = read_example(SCRIPT.format(option=option, width=width))
    facts, manifest = example.profile.facts, replace(example.profile.manifest, argv=argv)
    line = example.text.splitlines().index("    def __call__(self, rows):") + 1
    made = {"collate_file": manifest.script, "collate_line": line}
    sites = [
        replace(one, facts={**one.facts, **made}) if one.kind == Loader.KIND else one for one in facts.sites
    ]
    padding = (Padding(value=20, site=0, rows=32, columns=256, padded=6000, shared=180),)
    facts = replace(facts, sites=tuple(sites), dataflow=replace(facts.dataflow, padding=padding))
    profile = replace(example.profile, facts=facts, manifest=manifest)
    (draft,) = PaddedBatches().find(Context(profile, texts(example)))
    return example.text, draft


@pytest.mark.parametrize(
    ("option", "width", "expected"),
    [
        (WORD, 'width = self.limit if self.padding == "max" else longest', 'default="longest")'),
        (WORD, 'width = longest if self.padding == "longest" else self.limit', 'default="longest")'),
        (WORD, BRANCH, 'default="longest")'),
        (FLAG, "width = self.limit if self.padding else longest", "default=False)"),
    ],
)
def test_the_option_is_changed(option: str, width: str, expected: str) -> None:
    text, draft = drafted(option, width)
    assert text.splitlines()[draft.line - 1] == option
    assert expected in apply(text, draft.fixes[0].edits).splitlines()[draft.line - 1]


@pytest.mark.parametrize(
    ("option", "width"),
    [
        (
            WORD.replace('"max"]', '"max", "none"]'),
            'width = self.limit if self.padding == "max" else longest',
        ),
        (WORD, "width = self.limit if count() else longest"),
        (WORD, 'width = longest if self.padding == "max" else longest'),
    ],
)
def test_it_is_not_known_what_chooses_the_longest(option: str, width: str) -> None:
    text, draft = drafted(option, width)
    assert text.splitlines()[draft.line - 1] != option


def test_what_the_command_line_passes_is_changed_there() -> None:
    text, draft = drafted(WORD, BRANCH, ("--padding", "max"))
    assert text.splitlines()[draft.line - 1] == WORD
    assert not draft.fixes
