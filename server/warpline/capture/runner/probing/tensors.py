"""Random tensors as they were recorded, and computations with the gradients of their inputs."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import torch

from ....wire.probing import Question, Tensor

DTYPES = {
    "float": torch.float32,
    "double": torch.float64,
    "c10::Half": torch.float16,
    "c10::BFloat16": torch.bfloat16,
    "c10::complex<float>": torch.complex64,
    "c10::complex<double>": torch.complex128,
}


def made(tensor: Tensor, device: str) -> Any:
    """Normal numbers of that shape, dtype and layout. Raises KeyError for a dtype that is no float's."""
    return laid(torch.randn(tensor.shape, device=device, dtype=torch.float32), tensor)


def laid(values: Any, tensor: Tensor) -> Any:
    """``values`` in the dtype and layout of ``tensor``."""
    return strided(values.to(DTYPES[tensor.dtype]), tensor)


def strided(values: Any, tensor: Tensor) -> Any:
    """``values`` in the layout of ``tensor``."""
    if not tensor.strides or len(tensor.strides) != len(tensor.shape):
        return values
    # A stride of zero repeats numbers: those are stored once.
    stored = [1 if stride == 0 else size for size, stride in zip(tensor.shape, tensor.strides)]
    kept = torch.empty_strided(stored, tensor.strides, dtype=values.dtype, device=values.device)
    kept.copy_(values[tuple(slice(0, size) for size in stored)])
    return kept.expand(tensor.shape)


def with_gradients(
    question: Question, function: Callable[..., Any], inputs: Sequence[Any]
) -> Callable[[], Any]:
    """``function(*inputs)``, and where the question has a backward the gradients of the inputs as well."""
    if not question.backward:

        def forward() -> Any:
            with torch.no_grad():
                return function(*inputs)

        return forward
    leaves = [one for one in inputs if one.is_floating_point() and one.requires_grad]
    given: list[Any] = []

    def both() -> Any:
        result = function(*inputs)
        if not given:
            generator = torch.Generator(result.device)
            generator.manual_seed(1)
            given.append(
                torch.randn(result.shape, generator=generator, device=result.device).to(result.dtype)
            )
        return (result.detach(), *torch.autograd.grad(result, leaves, given[0]))

    return both


def leaf(tensor: Any, question: Question) -> Any:
    """``tensor`` with ``requires_grad``, if there is a backward pass."""
    return tensor.detach().requires_grad_(question.backward)
