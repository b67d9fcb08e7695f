"""The calls that enclose each host event, computed once per trace in one pass from outer to inner calls."""

from __future__ import annotations

from dataclasses import dataclass

from warpline.trace import nest
from warpline.trace.columns import OP, Bools, Ints, Trace, take

ENGINE = "autograd::engine"
NODE_PREFIX = "autograd::engine::evaluate_function"
ACCUMULATION = "torch::autograd::AccumulateGrad"
#: torch's ranges around compiled code that runs: a frame, its autograd graph, Inductor's code.
FRAME, FUNCTION = "Torch-Compiled Region: ", "CompiledFunction"
REGIONS = (FRAME, FUNCTION, "## Call CompiledFxGraph")


@dataclass(frozen=True, slots=True)
class Around:
    """Columns with one row per event of ``Trace.host``. Each, except ``backward``, has the row of the
    innermost event of its kind, among the event itself and those around it; -1 if there is none."""

    op: Ints  # a dispatcher call
    call: Ints  # a dispatcher call that is not a wrapper of autograd's
    node: Ints  # one of autograd's nodes
    backward: Bools  # whether the event runs for the backward pass
    region: Ints  # any of REGIONS
    compiled: Ints  # the region of a frame or of its autograd graph
    frame: Ints  # the region of a frame
    made: Ints  # a call made directly by a region


def around(trace: Trace) -> Around:
    """The enclosing calls of every host event of ``trace``."""
    host, names = trace.host, trace.names
    op = host.kind == OP
    node = operators(trace, NODE_PREFIX)
    wrapper = (names.mask(NODE_PREFIX) | names.mask(ACCUMULATION))[host.name] | (host.forward_thread > 0)
    region = operators(trace, *REGIONS)
    chosen = (
        op,
        op & ~wrapper,
        node,
        (host.forward_thread > 0) | names.mask(ENGINE)[host.name],
        region,
        operators(trace, *REGIONS[:2]),
        operators(trace, FRAME),
        take(region, host.parent, missing=False) & ~region,
    )
    ops, calls, nodes, backward, regions, compiled, frames, made = nest.nearest(
        host.parent, host.depth, *chosen
    )
    return Around(ops, calls, nodes, backward >= 0, regions, compiled, frames, made)


def operators(trace: Trace, *wanted: str) -> Bools:
    """Which host events are operators whose names begin with one of ``wanted``."""
    found: Bools = trace.names.mask(*wanted)[trace.host.name] & (trace.host.kind == OP)
    return found
