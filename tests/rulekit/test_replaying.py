"""CUDA graphs are offered only for code whose results are used up before it runs again."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.rulekit import Context, Draft
from warpline.rules.launch_bound import LaunchBound

#: Compiled layers: ``runs`` of the region a step, ``with_gradients`` of them, ``passes`` backward passes.
LAYERS = """\
#> steps step_ms=40 device_busy_percent=30
tower = Tower().cuda()
for stage in tower.stages:
    stage.compile()  #> site compile backend=inductor
for x in batches:
    loss = tower(x).mean()
    #^ cost step_ms=25 device_ms=6 idle_ms=19 cpu_ms=25 launches=1500 calls={passes}
    #^ op "Torch-Compiled Region: 0/0" count={runs} launches=1500
    #^ op "Torch-Compiled Region: 1/0" count={passes} launches=100
    #^ op CompiledFunction count={with_gradients} launches=0
    loss.backward()
    #^ cost step_ms=15 device_ms=5 idle_ms=10 cpu_ms=15 launches=1000 calls={passes}
    #^ op aten::mul count=8 phase={phase}
"""


def _layers(runs: float, with_gradients: float, passes: float = 1, phase: str = "backward") -> Draft:
    code = LAYERS.format(runs=runs, with_gradients=with_gradients, passes=passes, phase=phase)
    example = read_example(code)
    (draft,) = LaunchBound().find(Context(example.profile, texts(example)))
    return draft


@pytest.mark.parametrize("passes", [1, 4])
def test_regions_that_run_once_before_each_backward_pass_become_graphs(passes: float) -> None:
    draft = _layers(passes, 2 * passes, passes)
    assert [fix.title for fix in draft.fixes] == ["Launch the compiled kernels as CUDA graphs"]
    assert draft.change is not None


@pytest.mark.parametrize(
    ("runs", "with_gradients", "phase", "said"),
    [
        (6, 7, "backward", "the compiled code runs several times before"),
        (1, 2, "recompute", "checkpointing"),
        (1, 1, "backward", "without gradients"),
    ],
)
def test_graphs_that_would_overwrite_what_is_needed_are_not_promised(
    runs: float, with_gradients: float, phase: str, said: str
) -> None:
    draft = _layers(runs, with_gradients, phase=phase)
    assert not draft.fixes
    assert draft.change is None
    assert draft.saving_ms == 0
    assert said in draft.message


#: A model of the script's own that nothing compiles yet.
MODEL = """\
#> steps step_ms=40 device_busy_percent=30
class Encoder(nn.Module):
    def forward(self, x):
        return self.net(x)
        #^ cost step_ms=25 device_ms=6 idle_ms=19 cpu_ms=25 launches=1500 calls={runs}

def loss_of(model, x):
    return torch.stack([model(each) for each in x]).mean()

encoder = Encoder().cuda()
#^ site module type=__main__.Encoder count={made}
for x, y in batches:
    {call}  #> cost calls=1
    loss.backward()
    #^ cost step_ms=15 device_ms=5 idle_ms=10 cpu_ms=15 launches=1000 calls=1
    #^ op aten::mul count=8 phase={phase}
"""
ONE = "loss = encoder(x).mean()"


@pytest.mark.parametrize(
    ("runs", "made", "call", "phase", "graphs"),
    [
        (1, 1, ONE, "backward", True),
        (2, 2, ONE, "backward", True),  # another of that class runs beside it
        (2, 1, ONE, "backward", False),  # a helper calls it again
        (0, 2, "loss = (encoder(x) - encoder(y)).square().mean()", "backward", False),
        (1, 1, ONE, "recompute", False),
        (1, 1, "loss = loss_of(encoder, x)", "backward", True),
        (0, 2, "loss = loss_of(encoder, x)", "backward", False),  # how often that runs it is unknown
    ],
)
def test_a_model_that_runs_again_is_compiled_without_graphs(
    runs: float, made: int, call: str, phase: str, graphs: bool
) -> None:
    example = read_example(MODEL.format(runs=runs, made=made, call=call, phase=phase))
    (draft,) = LaunchBound().find(Context(example.profile, texts(example)))
    titles = ["Compile the model", "Compile the model, as CUDA graphs"]
    assert [fix.title for fix in draft.fixes] == titles[: 1 + graphs]
    assert (draft.alternative is not None) == graphs
