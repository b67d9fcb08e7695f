"""Which line puts the entries into a list that a call is given."""

from __future__ import annotations

import libcst as cst

from warpline.syntax.source import Source, is_method, receiver

_ADD = ("append", "extend")


def maker_of(source: Source, call: cst.Call, name: str) -> cst.CSTNode:
    """What makes the entries of the list passed as ``name``, the first argument, in the same file: a call
    that adds one in a loop, a comprehension, or what else the list is. ``call`` where none is found."""
    given = source.argument(call, name, 0)
    if given is None:
        return call
    return _maker(source, given.value, source.scope(call)) or call


def _maker(
    source: Source, made: cst.BaseExpression, within: cst.CSTNode, depth: int = 3
) -> cst.CSTNode | None:
    """The same of the list ``made``, an expression in the function ``within``; None for none."""
    if isinstance(made, cst.Call):  # of a function that returns the list
        functions = source.functions(source.name(made.func).rpartition(".")[2])
        returned = [one for each in functions for one in source.nodes(cst.Return, within=each)]
        yielded = [one for each in functions for one in source.nodes(cst.Yield, within=each)]
        if len(functions) == len(yielded) == 1:  # of a generator
            return yielded[0]
        back = returned[-1].value if len(functions) == 1 and returned else None
        return _maker(source, back, functions[0], depth - 1) if back is not None and depth else None
    if not isinstance(made, cst.Name):
        return made
    calls = [one for one in source.nodes(cst.Call, within=within) if is_method(one, *_ADD)]
    added = [one for one in calls if getattr(receiver(one), "value", None) == made.value]
    filling = next((one for one in added if source.loops(one)), None)
    assigned = source.assigned(made.value, within=within)
    if filling is not None or not assigned:
        return filling
    deeper = _maker(source, assigned[-1], within, depth) if isinstance(assigned[-1], cst.Call) else None
    return deeper or assigned[-1]
