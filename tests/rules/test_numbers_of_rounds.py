"""python-loop-over-tensor where an iteration only reads the number that is its piece."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.rulekit import Context
from warpline.rules.python_loop_over_tensor import PythonLoopOverTensor
from warpline.text.edits import apply

SCRIPT = """\
import torch

def neighbours(graph, nodes, seeds):
    {made}
    {loop}
    #^ cost step_ms=9 calls=1 idle_ms=9 cpu_ms=9; tensor %9 shape={shape} dtype=int64
    #^ op aten::unbind count=1 shapes=[{shape}] cpu_ms=0.5; op aten::item count=64 shapes=[[]] cpu_ms=5
    #^ node aten.unbind.int args=[%9,0]
    return found
"""


def edited(loop: str, made: str = "pass", shape: str = "[64]") -> str | None:
    example = read_example(SCRIPT.format(loop=loop, made=made, shape=shape))
    drafts = PythonLoopOverTensor().find(Context(example.profile, texts(example)))
    fixes = [fix for draft in drafts for fix in draft.fixes if fix.applicability == "safe"]
    return apply(example.text, fixes[0].edits).splitlines()[4].strip() if fixes else None


@pytest.mark.parametrize(
    ("loop", "new"),
    [
        (
            "found = [graph[int(node)] for node in nodes]",
            "found = [graph[int(node)] for node in (nodes.tolist() if torch.is_tensor(nodes) else nodes)]",
        ),
        (
            "found = {n.item(): i for i, n in enumerate(nodes)}",
            "found = {n: i for i, n in enumerate((nodes.tolist() if torch.is_tensor(nodes) else nodes))}",
        ),
    ],
)
def test_an_argument_may_be_a_list_elsewhere(loop: str, new: str | None) -> None:
    assert edited(loop) == new


def test_what_torch_makes_is_a_tensor() -> None:
    new = edited("found = [graph[int(one)] for one in rows]", made="rows = torch.unique(seeds)")
    assert new == "found = [graph[int(one)] for one in rows.tolist()]"


@pytest.mark.parametrize(
    ("loop", "shape"),
    [
        ("found = [graph[int(node)] for node in nodes]", "[64,2]"),  # its pieces are no numbers
        ("found = [graph[node] for node in nodes]", "[64]"),  # a tensor may be looked up otherwise
        ("found = [int(node * 3) for node in nodes]", "[64]"),  # computed in the tensor's type
        ("found = [int(node) for node in nodes if graph.has(node)]", "[64]"),
        ("found = [int(graph) for node in nodes]", "[64]"),
    ],
)
def test_what_is_more_than_a_number_is_left(loop: str, shape: str) -> None:
    assert edited(loop, shape=shape) is None
