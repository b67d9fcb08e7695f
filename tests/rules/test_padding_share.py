"""How much of a line works on a batch that has padding."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, Example, read_example, texts
from warpline.rulekit import Context
from warpline.rulekit.graph import graph_of
from warpline.rules.padded_batches import PaddedBatches, _worked
from warpline.wire.dataflow import Padding
from warpline.wire.run import CompiledKernel

TEXT = Padding(value=0, site=0, rows=4, columns=77, padded=250, shared=60)


def worked(example: Example, *compiled: CompiledKernel) -> dict[tuple[str, int], float]:
    facts = replace(example.profile.facts, compiled_kernels=compiled)
    context = Context(replace(example.profile, facts=facts), texts(example))
    return _worked(context, graph_of(facts.dataflow), TEXT)


def test_a_model_of_pictures_works_little_on_its_text() -> None:
    example = read_example(
        """\
loss = unet(noise, text)  #> cost device_ms=38; node aten.convolution shape=[4,320,8,8]
#^ node aten.mm inputs=[] shape=[308,64]
found = encoder(ids)  #> cost device_ms=1; node aten.mm shape=[308,64]; node aten.add shape=[4,77,64]
kept = running + 1  #> cost device_ms=1; node aten.add shape=[3,3]
"""
    )
    shares = worked(example)
    pictures, text = 4 * 320 * 8 * 8, 308 * 64
    assert shares == {(FILE, 1): pytest.approx(text / (text + pictures)), (FILE, 2): 1.0}


def test_compiled_layers_work_on_the_text_that_they_are_given() -> None:
    example = read_example(
        """\
def layer(h):
    return h @ weight  #> cost device_ms=38
hidden = embed(ids)  #> cost device_ms=1; node aten.add shape=[4,77,64]
hidden = layer(hidden)  #> cost device_ms=0; node warpline.compiled.default shape=[4,77,64]
update(state)  #> cost device_ms=1; node warpline.compiled.default shape=[4,77,3,64]
"""
    )
    lines = ((FILE, 2, "layer"),)
    shares = worked(example, CompiledKernel("extern_kernels.mm", lines, False, 0, "0/0"))
    assert shares == {(FILE, 2): 1.0, (FILE, 3): 1.0}
    assert worked(example) == {(FILE, 3): 1.0}


COLLATED = """\
#> steps step_ms=40
def stack(rows):
    width = max(len(row) for row in rows)
    page = torch.zeros(len(rows), width, dtype=torch.long)
    return page
{sampler}
loader = DataLoader(texts)
#^ site loader num_workers=4 collate_file={file} collate_line=1 {given}
for ids in loader:  #> use loader
    loss = model(ids)
    #^ padding rows=32 columns=512 padded=9000 shared=0
    #^ cost step_ms=38 device_ms=38; op aten::mm device_ms=38 shapes=[[16384,768],[768,768]]
"""


@pytest.mark.parametrize(
    ("sampler", "given", "line"),
    [
        ("class Plan:\n    order = torch.randperm(99)", "with.sampler=Plan", 6),
        ("class Plan:\n    order = list(range(99))", "with.sampler=Plan", 3),
        ("", "with.sampler=RandomSampler", 3),
    ],
)
def test_the_line_that_decides_on_the_padding_of_a_loader(sampler: str, given: str, line: int) -> None:
    example = read_example(COLLATED.format(sampler=sampler, given=given, file=FILE))
    (draft,) = PaddedBatches().find(Context(example.profile, texts(example)))
    assert draft.line == line
