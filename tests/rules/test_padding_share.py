"""How much of a line works on a batch that has padding."""

from __future__ import annotations

import pytest

from tests.annotated import FILE, read_example
from warpline.rulekit.graph import graph_of
from warpline.rules.padded_batches import _worked
from warpline.wire.dataflow import Padding

TEXT = Padding(value=0, site=0, rows=4, columns=77, padded=250, shared=60)


def test_a_model_of_pictures_works_little_on_its_text() -> None:
    example = read_example(
        """\
loss = unet(noise, text)  #> cost device_ms=38; node aten.convolution shape=[4,320,8,8]
#^ node aten.mm inputs=[] shape=[308,64]
found = encoder(ids)  #> cost device_ms=1; node aten.mm shape=[308,64]; node aten.add shape=[4,77,64]
kept = running + 1  #> cost device_ms=1; node aten.add shape=[3,3]
"""
    )
    shares = _worked(graph_of(example.profile.facts.dataflow), TEXT)
    pictures, text = 4 * 320 * 8 * 8, 308 * 64
    assert shares == {(FILE, 1): pytest.approx(text / (text + pictures)), (FILE, 2): 1.0}
