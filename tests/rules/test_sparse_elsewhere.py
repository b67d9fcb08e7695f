"""Embeddings of a class of the script's, whose ``sparse`` is the default of another function."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.diagnosis import diagnose
from warpline.model.report import Finding
from warpline.text.edits import apply
from warpline.wire.births import Argument, Holder

PLACES = """\
#> device kind=cpu; steps step_ms=20
import torch
class Places(torch.nn.Embedding):
    def reset_parameters(self):
        torch.nn.init.zeros_(self.weight)
def atlas(streets, thrifty=False):
    near = Places(streets, 64, sparse=thrifty)
    #^ site module type=maps.Places num_embeddings=1000000 embedding_dim=64
    far = Places(streets // 5, 64, sparse=thrifty)
    #^ site module type=maps.Places num_embeddings=200000 embedding_dim=64
    return near, far
near, far = atlas(1000000)
optimizer = torch.optim.Adagrad(near.parameters(), lr=0.05)
#^ site optimizer type=Adagrad elements=64000000 shapes=[[1,1000000,64]] with.weight_decay=0
others = torch.optim.{kind}(far.parameters(), lr=0.05)
#^ site optimizer type={kind} elements=12800000 shapes=[[1,200000,64]] with.weight_decay={decay}
for ids, wanted in loader:
    loss = (near(ids).sum(1) - wanted).square().mean() + far(ids // 5).square().mean()
    #^ cost step_ms=9 cpu_ms=9 device_ms=9 function={function}
    #^ op aten::embedding shapes=[[1000000,64],[512,8]] device_ms=1
    #^ op aten::embedding_dense_backward phase=backward shapes=[[512,8,64],[512,8]] device_ms=8
    loss.backward()
    optimizer.step()  #> use optimizer; cost step_ms=5 cpu_ms=5 device_ms=5; op aten::add_ device_ms=5
"""


def found(kind: str = "Adagrad", decay: float = 0, function: str = "<module>", taken: bool = True) -> Finding:
    example = read_example(PLACES.format(kind=kind, decay=decay, function=function))
    held = Holder("default", FILE, 5, 27, "thrifty", "flow")
    sites = [
        replace(site, arguments=(Argument("sparse", False, True, held),) if taken else ())
        if site.kind == "module"
        else site
        for site in example.profile.facts.sites
    ]
    facts = replace(example.profile.facts, sites=tuple(sites))
    findings = diagnose(replace(example.profile, facts=facts), texts(example)).findings
    (one,) = (one for one in findings if one.rule == "dense-embedding-gradient")
    return one


def test_the_default_is_changed() -> None:
    one = found()
    code = read_example(PLACES).text
    assert one.line == 5
    assert apply(code, one.fixes[0].edits) == code.replace("thrifty=False", "thrifty=True")
    assert "the default of `thrifty`" in one.message


@pytest.mark.parametrize(("kind", "decay"), [("Adam", 0), ("SGD", 0.01)])
def test_others_that_take_it_may_need_dense_gradients(kind: str, decay: float) -> None:
    one = found(kind, decay)
    assert (one.line, one.fixes) == (5, ())
    assert "other embeddings take the same setting" in one.message


def test_a_class_with_a_look_up_or_settings_of_its_own_stands_at_the_look_up() -> None:
    assert found(function="Places.forward").line == 13
    assert found(taken=False).line == 13
