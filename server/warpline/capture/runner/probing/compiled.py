"""A part of the recorded forward passes: operator by operator as it ran, and compiled by torch.compile.

The operators are those that ran below autograd, so both versions lack the Python of the user's modules.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Callable, Dict, List, Sequence

import torch
import torch.fx

from ....wire.dataflow import TENSOR, value_of, values_in
from ....wire.probing import Part, Question, Tensor, part_from_json
from .pair import Pair
from .tensors import strided

#: Values stay finite in 16 bits through many products.
SMALL = 0.05


def compiled(question: Question, device: str) -> Pair:
    """Tensors: what the part is given; their dtypes have torch's names. Options: the part as JSON, and a mode
    of ``torch.compile``, if any. Raises an error for an operator that is not torch's own."""
    part = _without_counters(part_from_json(json.loads(question.options[0])), question)
    mode = question.options[1] if len(question.options) > 1 else None
    _without_headers()
    torch._dynamo.reset()  # what another question compiled counts towards Dynamo's limit
    inputs = [small(one, device) for one in question.tensors]
    wanted = [inputs[at].requires_grad_() for at in part.leaves] if question.backward else []
    work = with_copies(plainly(part, inputs), _written_with_gradients(part) if wanted else [])
    if mode is not None:
        stay(inputs)
    before = working(work, inputs, wanted, [])
    # Dropout draws other numbers, and rounding grows with depth.
    return Pair(before, working(torch.compile(work, mode=mode), inputs, wanted, []), same=False)


def with_copies(work: Callable[..., Any], changed: Sequence[int]) -> Callable[..., Any]:
    """``work`` on copies of some inputs, which it makes: of copies that it is given, which lie elsewhere in
    each call, a CUDA graph would be recorded again each time."""

    def copying(*inputs: Any) -> Any:
        return work(*(one.clone() if at in changed else one for at, one in enumerate(inputs)))

    return copying if changed else work


def stay(inputs: Sequence[Any]) -> None:
    """Inputs are the same tensors in each call, as a module's parameters and what the graph itself made are:
    a CUDA graph copies all others to memory of its own first, and is not replayed where they are written."""
    if hasattr(torch._dynamo, "mark_static_address"):  # torch 2.0 has none
        for one in inputs:
            torch._dynamo.mark_static_address(one, guard=False)


def not_compiling(device: str) -> str:
    """Why nothing can be compiled here, as without a C++ compiler or Python's headers; "" where it can."""

    def least(x: Any) -> Any:
        return x.sin() + 1

    _without_headers()
    torch._dynamo.reset()
    try:
        torch.compile(least)(torch.zeros(64, device=device))
    except Exception as error:
        return reason(error)
    return ""


def reason(error: BaseException) -> str:
    """What a compiler says is wrong, in one line: torch wraps that."""
    lines = [line.strip() for line in ("%s: %s" % (type(error).__name__, error)).split("\n")]
    said = [line for line in lines if line and not line.endswith("raised:")] or lines
    return next((line for line in said if "fatal error:" in line), said[0])[:300]


def _without_counters(part: Part, question: Question) -> Part:
    """The part without results that are whole numbers of an input, changed in place (the batches that a norm
    has seen). They are computed all the same. AOTAutograd gives the results after them the wrong gradients,
    and the backward pass fails (torch 2.13)."""
    whole = {
        TENSOR + str(number)
        for number, one in zip(part.inputs, question.tensors)
        if one.dtype.startswith(("int", "uint", "bool"))
    }
    left = list(part.results)
    for name, arguments, outputs in part.operators:
        if name.split(".")[1].endswith("_") and arguments and arguments[0] in whole:
            whole.update(TENSOR + str(number) for number in outputs)
            left = [number for number in left if number not in outputs]
    return replace(part, results=tuple(left)) if left else part


def _without_headers() -> None:
    """Inductor would compile C++ headers beforehand, for all that is compiled later. That takes 5 s of a
    processor and saves 2 s a question (torch 2.13, measured once)."""
    from torch._inductor import config

    if hasattr(config, "cpp_cache_precompile_headers"):
        config.cpp_cache_precompile_headers = False


