"""Replacements that were tried on the recorded shapes, on the device that ran the script: ``probed.json``.

The server asks (``Question``), a child of the user's interpreter answers. Kinds are the names in
``capture/runner/probing``: what a question carries is data, never code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

#: In the run folder.
PROBED = "probed.json"
#: The kind that compiles, which takes longer than all others.
COMPILED = "compiled"
#: The word for cuDNN's search, which builds all kernels that it has for a convolution. Trials of a layout,
#: with both gradients, took 2 to 3 s each with it on an H200.
SEARCHED = "benchmark"
#: How the error begins where nothing at all can be compiled, as without a C++ compiler.
NOT_COMPILING = "torch.compile does not work here"
#: What can be tried: the kinds of ``capture/runner/probing``.
KINDS = frozenset({
    "layer_norm", "rms_norm", "attention", "optimizer", "product", "padded", "narrower", "convolution", "cat",
    "gelu", "gelu_tanh", "silu", "mish", "hardswish", "sigmoid", "tanh", "softplus", "softmax", "leaky_relu",
    "elu", "log_softmax", "cross_entropy", "mse_loss", "binary_cross_entropy_with_logits", "loop", "lists",
    "channels_last", "embedding", "recurrent", "topk", "windows", "pointwise", COMPILED,
})  # fmt: skip
#: Words for norms whose input is in half precision. ``CAST``: the norm casts it to float32 and back, and the
#: replacement gets it as it is, with the gain cast to its type. ``WIDE``: the replacement computes in float32
#: and gives the input's type. ``MIXED``: a gain in float32 makes the result float32.
CAST, WIDE, MIXED = "cast", "wide", "mixed"
#: A word for a loop whose rounds are one call's on other rows.
JOINED = "joined"
#: A word for a loop over tensors whose result is the tensor's new data.
DATA = "data"
#: Begins the word for the type of an array whose windows are cast to another one.
FROM = "from="
#: Operators that sort, as aten names them.
SORTS = frozenset({"sort", "argsort", "msort"})


@dataclass(frozen=True)
class Tensor:
    """``dtype`` as the trace names it: "float", "c10::BFloat16". No ``strides``: contiguous."""

    shape: tuple[int, ...]
    dtype: str = "float"
    strides: tuple[int, ...] = ()


@dataclass(frozen=True)
class Question:
    """What does ``kind`` cost as it is, and replaced, on such tensors?

    ``options``: words that the kind knows. ``backward``: the gradients of its inputs belong to it.
    ``period_ns``: of code to be compiled on a CPU, from one call of it to the next one; 0: not known.
    """

    kind: str
    tensors: tuple[Tensor, ...]
    options: tuple[str, ...] = ()
    backward: bool = False
    period_ns: int = 0


@dataclass(frozen=True)
class Part:
    """Operators that ran one after the other (``wire/dataflow.py``), of the kinds "compiled", "loop", "lists"
    and "channels_last".

    ``operators``: name, arguments and the numbers of the values made. ``inputs``: values that were there
    before, in the order of the question's tensors; ``leaves``: those of them that get gradients, by position.
    ``results``: values that are used afterwards.
    """

    operators: tuple[tuple[str, Any, tuple[int, ...]], ...]
    inputs: tuple[int, ...]
    leaves: tuple[int, ...]
    results: tuple[int, ...]


@dataclass(frozen=True)
class Cost:
    """The cost of one call. ``host_ns``: until the host has queued it; ``device_ns``: on the device alone. On
    a CPU both are its time."""

    host_ns: float
    device_ns: float


@dataclass(frozen=True)
class Answer:
    """``before`` and ``after`` are None where it could not be tried, for the reason in ``error``.

    ``difference``: the largest difference of the results, in units of what is tolerated for their dtype
    (``capture/runner/probing/agreement.py``): up to 1 they are the same. ``ratios``: in each round, the time
    after over the time before, on the device where there is one. Both costs are the quickest readings of all
    rounds. ``compiling_s``: seconds of the first call of what is compiled.
    """

    question: Question
    before: Optional[Cost] = None  # noqa: UP045 - Python 3.9
    after: Optional[Cost] = None  # noqa: UP045 - Python 3.9
    ratios: tuple[float, ...] = ()
    difference: float = 0.0
    error: str = ""
    compiling_s: float = 0.0


@dataclass(frozen=True)
class QuestionBatch:
    """What the child is given. ``seconds``: for all of it, from when torch is imported; ``compiling``: on top
    of that for what ``builds``."""

    device: str
    threads: Optional[int]  # noqa: UP045 - Python 3.9
    seconds: float
    compiling: float
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class Probed:
    """``left``: questions for which there was no time."""

    answers: tuple[Answer, ...] = ()
    seconds: float = 0.0
    left: int = 0
    note: str = ""  # why there is nothing, where that is so


def builds(question: Question, device: str) -> bool:
    """Whether code is built to answer it, which takes longer than all else."""
    return question.kind == COMPILED or (device == "cuda" and SEARCHED in question.options)


def batch_from_json(fields: dict[str, Any]) -> QuestionBatch:
    """A ``QuestionBatch`` from what JSON made of it."""
    return QuestionBatch(
        fields["device"],
        fields["threads"],
        fields["seconds"],
        fields["compiling"],
        tuple(question(one) for one in fields["questions"]),
    )


def question(fields: dict[str, Any]) -> Question:
    """A question from the fields of its JSON."""
    tensors = tuple(
        Tensor(tuple(one["shape"]), one["dtype"], tuple(one["strides"])) for one in fields["tensors"]
    )
    return Question(
        fields["kind"], tensors, tuple(fields["options"]), fields["backward"], fields["period_ns"]
    )


def part_from_json(fields: dict[str, Any]) -> Part:
    """A ``Part`` from what JSON made of it."""
    operators = tuple((name, given, tuple(outputs)) for name, given, outputs in fields["operators"])
    return Part(operators, tuple(fields["inputs"]), tuple(fields["leaves"]), tuple(fields["results"]))
