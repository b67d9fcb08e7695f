"""A finding takes no more of a line than its own operators do."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.diagnosis.diagnose import diagnose
from warpline.model.change import Scale

ON_HOST = """\
#> steps step_ms=50
for batch in batches:
    out = model(torch.zeros(8, 20).to("cuda"), batch)
    #^ site tensor op=zeros device=cpu to=cuda bytes=640 calls=1
    #^ cost step_ms=45 device_ms=20 copy_ms=0.01 idle_ms=25 cpu_ms=45 launches=900
    #^ op aten::zeros outer=true cpu_ms={made} count=1
    #^ op aten::view outer=true cpu_ms=5 count=400; op aten::mm outer=true cpu_ms=20 device_ms=20 launches=900
    {kernel}
"""
KERNEL = "#^ kernel sgemm count=900 device_ms=20"


@pytest.mark.parametrize(
    ("made", "kernel", "spent"),
    [(0.02, KERNEL, None), (9, KERNEL, 9.0), (9, "#^ kernel 'Memcpy HtoD' kind=copy device_ms=1", 45.0)],
)
def test_a_tensor_made_on_the_host_on_the_line_of_a_model(
    made: float, kernel: str, spent: float | None
) -> None:
    assert costs(ON_HOST.format(made=made, kernel=kernel), "tensor-made-on-host") == spent


GROWS = """\
#> steps step_ms=50
out = first
for at in range(64):
    out = torch.cat([out, net(batch)], 1)
    #^ cost step_ms=45 device_ms=40 launches=900 calls=64
    #^ op aten::cat outer=true count=64 device_ms={joined} cpu_ms=1
    #^ op aten::mm outer=true count=900 device_ms=38 cpu_ms=19
train(out)
"""


def test_what_makes_the_pieces_is_no_part_of_joining_them() -> None:
    assert costs(GROWS.format(joined=2), "cat-in-loop") == pytest.approx(45 * 0.05)
    assert costs(GROWS.format(joined=0.1), "cat-in-loop") == pytest.approx(45 * 0.05)  # of the host's time


ZEROED = """\
#> steps step_ms=50
for batch in batches:
    loss(batch).backward()
    optimizer.step(); optimizer.zero_grad(set_to_none=False)
    #^ cost step_ms=40 device_ms=40 launches=400; op aten::zero_ outer=true count=200 device_ms=4 cpu_ms=2
    #^ op aten::_fused_adamw_ outer=true count=1 device_ms=36 cpu_ms=18
"""


def test_an_optimizer_s_step_is_no_part_of_zeroing() -> None:
    assert costs(ZEROED, "zeroed-gradients") == pytest.approx(4.0)


LAYERS = """\
#> steps step_ms=50
#> tensor %20 shape=[512,512] parameter=true; tensor %21 shape=[4096,512]; tensor %22 shape=[100]
for layer in layers:
    states = layer(states)
    #^ cost step_ms=40 device_ms=40; op aten::mm shapes=[[4096,512],[512,512]] device_ms=40
    #^ node aten.t.default args=[%20] shape=[512,512]{earlier}
    #^ node aten.mm.default args=[%{last},%0] shape=[4096,512]
chosen = states[places]
#^ node aten.index.Tensor args=[%{taken},%22] shape=[100,512]
"""
MM = "; node aten.mm.default args=[%{},%0] shape=[4096,512]"


@pytest.mark.parametrize(("layers", "spent"), [(3, 40 / 3), (1, 40.0)])
def test_only_the_last_layer_of_a_line_has_unused_rows(layers: int, spent: float) -> None:
    last, earlier = (2, MM.format(21) + MM.format(1)) if layers == 3 else (21, "")
    code = LAYERS.format(earlier=earlier, last=last, taken=layers)
    assert costs(code, "unused-logits") == pytest.approx(spent)


def costs(code: str, rule: str) -> float | None:
    """The milliseconds that the only finding of ``rule`` is about."""
    example = read_example(code)
    found = [one for one in diagnose(example.profile, texts(example)).findings if one.rule == rule]
    assert len(found) < 2
    return next((each.value for one in found for each in one.evidence if each.unit == "ms"), None)


KEPT = """\
#> device kind={device}; steps step_ms=50
def push(self, row):
    self.rows = torch.cat([self.rows, row[None]])
    #^ cost step_ms=20 device_ms=16 calls=4; op aten::cat shapes=[[999,64,1,64],[]] count=1 device_ms=4
    #^ op aten::cat shapes=[[1000,64,1,64],[]] count=1 device_ms=4
    #^ op aten::cat shapes=[[1001,64,1,64],[]] count=2 device_ms=8
"""


@pytest.mark.parametrize(
    ("device", "left"),
    [("cpu", (1 / 1000, 1 / 1000)), ("cuda", (1 / 1000, 1.0))],
)
def test_of_a_tensor_that_is_kept_the_new_rows_remain(device: str, left: tuple[float, float]) -> None:
    """However often a step adds some. On a CPU what the line does besides is to free the tensor of before."""
    example = read_example(KEPT.format(device=device))
    (change,) = diagnose(example.profile, texts(example)).changes.values()
    assert isinstance(change, Scale)
    assert (change.device, change.host) == pytest.approx(left, rel=0.01)


def test_a_kernel_that_writes_one_row_takes_some_time() -> None:
    """Four of them a step, of 0.8 us or more; all joins take 0.016 ms here."""
    code = KEPT.format(device="cuda").replace("device_ms=16", "device_ms=0.016")
    example = read_example(
        code.replace("device_ms=4", "device_ms=0.004").replace("device_ms=8", "device_ms=0.008")
    )
    (change,) = diagnose(example.profile, texts(example)).changes.values()
    assert isinstance(change, Scale)
    assert change.device == pytest.approx(0.2)
