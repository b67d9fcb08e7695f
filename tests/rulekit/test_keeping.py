"""Tensors that are kept on a CPU, by how the program reads them."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.rulekit import Context
from warpline.rulekit.keeping import kept_for_nothing

CODE = """\
#> device kind=cpu
outputs = []
for images in loader:
    for layer in layers:  #> cost calls=4
        images = layer(images)  #> cost calls=3 device_ms=9 kept_bytes=4096
        outputs.append(images)  #> cost calls=3
    for done in range(3):  #> cost calls=4
        match({read})  #> cost calls={calls}
"""


@pytest.mark.parametrize(
    ("read", "calls", "newest"),
    [
        ("outputs[-1]", 300, True),
        ("outputs[-1 - done]", 3, True),
        ("outputs[-done]", 2, True),
        ("outputs[-1 - done - self.more]", 3, True),
        ("outputs[-1 - done]", 4, False),  # perhaps all of it
        ("outputs[-1 - done]", 0, False),  # after the steps
        ("outputs[-1 - randrange(len(outputs))]", 1, False),
        ("outputs[done - 1]", 3, False),
        ("outputs[-done:]", 3, False),
    ],
)
def test_entries_that_are_counted_from_the_end(read: str, calls: int, newest: bool) -> None:
    example = read_example(CODE.format(read=read, calls=calls))
    found = [keeper for _, _, keeper in kept_for_nothing(Context(example.profile, texts(example)))]
    assert found == (["outputs"] if newest else [])
