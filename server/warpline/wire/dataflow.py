"""The operators of one step's forward passes, and which tensors went from one to the next.

Recorded by a ``TorchDispatchMode`` in the surveyed step, below autograd: what composite operators are made
of, without the backward pass. A tensor is known by its storage and its layout, so an operator in place gives
a new value, and a view that was made unseen is an ``alias`` of the value that its storage held last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .places import Placed

#: A step of more operators is recorded up to here. A 48-layer GPT has about 2,000 in its forward pass.
MOST_OPERATORS = 10_000
#: Of a list of more tensors (an optimizer's), none is recorded.
MOST_IN_LIST = 64
#: How an argument that is a tensor is written: this and its value's number. Other texts are dtypes, and
#: numbers that are not finite.
TENSOR = "%"


def value_of(argument: object) -> int | None:
    """The number of the value that a recorded argument is; None for one that is no tensor."""
    if isinstance(argument, str) and argument.startswith(TENSOR):
        return int(argument[len(TENSOR) :])
    return None


def values_in(argument: Any) -> Iterator[int]:
    """The numbers of the values in a recorded argument: itself, or the tensors of a list or dict."""
    number = value_of(argument)
    if number is not None:
        yield number
    elif isinstance(argument, (list, tuple, dict)):
        for one in argument.values() if isinstance(argument, dict) else argument:
            yield from values_in(one)


#: What a call of compiled code is recorded as, with its tensors in and out, and each that it may have written
#: to, as an operator in place.
COMPILED, WRITTEN = "warpline.compiled.default", "warpline.written_.default"

#: How an operator came to be called from the user's line: by it, through a module of torch's, through one of
#: torch's optimizers, or by another library.
DIRECT, MODULE, OPTIMIZER, LIBRARY = "", "module", "optimizer", "library"
#: Names of convolutions: in inference mode operators are recorded as they are called.
CONVOLUTIONS = frozenset({"convolution", "conv2d", "conv_transpose2d"})
#: Names of what gives dimensions another order.
TURNS = frozenset({"transpose", "permute", "mT"})


@dataclass(frozen=True)
class OperatorSite(Placed):
    """An instruction of the user's code, and the way from there to the operator."""

    file: str
    line: int  # 0: it is not in the text any more
    function: str
    via: str = DIRECT


@dataclass(frozen=True)
class Frame(Placed):
    """An instruction of the user's code that was running, and the part of the text that it is."""

    file: str
    line: int  # 0: it is not in the text any more
    function: str
    #: Last line, first column, last column, as Python counts them (bytes). Empty before Python 3.11, and
    #: where the line changed since.
    span: tuple[int, ...] = ()


@dataclass(frozen=True)
class Backward:
    """A call of ``backward()`` or ``torch.autograd.grad()`` in the step or in the next one.

    ``read``, ``cleared`` and ``left`` are values of the parameters that it gave gradients to: something read
    them before they were cleared, nothing did, or neither happened while the steps were recorded.
    """

    operator: int  # how many operators were recorded before it; -1: it is in the next step
    stack: int  # index into ``Dataflow.stacks``; -1: in no code of the user's
    roots: tuple[int, ...] = ()  # values that it starts from
    inputs: tuple[int, ...] = ()  # values that it was asked for the gradients of; empty: of all
    retained: bool = False  # the graph stays for another pass
    read: tuple[int, ...] = ()
    cleared: tuple[int, ...] = ()
    left: tuple[int, ...] = ()


@dataclass(frozen=True)
class Padding:
    """One value at the beginning or the end of most rows of what an embedding looked up, or positions there
    that a mask hides.

    Found by what the tensor holds, so it may be anything that fills rows up: a token for padding, as a rule.
    """

    value: int  # the number of the tensor with the indices, or of the mask
    site: int  # index into ``Dataflow.sites``, of what reads it; -1: in no code of the user's
    rows: int
    columns: int
    padded: int  # elements of all rows that are padding
    shared: int  # columns that are padding in every row
    mask: bool = False
    series: bool = False  # numbers that a recurrent layer reads
    leading: bool = False  # at the beginning of the rows: of an embedding's, and older runs do not say


