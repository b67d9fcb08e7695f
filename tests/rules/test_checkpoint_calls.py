"""Where ``checkpoint`` is called, if torch runs no operator there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.rulekit import Context, Draft
from warpline.rules.needless_checkpointing import NeedlessCheckpointing
from warpline.text.edits import apply
from warpline.wire.cudagraphs import CapturedGraph
from warpline.wire.run import CompiledKernel

SCRIPT = """\
#> memory free_bytes=60000000000
import torch.utils.checkpoint as saving

class Stage(torch.nn.Module):
    def forward(self, x):
        return torch.tanh(x @ self.w)
        #^ cost step_ms=60 device_ms=60 recompute_ms=20
        #^ op aten::mm phase=recompute count=8 device_ms=9 shapes=[[512,512],[512,512]] dtypes=float

for x in batches:
    y = {call}  #> cost step_ms=0.1
    keep(y)  #> cost step_ms=0.1
"""


def places(call: str, called: bool = True, before: str = "") -> list[int]:
    example = read_example(SCRIPT.format(call=call).replace("class Stage", f"{before}class Stage"))
    at = 8 + before.count("\n")
    function = (FILE, "Stage.forward")
    lines = tuple(
        replace(cost, function="Stage.forward")
        if cost.recompute_ms
        else replace(cost, called=(function,) if called and cost.line == at else ())
        for cost in example.profile.lines
    )
    found = NeedlessCheckpointing().find(Context(replace(example.profile, lines=lines), texts(example)))
    return [draft.line for draft in found]


@pytest.mark.parametrize("name", ["checkpoint(", "checkpoint_sequential(stages, 4, "])
def test_the_line_that_calls_what_is_computed_again(name: str) -> None:
    assert places(f"saving.{name}x)") == [8]


OWN = """\
class {name}(torch.autograd.Function):
    @staticmethod
    def backward(context, *given):
        with torch.{mode}():
            made = context.stage(context.x)
        return torch.autograd.grad(made, context.x, *given)

"""


@pytest.mark.parametrize(
    ("name", "mode", "line"),
    [("Frugal", "enable_grad", 15), ("Thrifty", "enable_grad", 12), ("Frugal", "no_grad", 12)],
)
def test_a_function_of_its_own_that_records_a_graph_in_its_backward(name: str, mode: str, line: int) -> None:
    own = OWN.format(name=name, mode=mode)
    assert places("Frugal.apply(stage, x)", before=own) == [line]


def test_another_call_of_the_same_function_is_not_meant() -> None:
    assert places("saved(stage, x)") == [5]


def test_a_checkpoint_that_calls_nothing_of_it_is_not_meant() -> None:
    assert places("trainer.checkpoint(x)", called=False) == [5]


COMPILED = """\
#> memory free_bytes=60000000000
#> totals recomputed_bytes={left}
from torch.utils.checkpoint import checkpoint

def stage(x):
    return torch.tanh(x @ w) * gain  #> cost step_ms=10 device_ms=10 recompute_ms=3 backward_ms=4 forward_ms=3

for x in batches:
    y = checkpoint(fast_stage, *pair, use_reentrant=False)
    #^ cost step_ms=10 idle_ms=10; op _NoopSaveInputs count=4
    #^ op CompiledFunction phase=forward count=4 cpu_ms=3
    #^ op CompiledFunction phase=recompute count=4 cpu_ms=2
    #^ op CompiledFunctionBackward phase=backward count=4 cpu_ms=5 outer=0
"""
KERNEL = CompiledKernel("triton_poi_fused_mul_tanh_0", (), False, 0, "0/0", True)


def of_compiled(left: float, graphs: tuple[CapturedGraph, ...] = ()) -> tuple[str, list[Draft]]:
    example = read_example(COMPILED.format(left=left))
    facts = replace(example.profile.facts, compiled_kernels=(KERNEL,), captured_graphs=graphs)
    context = Context(replace(example.profile, facts=facts), texts(example))
    return example.text, list(NeedlessCheckpointing().find(context))


def test_compiled_code_is_judged_by_what_it_left_allocated() -> None:
    text, (draft,) = of_compiled(left=2e9)
    assert draft.line == 7
    assert "y = fast_stage(*pair)" in apply(text, draft.fixes[0].edits)


@pytest.mark.parametrize("left", [58e9, 0])
def test_what_would_not_fit_or_was_not_recorded_is_not_told(left: float) -> None:
    assert not of_compiled(left)[1]


def test_a_graph_of_kernels_asks_for_no_memory_in_a_step() -> None:
    assert not of_compiled(2e9, (CapturedGraph((), ()),))[1]


def test_what_the_host_does_again_is_a_part_of_its_calls_with_their_backward_pass() -> None:
    _, (draft,) = of_compiled(left=2e9)
    assert draft.cost_ms == pytest.approx(10 * 3 / 10 + 10 * 2 / 10)


SEQUENTIAL = """\
#> memory free_bytes=60000000000
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint_sequential

class Tower({base}):
    def __init__(self, *blocks):
        super().__init__({inherited})
        self.blocks = {made}

    def forward(self, x):
        return checkpoint_sequential({functions}, 4, x, use_reentrant=False)
        #^ cost step_ms=60 device_ms=60 recompute_ms=20; op _NoopSaveInputs count=4
        #^ op aten::mm phase=recompute count=8 device_ms=9 shapes=[[512,512],[512,512]] dtypes=float
"""


@pytest.mark.parametrize(
    ("parts", "call"),
    [
        ({"functions": "self.blocks"}, "self.blocks(x)"),
        ({"functions": "list(self)", "base": "nn.Sequential", "inherited": "*blocks"}, "super().forward(x)"),
        ({"functions": "self", "base": "nn.Sequential", "inherited": "*blocks"}, "super().forward(x)"),
        # Neither of these can be called, or calls the blocks.
        ({"functions": "self.blocks", "made": "nn.ModuleList(blocks)"}, None),
        ({"functions": "list(self)", "base": "nn.ModuleList", "inherited": "blocks"}, None),
        ({"functions": "list(self.blocks)"}, None),
        ({"functions": "chosen"}, None),
    ],
)
def test_a_sequence_is_called_itself(parts: dict[str, str], call: str | None) -> None:
    usual = {"base": "nn.Module", "inherited": "", "made": "nn.Sequential(*blocks)"}
    example = read_example(SEQUENTIAL.format(**(usual | parts)))
    (draft,) = NeedlessCheckpointing().find(Context(example.profile, texts(example)))
    if call is None:
        assert not draft.fixes
    else:
        assert f"        return {call}\n" in apply(example.text, draft.fixes[0].edits)
