"""Attention whose scores are masked in place, by a triangle's indices or a function of the script's."""

from __future__ import annotations

from typing import Any

import libcst as cst
import pytest
import torch

from tests.annotated import read_example, texts
from warpline.rulekit import Context, Draft
from warpline.rulekit.terms import follow
from warpline.rules.hand_written_attention import HandWrittenAttention
from warpline.syntax.source import Source
from warpline.text.edits import apply

CODE = """\
import torch
import torch.nn.functional as F

def hide(table, low=0.0, own=True):
    rows, columns = table.size(-2), table.size(-1)
    at = torch.triu_indices(rows, columns, offset=0 if own else 1)
    table[..., at[0], at[1]] = low

def shown(table):
    print(table.shape)

def noted(table, notes):
    table[..., 0] = -1e9
    notes["hidden"] = True

def mix(q, k, v, late):
    v = v + 1
    v = v * 2
    scores = torch.matmul(q, k.transpose(-2, -1)) * 0.3  #> cost step_ms=9 device_ms=9
    assert scores.size(-1) == k.size(-2)
    {condition}
        {masked}
    weights = scores.softmax(-1)  #> cost step_ms=9 device_ms=9
    {record}
    return torch.matmul(weights, v)  #> cost step_ms=9 device_ms=9
"""
SET = "at = torch.triu_indices(5, 5, offset=1); scores[..., at[0], at[1]] = -1e9"
COUNTED = "rows, columns = torch.triu_indices(5, 5, 1); scores[:, :, rows, columns] = float('-inf')"
RECORD = "#^ node aten._softmax.default function=mix args=[%9,-1,False] shape=[2,3,5,5]"


def found(masked: str, condition: str = "if late:", record: str = RECORD) -> tuple[str, list[Draft]]:
    masked = masked.replace("; ", "\n        ")
    example = read_example(CODE.format(masked=masked, condition=condition, record=record))
    return example.text, list(HandWrittenAttention().find(Context(example.profile, texts(example))))


@pytest.mark.parametrize(
    ("masked", "condition"),
    [
        ("hide(scores, float('-inf'), own=False)", "if late:"),
        ("hide(scores, -1e9, False)", "if True:"),
        (SET, "if late:"),
        (COUNTED, "if q.shape[0] > 1:"),
    ],
)
@pytest.mark.parametrize("late", [True, False])
def test_a_triangle_is_passed_as_causal_where_the_condition_holds(
    masked: str, condition: str, late: bool
) -> None:
    text, (draft,) = found(masked, condition)
    after = apply(text, draft.fixes[0].edits)
    body = after[after.index("def mix") :]
    assert "is_causal=bool(" in body
    assert not any(word in body for word in ("hide", "scores", "weights", "assert"))
    torch.manual_seed(0)
    given = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 5, 8), torch.randn(2, 3, 5, 8), late
    results = []
    for code in (text, after):
        names: dict[str, Any] = {}
        exec(code, names)
        results.append(names["mix"](*given))
    torch.testing.assert_close(*results)


@pytest.mark.parametrize(
    ("masked", "record"),
    [
        ("hide(scores, float('-inf'))", RECORD),  # its own entry is hidden, too
        ("hide(scores, 0.0, own=False)", RECORD),  # a zero is not gone
        ("shown(scores); hide(scores, -1e9, own=False)", RECORD),  # what else reads the scores
        ("other.hide_(scores)", RECORD),
        ("noted(scores, late); hide(scores, -1e9, own=False)", RECORD),
        (COUNTED, RECORD.replace("[2,3,5,5]", "[7,2,3,5,5]")),  # the triangle is of other dimensions
        (COUNTED, ""),
        (COUNTED.replace("rows, columns]", "columns, rows]"), RECORD),
    ],
)
def test_other_changes_of_the_scores_stay(masked: str, record: str) -> None:
    assert not any(draft.fixes for draft in found(masked, record=record)[1])


def test_a_function_of_another_file_is_read_there() -> None:
    other = Source("masks.py", "import torch\n" + CODE[CODE.index("def hide") : CODE.index("def shown")])
    text = "from .masks import hide\ndef mix(scores):\n    hide(scores, -1e9, False)\n    return scores\n"
    source = Source("train.py", text.replace("def", "import torch\ndef"))
    (function,) = source.nodes(cst.FunctionDef)
    assert follow(source, function, beside=(other,)).steps[-1].term.op == "masked_fill"
    assert follow(source, function).steps[-1].term.op != "masked_fill"
