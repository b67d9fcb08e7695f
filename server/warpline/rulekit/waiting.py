"""Waiting for the device: what it can cost, and what a value read from the device is used for."""

from __future__ import annotations

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.rulekit.source import Source

#: Methods that bring a value of the device to the host, and wait for it.
READS = ("item", "tolist", "cpu", "numpy")


def lost_ms(context: Context, cost: LineCost) -> float:
    """What a wait can cost at most: no longer than the wait, and no longer than the device is idle.

    While the host waits the device works; lost is the time in which the device then waits for the
    host to queue more. On a step whose device is never idle a wait costs nothing.
    """
    return min(cost.sync_ms, context.idle_ms())


def read_call(source: Source, line: int) -> cst.Call | None:
    """The ``.item()``, ``.cpu()`` … on a line; the innermost of several."""
    calls = [
        call
        for call in source.calls(line)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in READS
    ]
    return calls[-1] if calls else None


def is_method(node: cst.CSTNode | None, *names: str) -> bool:
    """Whether ``node`` is a call of a method with one of ``names``."""
    return (
        isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in names
    )


def counter(source: Source, node: cst.CSTNode) -> tuple[str, cst.For] | None:
    """The counting name of the innermost ``for i, … in enumerate(…)`` or ``for i in range(…)``."""
    for loop in source.loops(node):
        if not isinstance(loop, cst.For) or not isinstance(loop.iter, cst.Call):
            return None
        target: cst.BaseExpression = loop.target
        if source.is_named(loop.iter.func, "enumerate") and isinstance(target, cst.Tuple):
            target = target.elements[0].value
        elif not source.is_named(loop.iter.func, "range", "trange"):
            return None
        return (target.value, loop) if isinstance(target, cst.Name) else None
    return None


def reads_of(source: Source, name: str, within: cst.CSTNode) -> list[cst.Name]:
    """Where ``name`` is used inside a node (attributes and keywords of that name left out)."""
    found = []
    for node in source.nodes(cst.Name, within=within):
        parent = source.parent(node)
        if node.value != name or (isinstance(parent, cst.Attribute) and parent.attr is node):
            continue
        if isinstance(parent, cst.Arg) and parent.keyword is node:
            continue
        found.append(node)
    return found
