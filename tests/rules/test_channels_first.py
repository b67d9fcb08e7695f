"""Convolutions on NCHW tensors on a GPU: what another layout changes where nothing was tried."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.model.change import ChannelsLast, Replace, Together
from warpline.rulekit import Context
from warpline.rules.channels_first_conv import ChannelsFirstConv
from warpline.text.edits import apply

TRAINED = """\
#> steps step_ms=20
import torch

class Spots(torch.nn.Module):
    def forward(self, slides):
        return self.spread(slides).relu()
        #^ cost step_ms=12 device_ms=12 backward_ms=2
        #^ op aten::cudnn_convolution shapes={shapes} dtypes=c10::BFloat16 device_ms=9
        #^ node aten.convolution.default args=[%20,%21] shape=[4,24,32,32] function=Spots.forward
        #^ kernel {kernel} count=20 device_ms=3

spots = Spots().cuda()
for slides, wanted in batches:
    loss = (spots(slides) - wanted).square().mean()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("kernel", ["nchwToNhwcKernel", "implicit_gemm"])
def test_norms_are_faster_whether_or_not_tensors_are_turned(kernel: str) -> None:
    example = read_example(TRAINED.format(kernel=kernel, shapes="[[4,24,32,32]] strides=[[24576,1024,32,1]]"))
    (draft,) = ChannelsFirstConv().find(Context(example.profile, texts(example)))
    assert isinstance(draft.change, Replace)
    otherwise = draft.change.otherwise
    parts = otherwise.changes if isinstance(otherwise, Together) else (otherwise,)
    assert ChannelsLast() in parts
    assert len(parts) == (1 if kernel == "nchwToNhwcKernel" else 2)


def test_a_to_of_the_script_s_own_is_not_called() -> None:
    own = """\
class Spots(torch.nn.Module):
    def to(self, device):
        self.device = device
        return super().to(device)

"""
    text = TRAINED.format(kernel="nchwToNhwcKernel", shapes="[[4,24,32,32]] strides=[[24576,1024,32,1]]")
    example = read_example(text.replace("class Spots(torch.nn.Module):\n", own))
    (draft,) = ChannelsFirstConv().find(Context(example.profile, texts(example)))
    after = apply(example.text, draft.fixes[0].edits)
    assert "\ntorch.nn.Module.to(spots, memory_format=torch.channels_last)\n" in after


def test_convolutions_over_rows_have_no_other_layout() -> None:
    """cuDNN is given planes of one row for them."""
    rows = "[[4,24,1024],[24,24,3]] strides=[[24576,1024,1]] dtypes=c10::BFloat16"
    text = TRAINED.format(
        kernel="nchwToNhwcKernel", shapes="[[4,24,1,1024],[24,24,1,3]] strides=[[24576,1024,1024,1]]"
    ).replace("        #^ node", f"        #^ op aten::convolution shapes={rows}\n        #^ node")
    example = read_example(text)
    assert not list(ChannelsFirstConv().find(Context(example.profile, texts(example))))
    planes = read_example(text.replace("[4,24,1024],[24,24,3]", "[4,24,1,1024],[24,24,1,3]"))
    assert list(ChannelsFirstConv().find(Context(planes.profile, texts(planes))))
