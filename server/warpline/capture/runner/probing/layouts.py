"""The recorded forward passes, or a part of them, on NCHW tensors, and the same in channels_last."""

from __future__ import annotations

import json
from operator import itemgetter
from typing import Any, Callable, Dict, List

import torch

from ....wire.dataflow import TENSOR
from ....wire.probing import SEARCHED, Part, Question, part_from_json
from .compiled import as_module, small, written
from .pair import Pair

#: Tensors that have an order of their channels.
_IMAGES = 4


def channels_last(question: Question, device: str) -> Pair:
    """Tensors: what the part is given; their dtypes have torch's names. Options: the part as JSON;
    ``SEARCHED`` (cuDNN looks for its quickest algorithm); "same" (it draws no random numbers). Images, and
    the weights of convolutions, come in contiguous, or in channels_last. Raises an error for an operator that
    is not torch's own."""
    part = part_from_json(json.loads(question.options[0]))
    torch.backends.cudnn.benchmark = SEARCHED in question.options
    function = as_module(part).forward
    variances = _variances(part)
    inputs = [
        small(one, device) if at not in variances else small(one, device).abs() + 1
        for at, one in enumerate(question.tensors)
    ]
    leaves = part.leaves if question.backward else ()
    changed = written(part)
    given: List[Any] = []
    before = _work(function, inputs, leaves, changed, given)
    try:
        before()
    except TypeError:  # one of torch's functions takes other arguments than the operator of its name
        function = as_module(part, plain=False).forward
        before = _work(function, inputs, leaves, changed, given)
        before()
    after = _work(
        function, [_turned(one) for one in inputs], leaves, changed, [_turned(one) for one in given]
    )
    # On a device float32 convolutions may run in TF32, in which algorithms differ by more than float32 does.
    # Gradients are not compared: rounding chooses what a ReLU lets through, and sums over a million pixels of
    # that differ by more than any rounding.
    return Pair(before, after, "same" in question.options, torch.float16, checked=itemgetter(0))


def _variances(part: Part) -> List[int]:
    """The inputs that are running variances, by position: none of their numbers is negative."""
    found = {given[4] for name, given, _ in part.operators if name == "aten.batch_norm.default"}
    return [at for at, number in enumerate(part.inputs) if TENSOR + str(number) in found]


def _turned(tensor: Any) -> Any:
    if tensor.dim() != _IMAGES:
        return tensor.detach()
    # As `model.to(memory_format=...)` does it: a depthwise weight is contiguous both ways, so `contiguous`
    # leaves it its strides, which operators take for NCHW.
    return tensor.detach().to(memory_format=torch.channels_last)


def _work(
    function: Callable[..., Any], inputs: List[Any], leaves: Any, changed: List[int], given: List[Any]
) -> Callable[[], Any]:
    """What is timed: the results, and the gradients of the inputs ``leaves`` (by position) for the gradients
    ``given`` of the results, which are drawn where there are none yet. ``changed``: inputs that get a copy of
    their own each time."""
    wanted = [inputs[at].requires_grad_() for at in leaves]

    def forward() -> Any:
        with torch.no_grad():
            return tuple(one for one in function(*inputs) if one.is_floating_point()), ()

    def both() -> Any:
        mine = [one.clone() if at in changed else one for at, one in enumerate(inputs)]
        results = [one for one in function(*mine) if one.requires_grad]
        if not given:
            given.extend(torch.randn_like(one) for one in results)
        gradients = torch.autograd.grad(results, wanted, given, allow_unused=True)
        return tuple(one.detach() for one in results), gradients

    return both if wanted else forward


KINDS: Dict[str, Callable[[Question, str], Pair]] = {"channels_last": channels_last}
