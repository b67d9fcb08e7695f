"""Names that stand for each other, functions that call themselves and long chains: what follows them ends."""

from __future__ import annotations

import re

import libcst as cst
import pytest

from tests.annotated import read_example, texts
from tests.rulekit.graph.recording import recorded
from tests.rules.test_pages import examples
from warpline.rulekit import Context, Rule
from warpline.rulekit.chosen_numbers import _is_number
from warpline.rulekit.constants import _is_several
from warpline.rulekit.formulas.activation import activation
from warpline.rulekit.formulas.attention import attention
from warpline.rulekit.formulas.loss import loss
from warpline.rulekit.formulas.norm import norm
from warpline.rulekit.graph.copies import _cast_readers
from warpline.rulekit.kept_reads import _Reads as _KeptReads
from warpline.rulekit.same_samples import _is_only_read, _is_same, _Reads
from warpline.rulekit.terms import follow
from warpline.rules import rules
from warpline.syntax.source import Source

torch = pytest.importorskip("torch")

LONG = 5000
_GIVEN = re.compile(r"( *)(\w+) = .*[^(\[{,]$")
_HEAD = re.compile(r"( *)def \w+\((?:self, )?(\w+).*\):$|( *)for (\w+) in .*:$")


def circled(code: str) -> str:
    """The annotated code, in which each name is given what is made of itself, too."""
    lines: list[str] = []
    waiting: list[str] = []
    for line in [*code.splitlines(), ""]:
        if not line.lstrip().startswith("#^"):  # what is said about a line comes right below it
            lines, waiting = lines + waiting, []
        lines.append(line)
        text = re.sub(r"  #>.*", "", line)
        given, head = _GIVEN.fullmatch(text), _HEAD.fullmatch(text)
        if given or head:
            before, name = given.groups() if given else [one for one in head.groups() if one is not None]
            at = before if given else f"{before}    "
            waiting = [
                at + one.format(name)
                for one in (
                    "{0} = {0}[0]",
                    "other = {0}.get(0)",
                    "{0} = made(other)",
                    "{0}, other = other, {0}",
                )
            ]
    return "\n".join([*lines, *waiting]) + "\n"


@pytest.mark.parametrize("rule", [pytest.param(rule, id=rule.name) for rule in rules()])
def test_names_that_are_made_of_themselves(rule: Rule) -> None:
    for code, _ in examples(rule.page):
        example = read_example(circled(code))
        list(rule.find(Context(example.profile, texts(example))))


def value_of(source: Source, name: str) -> cst.BaseExpression:
    return source.assigned(name)[-1]


@pytest.mark.parametrize("text", ["A = -A", "A = B\nB = A", "A = -B\nB = -A"])
def test_constants_that_are_each_other(text: str) -> None:
    source = Source("f.py", text)
    assert not _is_number(source, value_of(source, "A"))
    context = Context(read_example(text).profile, lambda _: text)
    assert _is_same(context, source, value_of(source, "A"), frozenset(), _Reads())


@pytest.mark.parametrize(
    "text",
    [
        "def encode(self, x):\n    return self.net.encode(x)\ny = encode(x)",
        "def f(x):\n    return g(x)\ndef g(x):\n    return f(x)\ny = f(x)",
        "def f(x):\n    y = f(x)\n    return y\ny = f(x)",
    ],
)
def test_functions_that_return_themselves(text: str) -> None:
    source = Source("f.py", text)
    assert _is_several(source, value_of(source, "y"))


LOOPED = "def f():\n    while True:\n        a = b[0]\n        b = a[0]\n"


def test_parts_of_each_other() -> None:
    source = Source("f.py", LOOPED)
    first, second = (source.nodes(cst.Subscript)[at].value for at in (0, 1))
    kept = _KeptReads(Context(read_example(LOOPED).profile, lambda _: LOOPED), None)
    assert kept.are_few([(source, second)])
    assert isinstance(first, cst.Name) and _is_only_read(source, first)


def test_a_long_chain_of_entries() -> None:
    source = Source("f.py", "def f(x):\n" + "    x = x[0]\n" * LONG)
    kept = _KeptReads(Context(read_example(LOOPED).profile, lambda _: LOOPED), None)
    assert kept.are_few([(source, source.nodes(cst.Subscript)[0].value)])


@pytest.mark.parametrize(
    "step", ["x = -x", "x = x * y", "x = x + 1", "x = torch.exp(x)", "x = x[0]", "x = y = x"]
)
def test_a_long_chain(step: str) -> None:
    body = "\n".join(f"    {step}" for _ in range(LONG))
    source = Source("f.py", f"import torch\ndef f(x, y):\n{body}\n    return x\n")
    terms = dict.fromkeys(follow(source, source.functions("f")[0]).terms.values())
    for match in (loss, activation, norm, attention):
        assert not [
            term for term in [*terms][-50:] if match(term) is not None and term.op in ("name", "call")
        ]


def in_circles() -> object:
    with torch.inference_mode():
        x = torch.randn(4, 64)
        y = x.view(4, 64, 1).view(4, 64).to(torch.float32).to(x.dtype)
        return y.half().to(torch.float16).sum() + x.sum()


def test_views_and_casts_that_lead_back() -> None:
    graph = recorded(in_circles)
    for value in list(graph.consumers):
        list(_cast_readers(graph, value))
        list(graph.uses(value))
