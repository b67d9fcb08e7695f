"""Convolutions of width 1 between transposes, as scripts have them: under autocast, with dropout, and with
other classes beside."""

from __future__ import annotations

import pytest

from tests.annotated import Example, read_example
from tests.rules.test_pages import found_in
from warpline.model.change import Replace
from warpline.rules.layout_churn import LayoutChurn
from warpline.text.edits import apply

LAYER = """\
class NAME(nn.Module):
    def __init__(self, wide, hidden):
        super().__init__()
        self.conv1 = nn.Conv1d(in_channels=wide, out_channels=hidden, kernel_size=1)
        self.conv2 = nn.Conv1d(in_channels=hidden, out_channels=wide, kernel_size=1)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
"""
FIRST = """\
        y = self.dropout(self.conv1(x.transpose(-1, 1)).relu())
        #^ cost step_ms=8 device_ms=8 forward_ms=8; tensor %98 shape=[512,128,1] parameter=true
        #^ node aten.transpose.int args=[%99,-1,1] shape=[32,128,64] function=NAME.forward
        #^ node aten._to_copy.default args=[%0,'{"dtype":"bfloat16"}'] shape=[32,128,64] dtype=bfloat16
        #^ node aten._to_copy.default args=[%98,'{"dtype":"bfloat16"}'] shape=[512,128,1] dtype=bfloat16
        #^ node aten.convolution.default args=[%1,%2,None,[1],[0],[1],False,[0],1] shape=[32,512,64]
        #^ node aten.relu.default args=[%3] shape=[32,512,64] function=NAME.forward
        #^ node aten.dropout.default args=[%4,0.1,True] shape=[32,512,64] function=NAME.forward
"""
SECOND = """\
        y = self.dropout(self.conv2(y).transpose(-1, 1))
        #^ found; cost step_ms=9 device_ms=9 forward_ms=9; tensor %97 shape=[128,512,1] parameter=true
        #^ node aten._to_copy.default args=[%97,'{"dtype":"bfloat16"}'] shape=[128,512,1] dtype=bfloat16
        #^ node aten.convolution.default args=[%5,%6,None,[1],[0],[1],False,[0],1] shape=[32,128,64]
        #^ node aten.transpose.int args=[%7,-1,1] shape=[32,64,128] function=NAME.forward
        #^ node aten.dropout.default args=[%8,0.1,True] shape=[32,64,128] function=NAME.forward
        return x + y
        #^ node aten.add.Tensor args=[%99,%9] shape=[32,64,128] function=NAME.forward
"""
HEAD = "import torch\nfrom torch import nn\n\n"
OTHER = LAYER.replace("NAME", "Decoder") + "        return self.conv2(self.conv1(x.transpose(-1, 1)))\n\n"
EMBEDDING = """\
class Embedding(nn.Module):
    def __init__(self, given, wide):
        super().__init__()
        self.conv = MADE
        for m in self.modules():
            if isinstance(m, nn.Conv1d):
                nn.init.kaiming_normal_(m.weight)

"""
CONVOLUTION = EMBEDDING.replace("MADE", "nn.Conv1d(given, wide, kernel_size=3)")
GIVEN = EMBEDDING.replace("MADE", "given")


def example(*before: str) -> Example:
    code = HEAD + "".join(before) + (LAYER + FIRST + SECOND).replace("NAME", "Encoder")
    for function in ("_to_copy", "convolution"):  # the function of each operator
        code = code.replace(
            f"node aten.{function}.default", f"node aten.{function}.default function=Encoder.forward"
        )
    return read_example(code)


def test_casts_of_autocast_and_dropouts_are_between_them() -> None:
    (draft,) = found_in(LayoutChurn(), example())
    assert isinstance(draft.change, Replace)
    names = example().profile.facts.dataflow
    tried = [names.names[names.name[int(one)]] for one in draft.change.options]
    assert tried == [
        "aten.transpose.int",
        "aten._to_copy.default",
        "aten.convolution.default",
        "aten.relu.default",
        "aten.dropout.default",
        "aten.convolution.default",
        "aten.transpose.int",
        "aten.dropout.default",
        "aten.add.Tensor",
    ], "and what reads the result"


@pytest.mark.parametrize("before", ["", OTHER, CONVOLUTION], ids=["alone", "another class", "own layers"])
def test_the_edit_leaves_other_classes_alone(before: str) -> None:
    one = example(before)
    (draft,) = found_in(LayoutChurn(), one)
    text = apply(one.text, draft.fixes[0].edits)
    assert before in text
    assert text.endswith(
        """\
        self.conv1 = nn.Linear(wide, hidden)
        self.conv2 = nn.Linear(hidden, wide)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        y = self.dropout(self.conv1(x).relu())
        y = self.dropout(self.conv2(y))
        return x + y
"""
    )


def test_a_class_that_looks_at_layers_it_is_given_may_look_at_these() -> None:
    (draft,) = found_in(LayoutChurn(), example(GIVEN))
    assert not draft.fixes


def test_a_relative_may_use_its_layers() -> None:
    base = OTHER.replace("(nn.Module)", "(Encoder)")
    (draft,) = found_in(LayoutChurn(), example(base))
    assert not draft.fixes
