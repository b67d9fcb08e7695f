"""Convolutions with a bias that a batch norm subtracts again."""

from __future__ import annotations

from dataclasses import dataclass

from warpline.rulekit.graph.graph import Graph, Node, Ref


@dataclass(frozen=True, slots=True)
class Biased:
    """The kernel and the output channels of a convolution with a bias; ``subtracted``: only batch norms that
    train read its result. ``weight``: the value that all calls of one layer share. ``place``: the line that
    runs it."""

    kernel: tuple[int, ...]
    channels: int
    subtracted: bool
    weight: int = -1
    place: tuple[str, int] | None = None


def biased(graph: Graph) -> list[Biased]:
    """Every convolution that adds a bias, and whether a batch norm subtracts it again."""
    found = []
    for node in graph.nodes:
        weight, bias = node.argument(1, "weight"), node.argument(2, "bias")
        if node.name != "convolution" or not isinstance(weight, Ref) or not isinstance(bias, Ref):
            continue
        readers = list(graph.uses(node.outputs[0]))
        subtracted = bool(readers) and all(_subtracts(reader, value) for reader, value in readers)
        # Of the bias: the weight of a transposed convolution has its input channels first.
        channels = graph.size(bias.value)
        kernel = graph.shape(weight.value)[2:]
        site, layer = graph.site(node), graph.origin(weight.value)
        place = site.place if site is not None else None
        found.append(Biased(kernel, channels, subtracted, layer, place))
    return found


def _subtracts(node: Node, value: int) -> bool:
    """Whether it is a batch norm of ``value`` over this batch: with stored means the bias has an effect."""
    return "batch_norm" in node.name and node.argument(5, "training") is not False and node.inputs[0] == value
