"""layout-churn where convolutions between transposes are linear layers."""

from __future__ import annotations

import json

import pytest

from tests.annotated import Example, read_example, texts
from warpline.probing import questions
from warpline.rulekit import Context, Draft
from warpline.rules.layout_churn import LayoutChurn
from warpline.text.edits import apply
from warpline.wire.probing import part_from_json

SCRIPT = """\
import torch
from torch import nn

class FeedForward(nn.Module):
    def __init__(self, wide, hidden):
        super().__init__()
        self.first = {first}
        {second}

    def forward(self, x):
        {begin}
        #^ node {turn}
        y = self.first({given}).relu()
        #^ cost step_ms=8 device_ms=8 forward_ms=8; tensor %8 shape={weight} parameter=true
        #^ node aten.convolution.default args=[%0,%8,None,{stride},[0],[1],False,[0],1] shape=[32,512,64]
        #^ node {between} args=[%1] shape=[32,512,64]
        return {last}
        #^ cost step_ms=9 device_ms=9 forward_ms=9; tensor %7 shape=[128,512,1] parameter=true
        #^ node aten.convolution.default args=[%2,%7,None,[1],[0],[1],False,[0],1] shape=[32,128,64]
        #^ node aten.transpose.int args=[%3,1,2] shape=[32,64,128]

{more}
"""
PARTS = {
    "first": "nn.Conv1d(wide, hidden, 1)",
    "second": "self.second = nn.Conv1d(hidden, wide, kernel_size=(1,), stride=1)",
    "begin": "x = x.transpose(1, 2)",
    "turn": "aten.transpose.int args=[%9,1,2] shape=[32,128,64]",
    "given": "x",
    "weight": "[512,128,1]",
    "stride": "[1]",
    "between": "aten.relu.default",
    "last": "self.second(y).transpose(1, 2)",
    "more": "train(FeedForward(128, 512), nn.Conv1d(1, 8, 3))",
}


def drafts(text: str) -> tuple[Example, list[Draft]]:
    """The example that ``text`` is, and what is found in it."""
    example = read_example(text.replace(" shape=[32", " function=FeedForward.forward shape=[32"))
    return example, list(LayoutChurn().find(Context(example.profile, texts(example))))


def offered(**parts: str) -> tuple[int, str | None]:
    """How many findings there are, and the text with the edit of the first one."""
    example, found = drafts(SCRIPT.format(**PARTS | parts))
    fixes = [fix for draft in found for fix in draft.fixes]
    return len(found), apply(example.text, fixes[0].edits) if fixes else None


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {
            "begin": "x = x.permute(0, 2, 1)",
            "turn": "aten.permute.default args=[%9,[0,2,1]] shape=[32,128,64]",
            "last": "self.second(y).transpose(-1, -2)",
        },
    ],
)
def test_they_become_linear_layers(parts: dict[str, str]) -> None:
    count, new = offered(**parts)
    assert count == 1 and new is not None
    assert "self.first = nn.Linear(wide, hidden)\n        self.second = nn.Linear(hidden, wide)\n" in new
    assert new.split("def forward(self, x):\n")[1].startswith(
        "        y = self.first(x).relu()\n        return self.second(y)\n"
    )


@pytest.mark.parametrize(
    "parts",
    [
        {"weight": "[512,128,3]"},  # wider than one place
        {"stride": "[2]"},
        {"between": "aten._softmax.default"},  # works along a dimension
        {"turn": "aten.relu.default args=[%9] shape=[32,128,64]"},  # the channels are second as they come
    ],
)
def test_other_convolutions_are_not_found(parts: dict[str, str]) -> None:
    assert offered(**parts) == (0, None)


@pytest.mark.parametrize(
    "parts",
    [
        {"first": "build(wide, hidden)"},  # of another kind, perhaps
        {"first": "nn.Conv1d(wide, hidden, 1, padding_mode='circular')"},
        {"first": "nn.Conv1d(wide, hidden, width)"},
        {"last": "self.second(y).transpose(1, 2)[:, :, : y.shape[1]]"},  # sizes change places
        {"more": "model.load_state_dict(torch.load('kept.pt'))"},
        {"more": "print(model.first.weight[:, :, 0])"},
        {"more": "convolved = model.first(images)"},
        {"more": "for one in model.modules():\n    if isinstance(one, nn.Conv1d): fill(one)"},
        {"more": "model.apply(lambda one: fill(one) if 'Conv' in type(one).__name__ else None)"},
        {"last": "torch.transpose(self.second(y), 1, 2)", "begin": "x = torch.transpose(x, 1, 2)"},
    ],
)
def test_what_more_is_about_them_is_left_to_the_user(parts: dict[str, str]) -> None:
    assert offered(**parts) == (1, None)


def test_all_between_the_transposes_is_tried_as_one() -> None:
    """A convolution alone would be given, or give, another layout than among linear layers."""
    example, found = drafts(SCRIPT.format(**PARTS))
    change = found[0].change
    assert change is not None
    (question,) = questions(example.profile, change)
    now, then = (part_from_json(json.loads(text)) for text in question.options)
    names = [[name.split(".")[1] for name, *_ in part.operators] for part in (now, then)]
    assert names[0] == ["transpose", "convolution", "relu", "convolution", "transpose"]
    assert names[1] == ["squeeze", "linear", "relu", "squeeze", "linear"]
    assert now.inputs == then.inputs and now.results != then.results, "without the last transpose"
