"""Tensors that are kept on a CPU, by how the program reads them."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.rulekit import Context
from warpline.rulekit.keeping import kept_for_nothing

CODE = """\
#> device kind=cpu
outputs = []
size = 4
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
        ("outputs[-size:]", 1, True),  # always as many
        ("outputs[-self.size:]", 1, False),  # nothing says how many
    ],
)
def test_entries_that_are_counted_from_the_end(read: str, calls: int, newest: bool) -> None:
    example = read_example(CODE.format(read=read, calls=calls))
    found = [keeper for _, _, keeper in kept_for_nothing(Context(example.profile, texts(example)))]
    assert found == (["outputs"] if newest else [])


NAMED = """\
#> device kind=cpu
import functools
import torch
from collections import defaultdict

def save({kept}, name, layer, given, output):
    {kept}[name].append(output.detach())  #> cost calls=3

def watched(layers):
    outputs = defaultdict(list)
    for name, layer in layers.items():
        layer.register_forward_hook(functools.partial(save, outputs, name))
    return outputs

def share(outputs):
    for name, parts in outputs.items():  #> cost calls=4
        {read}  #> cost calls=3

{seen} = watched(layers)
for images in loader:
    net(images)  #> cost calls=1 device_ms=9 kept_bytes=4096
    share({seen})  #> cost calls=1
{later}
"""


@pytest.mark.parametrize(
    ("read", "later", "newest"),
    [
        ("newest = parts[-1]; show(newest.mean())", "", True),
        ("show(parts[-1].mean(), len(parts))", "", True),
        ("show(torch.cat(parts).mean())", "", False),
        ("newest = parts[-1]", "torch.save(SEEN, path)", False),
        ("newest = parts[-1]", "kept = SEEN; torch.save(kept, path)", False),
        ("newest = parts[-1]", "kept = SEEN; show(kept['first'][-1])", True),
        ("newest = parts[0]; show(newest.mean())", "", False),
    ],
)
@pytest.mark.parametrize(("kept", "seen"), [("outputs", "seen"), ("into", "outputs")])
def test_what_is_kept_under_other_names(kept: str, seen: str, read: str, later: str, newest: bool) -> None:
    later = later.replace("SEEN", seen)
    example = read_example(NAMED.format(kept=kept, seen=seen, read=read, later=later))
    found = [keeper for _, _, keeper in kept_for_nothing(Context(example.profile, texts(example)))]
    assert found == (["outputs"] if newest else [])
