"""Edits are the smallest plain ranges, keep formatting and comments, and are refused when doubtful."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from warpline.rulekit import Edits, Refused, Source
from warpline.text.edits import apply

Change = Callable[[Source, Edits], None]


def changed(text: str, change: Change) -> str:
    source = Source("a.py", text)
    edits = Edits(source)
    change(source, edits)
    return apply(text, edits.fix("x", "safe").edits)


def first_call(source: Source, name: str) -> cst.Call:
    return next(call for call in source.nodes(cst.Call) if source.is_named(call.func, name))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f()\n", "f(n=2)\n"),
        ("f(a)\n", "f(a, n=2)\n"),
        ("f(a,)\n", "f(a, n=2)\n"),
        ("f( a )  # why\n", "f( a, n=2 )  # why\n"),
        ("f(a, n=0, b=1)\n", "f(a, n=2, b=1)\n"),
        ("f(\n    a,  # first\n    b=1,\n)\n", "f(\n    a,  # first\n    b=1,\n    n=2,\n)\n"),
        ("f(\n    a,\n    b=1,  # last\n)\n", "f(\n    a,\n    b=1,  # last\n    n=2,\n)\n"),
        ("f(\n    a,\n    b=1  # last\n)\n", "f(\n    a,\n    b=1,  # last\n    n=2\n)\n"),
        ("f(\r\n    a,\r\n)\r\n", "f(\r\n    a,\r\n    n=2,\r\n)\r\n"),
        ("x = 'é𝔘'; f('𝔘')\n", "x = 'é𝔘'; f('𝔘', n=2)\n"),
        ("f(a,\n  b)\n", "f(a,\n  b, n=2)\n"),
    ],
)
def test_set_argument(before: str, after: str) -> None:
    assert (
        changed(before, lambda source, edits: edits.set_argument(first_call(source, "f"), "n", "2")) == after
    )


@pytest.mark.parametrize("text", ["f(**kw)\n", "f(*a)\n", "f(x for x in y)\n"])
def test_argument_that_might_be_there_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        changed(text, lambda source, edits: edits.set_argument(first_call(source, "f"), "n", "2"))


@pytest.mark.parametrize(
    ("before", "after"),
    [("f(a, n=1)\n", "f(a)\n"), ("f(n=1, b=2)\n", "f(b=2)\n"), ("f(n=1)\n", "f()\n")],
)
def test_remove_argument(before: str, after: str) -> None:
    assert changed(before, lambda source, edits: edits.remove_argument(first_call(source, "f"), "n")) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a()\nf()\nb()\n", "a()\nb()\n"),
        ("if x:\n    f()\nb()\n", "if x:\n    pass\nb()\n"),
        ("a()\nf()  # of f\nb()\n", "a()\nb()\n"),
        ("if x:  # kept\n    f()  # of f\nb()\n", "if x:  # kept\n    pass\nb()\n"),
        ("a()\nif x:\n    f()  # of f\nb()\n", "a()\nif x:\n    pass\nb()\n"),
        ("a()\nf()  # of f", "a()\n"),
        ("a()\n# above\nf()\n", "a()\n# above\n"),
        ("a()\r\nf()\r\nb()\r\n", "a()\r\nb()\r\n"),
        ("a()\nf()", "a()\n"),
    ],
)
def test_remove_statement(before: str, after: str) -> None:
    def remove(source: Source, edits: Edits) -> None:
        statement = source.statement(first_call(source, "f"))
        assert statement is not None
        edits.remove(statement)

    assert changed(before, remove) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("class A:\n    a = 1\n\n    def f(self):\n        return 1\n\n    def g(self):\n        pass\n",
         "class A:\n    a = 1\n\n    def g(self):\n        pass\n"),
        ("class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        pass\n",
         "class A:\n    def g(self):\n        pass\n"),
        ("class A:\n    a = 1\n\n    def f(self):\n        return 1\n\n\nb()\n",
         "class A:\n    a = 1\n\n\nb()\n"),
        ("a()\n\n\ndef f():\n    return 1\n", "a()\n"),
        ("a()\n\n\ndef f():\n    return 1", "a()\n"),
        ("import b\r\n\r\n\r\ndef f():\r\n    return 1\r\n\r\n\r\nb.a()\r\n",
         "import b\r\n\r\n\r\nb.a()\r\n"),
    ],
)  # fmt: skip
def test_remove_function(before: str, after: str) -> None:
    assert changed(before, remove_function) == after


@pytest.mark.parametrize(
    "text", ["a()\n# why\ndef f():\n    pass\n", "class A:\n    def f(self):\n        pass\n"]
)
def test_a_function_that_is_not_removed(text: str) -> None:
    with pytest.raises(Refused, match="would have to go"):
        changed(text, remove_function)


def remove_function(source: Source, edits: Edits) -> None:
    edits.remove_function(next(one for one in source.nodes(cst.FunctionDef) if one.name.value == "f"))


def test_a_statement_behind_its_if_is_none_of_its_own() -> None:
    source = Source("a.py", "if x: f()\n")
    assert source.statement(first_call(source, "f")) is None


@pytest.mark.parametrize("text", ["a(); f()\n", "f(); a()\n"])
def test_a_statement_that_shares_its_line_is_refused(text: str) -> None:
    source = Source("a.py", text)
    statement = source.statement(first_call(source, "f"))
    assert statement is not None
    with pytest.raises(Refused):
        Edits(source).remove(statement)


def test_wrap_indents_code_and_leaves_strings_and_comments_alone() -> None:
    before = "def g():\n    # about f\n    f('''a\nb''',\n      1)\n\n    h()\n    z()\n"
    after = (
        "def g():\n    # about f\n    with x:\n        f('''a\nb''',\n          1)\n\n        h()\n    z()\n"
    )

    def wrap(source: Source, edits: Edits) -> None:
        block = source.block(first_call(source, "f"))
        edits.wrap(block[:2], "with x:")

    assert changed(before, wrap) == after


@pytest.mark.parametrize(
    ("before", "written", "after"),
    [
        ("import torch\nx\n", "torch.nn.functional.gelu", "import torch\nx\n"),
        ("import torch.nn.functional as F\nx\n", "F.gelu", "import torch.nn.functional as F\nx\n"),
        ("from torch.nn import functional\nx\n", "functional.gelu", "from torch.nn import functional\nx\n"),
        ('"""Doc."""\nx\n', "F.gelu", '"""Doc."""\nimport torch.nn.functional as F\nx\n'),
        ("x\n", "F.gelu", "import torch.nn.functional as F\nx\n"),
        (
            "from __future__ import annotations\nimport os  # kept\n\nx\n",
            "F.gelu",
            "from __future__ import annotations\nimport os  # kept\nimport torch.nn.functional as F\n\nx\n",
        ),
        (
            "import os\ndef f():\n    import torch\nx\n",
            "F.gelu",
            "import os\nimport torch.nn.functional as F\ndef f():\n    import torch\nx\n",
        ),
    ],
)
def test_add_import(before: str, written: str, after: str) -> None:
    def add(source: Source, edits: Edits) -> None:
        for _ in range(2):
            assert edits.add_import("torch.nn.functional.gelu", "import torch.nn.functional as F") == written
        edits.replace(source.nodes(cst.Name)[-1], "y")

    assert changed(before, add) == after.removesuffix("x\n") + "y\n"


@pytest.mark.parametrize(
    "text",
    [
        "from torch import nn\n",
        "import torch.nn as nn\n",
        "from torch.nn import Linear\nnumbers(torch=kit.torch)\n",
    ],
)
def test_a_name_in_an_import_or_of_an_attribute_is_not_taken(text: str) -> None:
    edits = Edits(Source("a.py", text))
    assert edits.add_import("torch.channels_last", "import torch") == "torch.channels_last"


@pytest.mark.parametrize("text", ["from torch import nn\n\n\ndef f(torch): ...\n", "from lib import torch\n"])
def test_a_name_that_the_file_gives_something_else_is_taken(text: str) -> None:
    with pytest.raises(Refused):
        Edits(Source("a.py", text)).add_import("torch.channels_last", "import torch")


def test_import_of_a_name_that_is_taken_is_refused() -> None:
    source = Source("a.py", "import os\nF = 3\n")
    with pytest.raises(Refused):
        Edits(source).add_import("torch.nn.functional.gelu", "import torch.nn.functional as F")


def test_edits_are_as_small_as_can_be() -> None:
    source = Source("a.py", "x = alpha(beta, gamma)\n")
    edits = Edits(source)
    edits.replace(first_call(source, "alpha"), "alpha(beta, delta)")
    (edit,) = edits.fix("x", "safe").edits
    assert (edit.start, edit.end, edit.text) == ((1, 16), (1, 20), "delt")


def test_what_changes_nothing_or_does_not_parse_is_refused() -> None:
    source = Source("a.py", "x = f(1)\n")
    same = Edits(source)
    same.replace(first_call(source, "f"), "f(1)")
    with pytest.raises(Refused, match="already"):
        same.fix("x", "safe")
    broken = Edits(source)
    broken.replace(first_call(source, "f"), "f(")
    with pytest.raises(Refused, match="valid"):
        broken.fix("x", "safe")


def test_overlapping_edits_are_refused() -> None:
    source = Source("a.py", "x = f(g(1))\n")
    edits = Edits(source)
    edits.replace(first_call(source, "f"), "h(2, 3)")
    edits.replace(first_call(source, "g"), "k(4)")
    with pytest.raises(Refused):
        edits.fix("x", "safe")
