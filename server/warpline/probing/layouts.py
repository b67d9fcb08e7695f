"""Convolutions in another layout, with the recorded operators between them, as questions.

In channels_last norms, activations, pools and sums take another time as well, and not the convolution alone.
On a CPU the whole network is one question. Its operators decide there which tensors change their layout:
where one is copied back (`contiguous`, views), or two layouts meet in a sum, that costs what it costs in the
step. Of a network that is too long for that, and on a device, which may have no memory for another one, each
piece is a question: a convolution and what follows it up to the next one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from warpline.devices import can
from warpline.model.change import Replace
from warpline.model.profile import LineCost, Profile
from warpline.probing import inputs
from warpline.probing.parts import base_of, called_at, part_of, shape_of
from warpline.wire.dataflow import CONVOLUTIONS, TENSOR, Dataflow, value_of
from warpline.wire.probing import SEARCHED, Answer, Part, Question, Tensor

#: Different pieces that are tried, those that take longest first; equal ones are tried once.
MOST = 20
#: A stretch of more operators is no piece of a network of convolutions.
_LONGEST = 120
#: The largest network that is one question: its milliseconds in a step, as a trial runs it a dozen times, and
#: its operators. Chosen.
_WHOLE_MS, _WHOLE_OPERATORS = 500.0, 2000
_CONVOLUTION = "convolution"
#: torch chooses a batch norm's implementation by layout, and a record has the one that it chose: where each
#: has what ``batch_norm`` takes (input, weight, bias, mean, variance, training, momentum, eps). A group
#: norm's takes its input in one of two layouts only, which ``group_norm`` (input, groups, weight, bias, eps)
#: sees to.
_BATCH, _GROUP = "aten.batch_norm.default", "aten.group_norm.default"
_NORMS: dict[str, tuple[str, tuple[int | bool, ...]]] = {
    "native_batch_norm": (_BATCH, (0, 1, 2, 3, 4, 5, 6, 7)),
    "cudnn_batch_norm": (_BATCH, (0, 1, 2, 3, 4, 5, 6, 7)),
    "miopen_batch_norm": (_BATCH, (0, 1, 2, 3, 4, 5, 6, 7)),
    "_native_batch_norm_legit": (_BATCH, (0, 1, 2, 3, 4, 5, 6, 7)),
    "_batch_norm_with_update": (_BATCH, (0, 1, 2, 3, 4, True, 5, 6)),
    "_batch_norm_no_update": (_BATCH, (0, 1, 2, 3, 4, False, 5, 6)),
    "native_group_norm": (_GROUP, (0, 6, 1, 2, 7)),
}
NO_ANSWERS: Mapping[Question, Answer] = {}
_Sized = tuple[str, tuple[tuple[int, ...], ...]]  # a kind of operator, and the sizes of what it reads
_RANDOM = ("dropout", "bernoulli", "rand", "multinomial", "normal")


def questions_for(
    profile: Profile, change: Replace, costs: list[LineCost], answers: Mapping[Question, Answer] = NO_ANSWERS
) -> inputs.Weighted:
    """The network at the change's lines, or each of its pieces, as questions with their milliseconds a step;
    none where the step was not recorded. What was tried has its trial's time, which counts all that it does.
    ``change`` has no options; a question says whether cuDNN looks for its quickest algorithm."""
    flow = profile.facts.dataflow
    if flow.missing:
        return []
    words = (SEARCHED,) if profile.facts.flags.cudnn_benchmark else ()
    backward = inputs.differentiated(costs)
    spent = _times(profile)
    found: dict[Question, list[float]] = {}  # its time, each time that it runs
    rows = called_at(flow, set(change.places))
    pieces = list(_pieces(flow, rows))
    if pieces and _is_tried_whole(profile, rows, costs):
        pieces = [[row for row in rows if flow.outputs[row]]]
    for some in pieces:
        part, values = part_of(flow, some)
        made = _usual(part)
        given = tuple(Tensor(shape_of(flow, one), flow.dtypes[flow.dtype[one]]) for one in values)
        text = json.dumps(asdict(_renumbered(made)))
        same = () if any(word in name for name, *_ in made.operators for word in _RANDOM) else ("same",)
        asks = backward and bool(part.leaves)
        question = Question(change.by, given, (text, *words, *same), asks)
        found.setdefault(question, []).append(sum(spent(flow, row) for row in some))
    longest = sorted(found.items(), key=lambda item: -sum(item[1]))
    # What is not tried counts against the answers.
    every, tried = (sum(sum(times) for _, times in some) for some in (longest, longest[:MOST]))
    if tried < inputs.COVERED * every:
        return []
    return [(one, _tried_ms(answers.get(one), len(times)) or sum(times)) for one, times in longest[:MOST]]


def _tried_ms(answer: Answer | None, runs: int) -> float:
    """What ``runs`` of a trial take as it is now; 0 where it was not tried."""
    return runs * answer.before.device_ns / 1e6 if answer is not None and answer.before is not None else 0.0


def _is_tried_whole(profile: Profile, rows: list[int], costs: list[LineCost]) -> bool:
    """Whether all of the network is one question."""
    if can(profile.manifest.device.kind, "kernels") or len(rows) > _WHOLE_OPERATORS:
        return False
    return sum(cost.step_ms for cost in costs) <= _WHOLE_MS


def _pieces(flow: Dataflow, rows: list[int]) -> Iterator[list[int]]:
    """The rows from each convolution of images, and the casts of its weights before it, to the next one."""
    piece: list[int] = []
    whole = False  # the piece has its convolution
    for row in rows:
        if base_of(flow, row) in CONVOLUTIONS and len(shape_of(flow, flow.outputs[row][0])) == 4:
            own = len(piece)
            while own and base_of(flow, piece[own - 1]) == "_to_copy":
                own -= 1
            if whole:
                yield piece[:own]
            piece, whole = [*piece[own:], row], True
        elif flow.outputs[row] and len(piece) < _LONGEST:
            piece.append(row)
    if whole:
        yield piece


def _times(profile: Profile) -> Callable[[Dataflow, int], float]:
    """Device time of an operator of the record, its backward pass included: of convolutions and batch norms,
    by the sizes of what they read. Other operators count for nothing, as they are a small part."""
    found: dict[_Sized, dict[str, tuple[float, float]]] = {}  # of each operator: its time and its calls
    for cost in profile.lines:
        for op in cost.ops:
            first = int(op.name.endswith("_backward"))  # before it comes the gradient
            kind, count = ("batch_norm", 1) if "batch_norm" in op.name else (_CONVOLUTION, 2)
            if op.device_ms > 0 and kind in op.name and op.count > 0:
                own = found.setdefault((kind, op.shapes[first : first + count]), {})
                ms, calls = own.get(op.name, (0.0, 0.0))
                own[op.name] = ms + op.device_ms, calls + op.count

    def spent(flow: Dataflow, row: int) -> float:
        name, given = base_of(flow, row), flow.arguments[row]
        kind, count = ("batch_norm", 1) if "batch_norm" in name else (_CONVOLUTION, 2)
        if (kind not in name and name not in CONVOLUTIONS) or len(given) < count:
            return 0.0
        read = (value for one in given[:count] if (value := value_of(one)) is not None)
        own = found.get((kind, tuple(shape_of(flow, one) for one in read)), {})
        return sum(ms / calls for ms, calls in own.values())

    return spent


def _usual(part: Part) -> Part:
    """``part`` with norms as a script calls them."""
    operators = []
    unmade: set[int] = set()
    for name, given, outputs in part.operators:
        called, order = _NORMS.get(name.split(".")[1], ("", ()))
        if called and len(given) >= len(order) - 1:
            taken = [one if isinstance(one, bool) else given[one] for one in order]
            unmade.update(outputs[1:])
            operators.append((called, [*taken, True], outputs[:1]))
        else:
            operators.append((name, given, outputs))
    results = tuple(one for one in part.results if one not in unmade)
    return replace(part, operators=tuple(operators), results=results)


def _renumbered(part: Part) -> Part:
    """The same with values numbered in their order, so that equal pieces are equal."""
    numbers: dict[int, int] = {}

    def number(value: int) -> int:
        return numbers.setdefault(value, len(numbers))

    def given(one: Any) -> Any:
        if (value := value_of(one)) is not None:
            return TENSOR + str(number(value))
        if isinstance(one, (list, tuple)):
            return [given(each) for each in one]
        return {key: given(each) for key, each in one.items()} if isinstance(one, dict) else one

    first = tuple(map(number, part.inputs))
    operators = tuple(
        (name, given(arguments), tuple(map(number, outputs))) for name, arguments, outputs in part.operators
    )
    return Part(operators, first, part.leaves, tuple(map(number, part.results)))
