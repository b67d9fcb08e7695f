"""Activation functions: functions of one tensor, each number by itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from warpline.rulekit.graph.evaluate import Evaluation, cuts
from warpline.rulekit.graph.graph import Graph, Node
from warpline.rulekit.graph.match import Match, candidates, is_written_out, largest
from warpline.rulekit.graph.pointwise import POINTWISE, Numbers, gelu, gelu_tanh, sigmoid, softplus
from warpline.rulekit.graph.softmax import written_softmaxes

#: From where the functions are curved to where they are straight, none of them at a knot.
SAMPLES: Numbers = (-6.1, -3.3, -2.2, -1.1, -0.4, 0.3, 0.9, 1.7, 2.6, 3.4, 6.3)
#: Constants as people type them (0.7979 for the root of 2 / pi) are off by less, and the two forms of GELU
#: are further apart at one of the samples. The nearest function is taken.
TOLERANCE = 4e-4
#: The step of a central difference: its error, of the order of the step squared, is far below the tolerance.
_STEP = 1e-4
#: A slope nearer to one is not an activation but a factor with a small number in it.
_MOST_SLOPE = 0.9

#: Those that torch has a fused operator for: it writes out softsign and tanhshrink itself.
_FIXED: tuple[tuple[str, str, Callable[[float], float]], ...] = (
    ("GELU", "F.gelu", gelu),
    ("GELU", 'F.gelu(..., approximate="tanh")', gelu_tanh),
    ("SiLU", "F.silu", lambda x: x * sigmoid(x)),
    ("Mish", "F.mish", lambda x: x * math.tanh(softplus(x))),
    ("Hard swish", "F.hardswish", lambda x: x * min(max(x + 3, 0), 6) / 6),
    ("Hard sigmoid", "F.hardsigmoid", lambda x: min(max(x + 3, 0), 6) / 6),
    ("Softplus", "F.softplus", softplus),
    ("Log sigmoid", "F.logsigmoid", lambda x: -softplus(-x)),
    ("Sigmoid", "torch.sigmoid", sigmoid),
    ("Tanh", "torch.tanh", math.tanh),
    ("ReLU", "F.relu", lambda x: max(x, 0.0)),
    ("SELU", "F.selu", lambda x: 1.0507009873554805 * (x if x > 0 else 1.6732632423543772 * math.expm1(x))),
    ("An approximation of GELU", "", lambda x: x * sigmoid(1.702 * x)),
)
_NO_CALL = "torch has no call for this approximation of GELU"


def activations(graph: Graph) -> list[Match]:
    """The activations that a step computes op by op. Overlapping matches: only the largest."""
    found = (_at(graph, node) for node in candidates(graph, POINTWISE))
    return largest([*(match for match in found if match is not None), *_softmaxes(graph)])


def _softmaxes(graph: Graph) -> Iterator[Match]:
    for softmax, logarithm in written_softmaxes(graph):
        if is_written_out(graph, softmax.nodes) and not _is_read_within(graph, softmax.nodes):
            kind = "The logarithm of a softmax" if logarithm else "Softmax"
            call = "F.log_softmax" if logarithm else "F.softmax"
            yield Match(kind, call, softmax.nodes, softmax.nodes[-1])


def _is_read_within(graph: Graph, nodes: Sequence[Node]) -> bool:
    """Whether other operators read an intermediate result, which a fused call would not give."""
    made = (value for node in nodes if node is not nodes[-1] for value in node.outputs)
    return any(
        reader not in nodes and value not in reader.outputs
        for value in made
        for reader in graph.consumers.get(value, ())
    )


def _at(graph: Graph, result: Node) -> Match | None:
    best: Match | None = None
    for value in cuts(graph, result.outputs[0]):
        evaluation = Evaluation(graph, {value: SAMPLES})
        numbers = evaluation.of(result.outputs[0])
        if numbers is None or len(evaluation.nodes) < 2 or graph.size(value) != graph.size(result.outputs[0]):
            continue
        if best is not None and len(evaluation.nodes) <= len(best.nodes):
            continue
        found = named(numbers)
        nodes = tuple(evaluation.nodes)
        if found is not None and is_written_out(graph, nodes) and not _has_call(graph, nodes, found[0]):
            kind, call, _ = found
            best = Match(kind, call, nodes, result, "" if call else _NO_CALL)
    return best


def _has_call(graph: Graph, nodes: Sequence[Node], kind: str) -> bool:
    """Whether one operator is that function, and the others change nothing: ``tanh(x) * 1.0``."""
    return any(
        is_named(Evaluation(graph, {node.inputs[0]: SAMPLES}).of(node.outputs[0]), kind)
        for node in nodes
        if len(node.inputs) == 1
    )


def is_named(numbers: Numbers | None, kind: str) -> bool:
    """Whether a function of that kind gives ``numbers`` at the samples."""
    found = named(numbers) if numbers is not None else None
    return found is not None and found[0] == kind


def named(numbers: Numbers) -> tuple[str, str, float] | None:
    """Kind and call of the function that gives ``numbers`` at the samples, and the parameter of the call: 1
    where it has none, or its default."""
    error, kind, call = min((_error(numbers, each), kind, call) for kind, call, each in _FIXED)
    if error <= TOLERANCE:
        return kind, call, 1.0
    slope = numbers[0] / SAMPLES[0]
    if 0 < slope <= _MOST_SLOPE and _error(numbers, lambda x: x if x > 0 else slope * x) <= TOLERANCE:
        return "Leaky ReLU", "F.leaky_relu", slope
    scale = numbers[0] / math.expm1(SAMPLES[0])
    if scale > 0 and _error(numbers, lambda x: x if x > 0 else scale * math.expm1(x)) <= TOLERANCE:
        return "ELU", "F.elu", scale
    return None


def slopes(call: str) -> Numbers | None:
    """The derivative of what ``call`` computes at the samples; None of a function with a parameter."""
    each = next((each for _, known, each in _FIXED if known == call), None)
    return tuple((each(x + _STEP) - each(x - _STEP)) / (2 * _STEP) for x in SAMPLES) if each else None


def are_near(numbers: Numbers, wanted: Numbers) -> bool:
    """Whether two functions have the same numbers at the samples."""
    pairs = zip(numbers, wanted, SAMPLES, strict=True)
    return all(abs(one - other) <= TOLERANCE * max(1.0, abs(x)) for one, other, x in pairs)


def _error(numbers: Numbers, wanted: Callable[[float], float]) -> float:
    errors = [abs(number - wanted(x)) / max(1.0, abs(x)) for number, x in zip(numbers, SAMPLES, strict=True)]
    return math.inf if any(math.isnan(error) for error in errors) else max(errors)
