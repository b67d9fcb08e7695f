"""What lies around each host event: found once for a trace, in one climb from the outermost calls inwards."""

from __future__ import annotations

from dataclasses import dataclass

from warpline.trace import nest
from warpline.trace.columns import OP, Bools, Ints, Trace, take

ENGINE = "autograd::engine"
NODE_PREFIX = "autograd::engine::evaluate_function"
ACCUMULATION = "torch::autograd::AccumulateGrad"
#: torch's ranges around the runs of compiled code: of a frame, of its graph for autograd, of Inductor's code.
FRAME = "Torch-Compiled Region: "
REGIONS = (FRAME, "CompiledFunction", "## Call CompiledFxGraph")


@dataclass(frozen=True, slots=True)
class Around:
    """Columns beside ``Trace.host``. Each but ``backward`` has the row of the innermost event of its kind
    among the event itself and those around it, -1 where there is none."""

    op: Ints  # a dispatcher call
    call: Ints  # a dispatcher call that is not a wrapper of autograd's
    node: Ints  # one of autograd's nodes
    backward: Bools  # whether the event runs for the backward pass
    region: Ints  # a run of compiled code, as any of REGIONS
    compiled: Ints  # one of a frame or of its graph for autograd
    frame: Ints  # one of a frame
    made: Ints  # a call that a region makes directly


def around(trace: Trace) -> Around:
    """The one climb of a trace; nested calls are read from its answer."""
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