def as_module(part: Part, plain: bool = True) -> Any:
    """The part as a graph. ``plain``: of torch's functions, as the script calls them, where they have the
    operators' names. The operators themselves cost the host twice as much (seven: 29 us instead of 14)."""
    graph = torch.fx.Graph()
    values: Dict[int, Any] = {number: graph.placeholder("x%d" % number) for number in part.inputs}

    def given(one: Any) -> Any:
        number = value_of(one)
        if number is not None:
            return values[number]
        if isinstance(one, list):
            return [given(each) for each in one]
        if isinstance(one, str):
            return float(one) if one in ("inf", "-inf", "nan") else getattr(torch, one)
        return one

    for name, arguments, outputs in part.operators:
        operator = _operator(name)
        positional = tuple(
            1.0 if one is None and _needed(operator, at) else given(one)
            for at, one in enumerate(arguments)
            if not isinstance(one, dict)
        )
        last = arguments[-1] if len(positional) < len(arguments) else {}
        # What was not recorded, such as a device, is as it is by default.
        options = {key: given(one) for key, one in last.items() if one is not None}
        base = operator._schema.name.split("::")[1]
        returns = operator._schema.returns
        # torch's function makes tensors of whole numbers that it returns (fused attention): Dynamo refuses.
        whole = any(one.type.kind() == "IntType" for one in returns)
        if not plain or whole:
            node = graph.call_function(operator, positional, options)
        elif base.endswith("_") and hasattr(torch.Tensor, base):
            node = graph.call_method(base, positional, options)
        else:
            node = graph.call_function(getattr(torch, base, operator), positional, options)
        several = len(returns) > 1 or returns[0].type.kind() == "ListType"
        for at, number in enumerate(outputs):
            values[number] = graph.call_function(_item, (node, at)) if several else node
    graph.output(tuple(values[number] for number in part.results))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def plainly(part: Part, inputs: Sequence[Any]) -> Any:
    """The part by torch's functions; by the operators, if a function takes other arguments than the operator
    of its name."""
    work = as_module(part).forward
    try:
        with torch.no_grad():
            work(*(one.clone() for one in inputs))
    except TypeError:
        return as_module(part, plain=False).forward
    return work


def seeded(part: Part) -> bool:
    """Whether an operator draws random numbers."""
    return any(torch.Tag.nondeterministic_seeded in _operator(name).tags for name, _, _ in part.operators)


def _needed(operator: Any, at: int) -> bool:
    """Whether an operator takes a number or a tensor there, and no None: a complex number, which is not
    recorded."""
    kinds = ("TensorType", "NumberType", "FloatType")
    return operator._schema.arguments[at].type.kind() in kinds


def written(part: Part) -> List[int]:
    """Inputs that an operator writes to, by position: autograd allows that of no leaf."""
    firsts = {
        arguments[0]
        for name, arguments, _ in part.operators
        if arguments and name.split(".")[1].endswith("_")
    }
    return [at for at, number in enumerate(part.inputs) if TENSOR + str(number) in firsts]


def _written_with_gradients(part: Part) -> List[int]:
    """``written``, where the input gets a gradient, or what is written does: it would be of the graph of one
    call in the next one."""
    grown = {part.inputs[at] for at in part.leaves}
    for name, arguments, outputs in part.operators:
        given = list(values_in(arguments))
        if grown.intersection(given):
            grown.update(outputs)
            grown.update(given[: name.split(".")[1].endswith("_")])
    return [at for at in written(part) if part.inputs[at] in grown]


def _item(found: Any, at: int) -> Any:
    return found[at]


def _operator(name: str) -> Any:
    if name in ("aten.view.default", "aten._unsafe_view.default"):  # the tensor may have lain another way
        return torch.ops.aten.reshape.default
    space, operator, overload = name.split(".")
    if space != "aten":
        raise ValueError("%s is not an operator of torch's" % name)
    return getattr(getattr(torch.ops.aten, operator), overload)


def small(one: Tensor, device: str) -> Any:
    """Small numbers; zeros for what counts or chooses, which are valid indices and classes."""
    dtype = getattr(torch, one.dtype)
    if dtype.is_floating_point or dtype.is_complex:
        return strided((torch.randn(one.shape, device=device) * SMALL).to(dtype), one)
    return strided(torch.zeros(one.shape, dtype=dtype, device=device), one)


def working(
    function: Callable[..., Any],
    inputs: List[Any],
    wanted: List[Any],
    changed: List[int],
    given: Sequence[Any] = (),
) -> Callable[[], Any]:
    """What is timed. ``changed``: inputs that get a copy of their own each time. ``given``: the gradients of
    the results; ones in their layout if there are none."""

    def forward() -> Any:
        return function(*inputs)  # no input requires a gradient here

    def both() -> Any:
        mine = [one.clone() if at in changed else one for at, one in enumerate(inputs)]
        results = [one for one in function(*mine) if one.requires_grad]
        gradients = given or [torch.ones_like(one) for one in results]
        return torch.autograd.grad(results, wanted, gradients, allow_unused=True)

    return both if wanted else forward


KINDS: Dict[str, Callable[[Question, str], Pair]] = {"compiled": compiled}
