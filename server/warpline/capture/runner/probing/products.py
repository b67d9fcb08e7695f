"""Matrix products and convolutions in another precision, size or layout."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, Iterable

import torch
import torch.nn.functional as F

from ....wire.probing import Question, Tensor, part_from_json
from .compiled import plainly, seeded, small, working
from .pair import Pair
from .tensors import leaf, made, with_gradients

#: A dtype with half the bits, for one of 64 bits a number.
SINGLE = {torch.float64: torch.float32, torch.complex128: torch.complex64}
LOWER = {"bf16": torch.bfloat16, "fp16": torch.float16}
NARROWER = {"fp32": torch.float32, **LOWER}


class _Tf32:
    """float32 products may, or may not, run in TF32 meanwhile."""

    def __init__(self, allowed: bool) -> None:
        self.allowed = allowed

    def __call__(self, function: Callable[[], Any]) -> Callable[[], Any]:
        def work() -> Any:
            torch.backends.cuda.matmul.allow_tf32 = self.allowed
            return function()

        return work


def _products(left: Any, right: Any) -> Callable[[], Any]:
    return lambda: torch.matmul(left, right)


def product(question: Question, device: str) -> Pair:
    """Two matrices or batches of them. Options: the precision to go to ("tf32", "bf16", "fp16")."""
    left, right = (made(one, device) for one in question.tensors)
    lower = LOWER.get(question.options[0])
    if lower is None:
        return Pair(
            _Tf32(False)(_products(left, right)), _Tf32(True)(_products(left, right)), tolerance=torch.float16
        )
    quick = _Tf32(False)(_products(_as(left, lower), _as(right, lower)))
    return Pair(_Tf32(False)(_products(left, right)), quick, tolerance=lower)


def padded(question: Question, device: str) -> Pair:
    """Two matrices or batches of them. Options: a size, what it is padded to, and the precision to try both
    in if that is not theirs."""
    size, wide = (int(word) for word in question.options[:2])
    lower = LOWER.get(question.options[2]) if len(question.options) > 2 else None

    def grown(one: Tensor) -> Tensor:
        return Tensor(tuple(wide if length == size else length for length in one.shape), one.dtype)

    def multiplied(tensors: Iterable[Tensor]) -> Callable[[], Any]:
        matrices = (made(one, device) for one in tensors)
        return _products(*(_as(one, lower) if lower is not None else one for one in matrices))

    return Pair(multiplied(question.tensors), multiplied(map(grown, question.tensors)), same=False)


def convolution(question: Question, device: str) -> Pair:
    """Image and weight, of one to three dimensions. Options: stride, padding and dilation ("2x2"), groups,
    and what is done: "channels_last", "benchmark" (cuDNN looks for its quickest algorithm) or a precision."""
    stride, padding, dilation = (tuple(map(int, word.split("x"))) for word in question.options[:3])
    groups, what = int(question.options[3]), question.options[4]
    function = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[len(stride)]
    image, weight = (leaf(made(one, device), question) for one in question.tensors)

    def convolve(x: Any, w: Any) -> Any:
        return function(x, w, None, stride, padding, dilation, groups)

    before = with_gradients(question, convolve, [image, weight])
    if what == "benchmark":
        # On a device that precision may be TF32, in which algorithms differ by more than float32 does.
        return Pair(_tuned(before, False), _tuned(before, True), tolerance=torch.float16)
    if what == "channels_last":
        turned = [
            leaf(one.detach().to(memory_format=torch.channels_last), question) for one in (image, weight)
        ]
        return Pair(before, with_gradients(question, convolve, turned), tolerance=torch.float16)
    lower = NARROWER[what]
    short = [leaf(_as(one.detach(), lower), question) for one in (image, weight)]
    return Pair(before, with_gradients(question, convolve, short), tolerance=lower)


def pointwise(question: Question, device: str) -> Pair:
    """Convolutions of width 1 between transposes, and linear layers without these. Tensors: what both are
    given. Options: both as JSON. Gradients come as a norm gives them, whose last dimension is contiguous."""
    now, then = (part_from_json(json.loads(text)) for text in question.options)
    inputs = [small(one, device) for one in question.tensors]
    wanted = [inputs[at].requires_grad_() for at in now.leaves] if question.backward else []
    convolved, linear = (plainly(part, inputs) for part in (now, then))
    given = [torch.ones(one.shape, dtype=one.dtype, device=device) for one in convolved(*inputs)]
    # Gradients differ by more than float32 does: rounding chooses what a ReLU lets through.
    return Pair(
        working(convolved, inputs, wanted, [], given),
        working(linear, inputs, wanted, [], given),
        same=not seeded(now),
        tolerance=torch.float16,
    )


def _tuned(work: Callable[[], Any], on: bool) -> Callable[[], Any]:
    def tuned() -> Any:
        torch.backends.cudnn.benchmark = on
        return work()

    return tuned


def _as(tensor: Any, dtype: torch.dtype) -> Any:
    """The tensor in another dtype, with the same layout."""
    return tensor.to(dtype, memory_format=torch.preserve_format)


def narrower(question: Question, device: str) -> Pair:
    """The computation in float64, and the same in float32: a product of two tensors, or a sum for one tensor.
    The option names the precision of float32 products ("tf32", "bf16", "fp16")."""
    if len(question.tensors) == 1:
        one = made(question.tensors[0], device)
        short = _as(one, SINGLE[one.dtype])
        return Pair(lambda: one + one, lambda: short + short, tolerance=torch.float32)
    left, right = (made(one, device) for one in question.tensors)
    word = question.options[0] if question.options and not left.is_complex() else ""
    dtypes = [LOWER.get(word, SINGLE[one.dtype]) for one in (left, right)]
    after = _products(*(_as(one, dtype) for one, dtype in zip((left, right), dtypes)))
    tolerance = torch.float16 if word == "tf32" else LOWER.get(word, torch.float32)
    switched = _Tf32(word == "tf32")  # for both, as switching takes the host some microseconds
    return Pair(switched(_products(left, right)), switched(after), tolerance=tolerance)


KINDS: Dict[str, Callable[[Question, str], Pair]] = {
    "product": product,
    "padded": padded,
    "convolution": convolution,
    "pointwise": pointwise,
    "narrower": narrower,
}
