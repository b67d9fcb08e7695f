"""What expressions mean, however they are spelled, and what a name holds at a moment."""

from __future__ import annotations

from textwrap import dedent

import libcst as cst
import pytest

from warpline.rulekit import Source
from warpline.rulekit.terms import Flow, Term, follow

HEAD = "import math\nimport torch\nfrom torch import nn\nimport torch.nn.functional as F\n\n"


def flow_of(code: str) -> Flow:
    source = Source("/x.py", HEAD + dedent(code).lstrip("\n"))
    return follow(source, source.nodes(cst.FunctionDef)[-1])


def result_of(code: str) -> Term:
    """The term of the last return."""
    return next(step.term for step in reversed(flow_of(code).steps) if step.target is None)


@pytest.mark.parametrize(
    "spellings",
    [
        ("x.mean(-1, True)", "torch.mean(x, dim=-1, keepdim=True)", "x.mean(-1).unsqueeze(-1)"),
        ("x.mean(-1, True)", "x.mean((-1,))[..., None]"),
        ("x * x", "x ** 2", "x.pow(2)", "torch.square(x)"),
        ("x / torch.sqrt(y)", "x * y.rsqrt()", "x * y ** -0.5", "x.div(y.sqrt())"),
        ("x.transpose(-2, -1)", "x.mT", "torch.transpose(x, -1, -2)", "x.permute(0, 1, 3, 2)"),
        ("x @ y", "torch.matmul(x, y)", "x.matmul(y)", 'torch.einsum("bij,bjk->bik", x, y)'),
        ("x.softmax(-1)", "F.softmax(x, dim=-1)", "torch.softmax(x, -1)"),
        ("x.var(-1, unbiased=False)", "torch.var(x, dim=-1, correction=0)"),
        ("x * (1 / 8)", "x / 8", "x / math.sqrt(64)", "x * 64 ** -0.5"),
        ("x.shape[-1]", "x.size(-1)"),
    ],
)  # fmt: skip
def test_spellings_of_one_thing_are_one_term(spellings: tuple[str, ...]) -> None:
    lines = "".join(f"    v{index} = {spelling}\n" for index, spelling in enumerate(spellings))
    flow = flow_of(f"def f(x, y):\n{lines}")
    assert len({step.term for step in flow.steps}) == 1, [step.term for step in flow.steps]


@pytest.mark.parametrize(
    "code",
    [
        "def f(x):\n    for i in range(3):\n        x = x * 2\n    return x\n",
        "def f(x):\n    while x.sum() > 0:\n        x -= 1\n    return x\n",
        "def f(x):\n    x[0] = 1\n    return x\n",
        "def f(x):\n    x, y = g(x)\n    return x\n",
        "def f(x):\n    try:\n        x = x * 2\n    finally:\n        pass\n    return x\n",
        "def f(x):\n    with open(p) as x:\n        pass\n    return g(x)\n",
    ],
)
def test_what_cannot_be_followed_is_unknown(code: str) -> None:
    assert result_of(code).op in ("name", "call")


def test_a_branch_gives_both() -> None:
    term = result_of("def f(x, m):\n    if m is not None:\n        x = x + m\n    return x\n")
    assert term.op == "if" and [arg.op for arg in term.args] == ["is_not", "add", "name"]


def test_a_branch_that_returns_does_not_join() -> None:
    term = result_of("def f(x, m):\n    if m:\n        x = x + 1\n        return x\n    return x.exp()\n")
    assert term.op == "exp" and term.args[0].op == "name"


def test_calls_that_may_do_anything_are_never_equal() -> None:
    term = result_of("def f(x):\n    return noise(x) * noise(x)\n")
    assert term.op == "mul" and term.args[0] is not term.args[1]


def test_a_value_used_again_and_again_stays_small() -> None:
    lines = "    x = x * x + x\n" * 60
    assert result_of(f"def f(x):\n{lines}    return x\n").op == "add"


def test_modules_of_the_class_are_known() -> None:
    term = result_of("""
        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.soft = nn.Softmax(dim=-1)

            def forward(self, x):
                return self.soft(x)
        """)
    assert (term.op, term.value) == ("softmax", -1)