@dataclass(frozen=True)
class Unscored:
    """Entries of a loss that count for nothing: targets of the class to ignore, or zeros of a mask that the
    loss of each entry is multiplied with."""

    value: int  # the number of the tensor with the targets or the mask
    entries: int
    unscored: int


@dataclass(frozen=True)
class Masked:
    """A fused attention that was given a mask. ``causal``: the mask hides what comes later, nothing else."""

    operator: int  # index into ``Dataflow.name``
    causal: bool


@dataclass(frozen=True)
class Dataflow:
    """Columns. ``name``, ``site``, ``arguments`` and ``outputs`` have an entry for each operator, in order of
    their calls; ``shape``, ``dtype`` and ``parameter`` one for each value."""

    missing: str = "it was not recorded"  # why there is nothing, or not all; empty: all is there
    around: bool = False  # what is missing is only what compiled code computes
    calls: int = 0  # of operators in the whole step, also those not recorded, such as the backward pass's
    names: tuple[str, ...] = ()  # "aten.mul.Tensor"
    sites: tuple[OperatorSite, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()  # "float32"
    name: tuple[int, ...] = ()  # index into ``names``
    site: tuple[int, ...] = ()  # index into ``sites``; -1: in no code of the user's
    arguments: tuple[Any, ...] = ()  # a list; a dict at its end has those that were given by name
    outputs: tuple[tuple[int, ...], ...] = ()  # numbers of values
    shape: tuple[int, ...] = ()  # index into ``shapes``
    dtype: tuple[int, ...] = ()  # index into ``dtypes``
    parameters: tuple[int, ...] = ()  # values that are ``nn.Parameter``
    #: Parameters that ask for gradients, while no optimizer has them, nothing wrote to them in the step (but
    #: an average with what one has), and nothing read their gradients; before and after that. Empty where
    #: nothing in the step is an optimizer's, unless the script has none, and another tensor that asks.
    unheld: tuple[int, ...] = ()
    #: Calls of compiled modules all of whose parameters are such. Gradients are not watched beside compiled
    #: code: there they are in memory at the end of the step, and no recorded operator read them.
    unheld_calls: tuple[int, ...] = ()
    #: Values that were there before the step, are buffers of the script's modules, and were not written to.
    buffers: tuple[int, ...] = ()
    #: Operators that the next step had again, on the same numbers and on tensors that did not change.
    again: tuple[int, ...] = ()
    #: Values that the host made outside torch, of an array or a list, and that the next step had as well.
    remade: tuple[int, ...] = ()
    #: Values from before the step, each with what the step made, and the next one read in its place: a state
    #: that goes from step to step.
    followed: tuple[tuple[int, int], ...] = ()
    padding: tuple[Padding, ...] = ()
    unscored: tuple[Unscored, ...] = ()
    masked: tuple[Masked, ...] = ()
    frames: tuple[Frame, ...] = ()
    #: The user's code that runs: the index of the stack around it (-1: none), and of the innermost
    #: instruction among ``frames``. ``stack`` has an entry for each operator; -1: in no code of the user's.
    stacks: tuple[tuple[int, int], ...] = ()
    stack: tuple[int, ...] = ()
    rates: tuple[float, ...] = ()  # learning rates of the optimizers, before and after the step
    ungraphed: tuple[int, ...] = ()  # operators that ran while autograd was switched off
    leaves: tuple[int, ...] = ()  # values of other tensors than parameters that ask for gradients
    #: Empty where not all gradients were seen.
    passes: tuple[Backward, ...] = ()


def running(flow: Dataflow, stack: int) -> Iterator[int]:
    """The instructions of one of ``stacks``, the innermost first, as indices of ``frames``."""
    while stack >= 0:
        stack, frame = flow.stacks[stack]
        yield frame
