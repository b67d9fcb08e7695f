"""Kernels that the user wrote, and so can change: Triton functions with the places that launch them, and CUDA
in Python files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import libcst as cst

from warpline.model.kernel_name import readable
from warpline.model.profile import Kernel, LineCost
from warpline.rulekit.context import Context
from warpline.rulekit.terms import descend
from warpline.syntax.source import Source
from warpline.wire.sites import Triton, facts_of


@dataclass(frozen=True)
class TritonKernel:
    """``launch`` is the call on the hot line, where it could be found; ``numbers``: what the run recorded for
    the parameters that were given whole numbers."""

    source: Source
    function: cst.FunctionDef
    cost: LineCost
    kernel: Kernel
    launch: tuple[Source, cst.Call] | None
    numbers: Mapping[str, int]

    @property
    def parameters(self) -> list[str]:
        """The names of the kernel's parameters, in order."""
        return [param.name.value for param in self.function.params.params]

    def passed(self, parameter: str) -> cst.BaseExpression | None:
        """What the launch passes for ``parameter``."""
        if self.launch is None or parameter not in self.parameters:
            return None
        call = self.launch[1]
        by_name = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
        named = [name for name in self.parameters if name not in by_name]
        placed = [arg for arg in call.args if arg.keyword is None and arg.star != "**"]
        stars = [at for at, arg in enumerate(placed) if arg.star]
        first, last = placed[: stars[0] if stars else None], placed[stars[-1] + 1 :] if stars else []
        if self._may_leave_out(named):
            last = []
        # `*planes` stands for as many as there are parameters left.
        given = dict(zip(named, (arg.value for arg in first), strict=False))
        given |= dict(zip(named[::-1], (arg.value for arg in last[::-1]), strict=False))
        return (given | by_name).get(parameter)

    def _may_leave_out(self, names: list[str]) -> bool:
        """Whether a launch need not pass each of these parameters: they have defaults, or are tuned."""
        params = (param for param in self.function.params.params if param.name.value in names)
        tuned = (self.source.code(one) for one in self.function.decorators)
        return any("autotune" in one or "heuristics" in one for one in tuned) or any(
            param.default is not None for param in params
        )


def triton_kernels(context: Context) -> Iterator[TritonKernel]:
    """The kernels of the profile that a ``@triton.jit`` function of the user's makes."""
    for cost in context.profile.lines:
        # Forward and backward launches of one kernel at one line are one finding.
        for name in dict.fromkeys(kernel.name for kernel in cost.kernels if kernel.name.isidentifier()):
            same = [kernel for kernel in cost.kernels if kernel.name == name]
            found = definition(context, name)
            if found is not None:
                whole = replace(same[0], device_ms=sum(kernel.device_ms for kernel in same))
                own = found[1].name.value
                numbers = _numbers(context, cost, own)
                yield TritonKernel(*found, cost, whole, _launch(context, cost, own), numbers)


def definition(context: Context, name: str) -> tuple[Source, cst.FunctionDef] | None:
    """The user's ``@triton.jit`` function that makes kernels called ``name``."""
    for file in dict.fromkeys([*context.profile.sources, *(cost.file for cost in context.profile.lines)]):
        text = context.text(file)
        if text is None or "triton" not in text:
            continue
        # Older versions end the kernel's name with a signature: `add_kernel_0d1d2d`.
        wanted = [found for found in _functions(text) if name == found or name.startswith(f"{found}_0d")]
        source = context.source(file if wanted else "")
        for function in source.nodes(cst.FunctionDef):
            if function.name.value in wanted and source.decorated(function, "triton.jit"):
                return source, function
    return None


@lru_cache(maxsize=64)
def _functions(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"^\s*def\s+(\w+)\s*\(", text, re.MULTILINE))


def _numbers(context: Context, cost: LineCost, name: str) -> Mapping[str, int]:
    launches = (facts_of(Triton, site) for site in context.sites("triton") if site.place == cost.place)
    return next((launch.numbers for launch in launches if launch.kernel == name and launch.numbers), {})


def _launch(context: Context, cost: LineCost, name: str) -> tuple[Source, cst.Call] | None:
    source = context.source(cost.file)
    statement = source.statement_at(cost.line)
    for call in descend(statement, cst.Call) if statement is not None else ():
        if isinstance(call.func, cst.Subscript) and source.is_named(call.func.value, name):
            return source, call
    return None


def is_own(context: Context, kernel: Kernel) -> bool:
    """Whether the text of one of the user's files defines ``kernel``. cuBLAS's, torch's and other
    packages' kernels are as they are: of those only the sizes they are given can be changed."""
    if kernel.kind != "kernel":
        return False
    name = readable(kernel.name).partition("<")[0]
    if kernel.name.isidentifier() and definition(context, name) is not None:
        return True
    return any(name in _in_cuda(text) for file in context.profile.sources if (text := context.text(file)))


@lru_cache(maxsize=64)
def _in_cuda(text: str) -> frozenset[str]:
    """Names of the ``__global__`` functions in CUDA source that a Python file holds as a string."""
    return frozenset(re.findall(r"__global__[^;{(]*?(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(", text))
