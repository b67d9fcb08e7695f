"""A tensor that one statement of a function makes on the host and another one moves to the device."""

from __future__ import annotations

import libcst as cst

from warpline.rulekit.context import Context
from warpline.rulekit.copies import moved_to
from warpline.rulekit.made_here import check_arguments, made_here, of_device
from warpline.rulekit.origins import assignments
from warpline.rulekit.terms import descend, names_in
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, only_target, receiver

_APART = "one statement creates it and another one moves it: pass `device=` where it is created"


def made_moved(
    context: Context, source: Source, made: list[cst.Call], moves: list[cst.Call]
) -> tuple[Edits, bool]:
    """``device=`` for the only call that makes it, of the only move, which stays and has nothing left to do;
    and whether the tensor is the same on the device. Raises Refused."""
    function = source.enclosing(made[0], cst.FunctionDef) if len(made) == 1 else None
    assign = source.enclosing(made[0], cst.Assign) if function is not None else None
    target = only_target(assign)
    if function is None or assign is None or not isinstance(target, cst.Name):
        raise Refused(_APART)
    found = made_here(context, source, assign.value)
    moves = [
        one
        for one in moves
        if source.code(receiver(one) or one) == target.value and source.inside(one, function)
    ]
    if found is None or found.call is not made[0] or found.pinned or len(moves) != 1:
        raise Refused(_APART)
    device = moved_to(source, moves[0])["device"]
    test = _test(source, assign, moves[0], target.value, function)
    read = names_in(moves[0].args[0].value) if moves[0].args else set[str]()
    if any(read & names_in(one) for one in source.nodes(cst.AssignTarget, within=function)):
        raise Refused(_APART)
    check_arguments(source, made[0])
    edits = Edits(source)
    if test is not None:
        if source.argument(made[0], "generator") is not None:
            raise Refused(_APART)
        device = f'{device} if {source.code(test)} else "cpu"'
    of_device(context, edits, made[0], device)
    return edits.set_argument(made[0], "device", device), found.exact


def _test(
    source: Source, made: cst.Assign, move: cst.Call, name: str, function: cst.FunctionDef
) -> cst.BaseExpression | None:
    """What has to hold for the move, where the tensor is read without it as well. Raises Refused where more
    reads it than the move, but for what comes after ``x = x.cuda()``: that might be something which only
    works on the host."""
    moved = source.statement(move)
    others = [
        one
        for one in source.uses(name, function)
        if not source.inside(one, made) and one is not receiver(move)
    ]
    if moved is None or not others:
        return None
    again = [
        one for one, value in assignments(source, within=moved) if value is move and source.code(one) == name
    ]
    others = [one for one in others if one not in again]
    around, block = source.enclosing(moved, cst.If), source.block(made)
    if len(again) != 1 or any(source.line(one) <= source.line(moved) for one in others):
        raise Refused(_APART)
    if moved in block:
        return None
    if around not in block or around is None or around.orelse is not None or moved not in around.body.body:
        raise Refused(_APART)
    between = range(source.line(made), source.line(around))
    given = [
        one for word in names_in(around.test) for one in source.uses(word, function) if source.binds(one)
    ]
    calls = [one for one in descend(around.test, cst.Call) if not source.is_named(one.func, "is_available")]
    if calls or any(source.line(one) in between for one in given):
        raise Refused(_APART)
    return around.test
