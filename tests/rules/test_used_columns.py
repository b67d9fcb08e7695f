"""padded-batches: only the columns that a batch uses, of rows from a table that is padded as a whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.rulekit import Context
from warpline.rules.padded_batches import PaddedBatches
from warpline.text.edits import apply
from warpline.wire.dataflow import Padding, Unscored

SCRIPT = """\
#> steps step_ms=60
#> device kind={kind} capability=None multiprocessors=0
import torch

EMPTY = 0

def batches(table, kinds):
    for rows in chunks:
        {taken}
        #^ tensor %20 shape=[6000,256] dtype=int64; tensor %21 shape=[32] dtype=int64
        #^ tensor %22 shape=[{labels}] dtype=int64
        #^ node aten.index.Tensor args=[%20,[%21]] shape=[32,256] dtype=int64
        #^ node aten.index.Tensor args=[%22,[%21]] shape=[{label}] dtype=int64

def loss_of(ids, kinds):
    real = {mask}  #> node aten.{compare}.Scalar args=[%0,0] shape=[32,256] dtype=bool
    x = words(ids)
    #^ cost device_ms=50 cpu_ms=50; tensor %23 shape=[900,64] parameter=true
    #^ node aten.embedding.default args=[%23,%0] shape=[32,256,64]
    scores = head((x * real[..., None]).sum(1))
    #^ tensor %24 shape=[64,9] parameter=true; node aten.mul.Tensor args=[%3,%2] shape=[32,256,64]
    #^ node aten.sum.dim_IntList args=[%4,[1]] shape=[32,64]; node aten.mm.default args=[%5,%24] shape=[32,9]
    {more}
"""
PARTS = {
    "kind": "cpu",
    "taken": "yield table[rows], kinds[rows]",
    "labels": "6000",
    "label": "32",
    "mask": "ids != EMPTY",
    "compare": "ne",
    "more": "pass",
}


def after(unscored: int = 0, **parts: str) -> str | None:
    """The script with the edit; None where none is offered."""
    example = read_example(SCRIPT.format(**PARTS | parts))
    facts = example.profile.facts
    site = next(
        at for at, one in enumerate(facts.dataflow.sites) if "words(ids)" in line(example.text, one.line)
    )
    padding = (Padding(value=0, site=site, rows=32, columns=256, padded=6000, shared=150),)
    flow = replace(facts.dataflow, padding=padding, unscored=(Unscored(7, 8160, unscored),))
    profile = replace(example.profile, facts=replace(facts, dataflow=flow))
    (draft,) = PaddedBatches().find(Context(profile, texts(example)))
    assert draft.place == (FILE, next(at for at in range(1, 99) if "[rows]" in line(example.text, at)))
    return apply(example.text, draft.fixes[0].edits) if draft.fixes else None


def line(text: str, number: int) -> str:
    return text.split("\n")[number - 1]


def test_columns_that_no_row_of_the_batch_uses_are_left_out() -> None:
    longest = "        longest = int((table[rows] != EMPTY).any(0).cumsum(0).argmax()) + 1\n"
    assert f"{longest}        yield table[rows, :longest], kinds[rows]\n" in (after() or "")
    assert f"{longest}        ids, k = table[rows, :longest], kinds[rows]\n" in (
        after(taken="ids, k = table[rows], kinds[rows]") or ""
    )
    assert "(table[rows] != 0).any(0)" in (after(mask="ids.ne(0)") or "")


NEXT = (
    "loss = score(scores, ids[:, 1:])  #> node aten.slice.Tensor args=[%0,1,1,256] shape=[32,255] dtype=int64"
    "; node aten.nll_loss_forward.default args=[%6,%7] shape=[]"
)

PAST = "x = x + past  #> node aten.add.Tensor args=[%3,%30] shape=[32,256,64]; tensor %30 shape=[256,64]"


@pytest.mark.parametrize(
    "parts",
    [
        {"kind": "cuda"},  # the host would wait for the number
        {"compare": "add"},  # nothing tells the padding
        {"labels": "6000,256", "label": "32,256"},  # labels of each position
        {"taken": "yield table[draw()], kinds[rows]"},
        {"taken": "yield [(table[rows], kinds[rows]) for rows in chunks]"},
        {"more": PAST},  # something else has a number for each position
        {"more": NEXT},  # the loss counts padding, too
    ],
)
def test_columns_that_may_be_needed(parts: dict[str, str]) -> None:
    assert after(**parts) is None


def test_targets_that_the_loss_ignores() -> None:
    assert after(more=NEXT, unscored=6000) is not None
