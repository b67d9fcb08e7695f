"""Finding nodes by line, resolving names through imports, and files that cannot be worked on."""

from __future__ import annotations

import libcst as cst
import pytest

from warpline.syntax.source import NOT_LITERAL, Source, Unreadable, children, parsed

TEXT = """\
import torch.nn.functional as F
from torch.utils.data import DataLoader as Loader


def run(model, data):
    for step, batch in enumerate(data):
        out = model(
            F.relu(batch),
        )
        if out.sum() > 0:
            print(out.mean().item())
    return Loader(data, batch_size=2 * 4, shuffle=True)
"""


def test_calls_of_a_line() -> None:
    source = Source("a.py", TEXT)
    assert [source.code(call.func) for call in source.calls(8)] == ["F.relu", "model"]
    assert source.code(source.calls(7)[0].func) == "model"
    found = source.call(11, "item")
    assert found is not None and source.code(found) == "out.mean().item()"
    loader = source.call(12, "torch.utils.data.DataLoader")
    assert loader is not None and source.call(12, "DataLoader") is loader
    assert source.call(12, "Sampler") is None


def test_names_are_resolved_through_imports() -> None:
    source = Source("a.py", TEXT)
    relu = source.call(8, "torch.nn.functional.relu")
    assert relu is not None and source.name(relu.func) == "torch.nn.functional.relu"


def test_statements_blocks_and_loops() -> None:
    source = Source("a.py", TEXT)
    printed = source.statement_at(11)
    assert printed is not None and source.code(printed).startswith("print")
    assert [source.line(loop) for loop in source.loops(printed)] == [6]
    assert [source.line(entry) for entry in source.block(source.statement_at(8) or printed)] == [7, 10]
    function = source.enclosing(printed, cst.FunctionDef)
    assert function is not None and function.name.value == "run"


def test_literals_and_arguments() -> None:
    source = Source("a.py", TEXT)
    loader = source.call(12, "DataLoader")
    assert loader is not None
    shuffle, size = source.argument(loader, "shuffle"), source.argument(loader, "batch_size")
    assert shuffle is not None and source.literal(shuffle.value) is True
    assert size is not None and source.literal(size.value) is NOT_LITERAL
    first = source.argument(loader, "dataset", 0)
    assert first is not None and source.code(first.value) == "data"
    assert source.argument(loader, "sampler", 3) is None


@pytest.mark.parametrize("text", ["def f(:\n", "x = 1\n\x0cy = 2\n"])
def test_what_cannot_be_edited_exactly_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        Source("a.py", text)


def test_a_text_is_parsed_once() -> None:
    assert parsed("a.py", "x = 1\n") is parsed("a.py", "x = 1\n")
    assert parsed("a.py", "x = 1\n") is not parsed("a.py", "x = 2\n")
    assert parsed("b.py", "x = 1\n").path == "b.py"


EVERYTHING = """\
@decorated
async def f(a: int = 1, *args, b, **kw) -> int:
    x = a if b else c
    async with z as q, r as s:
        assert a, b
    try:
        del a
    except (A, B) as e:
        raise X from y
    match a:
        case [1, *r] if r:
            return {**a, "b": 1, **{k: v for k, v in c if d}}, [*a, *b]
        case P(x=1, y=2) | Q():
            await g(*a, k=1, **b)
    print(f"{a!r:>{w}} {b=}", lambda q, *r, s=1, **t: q[1:2:3, ..., a])
    a: int = -1; a += 1; a = b = c < d <= e; (n := not a)
class A(B, metaclass=C):
    pass
"""


def test_children_come_in_the_order_of_the_text() -> None:
    parts = (cst.BaseExpression, cst.BaseSmallStatement, cst.BaseStatement, cst.BaseSuite, cst.Arg, cst.Param)
    waiting: list[cst.CSTNode] = [cst.parse_module(EVERYTHING)]
    while waiting:
        node = waiting.pop()
        ours = [child for child in children(node) if isinstance(child, parts)]
        assert ours == [child for child in node.children if isinstance(child, parts)]
        waiting += children(node)
