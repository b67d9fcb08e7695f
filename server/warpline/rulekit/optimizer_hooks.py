"""Optimizers of one parameter each that hooks step within the backward pass, and the edit that makes one of
them, stepped after it. It may be seen by other hooks only: with each gradient the hook steps and drops it."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.optimizer_step import HOOK, making_call
from warpline.syntax.edits import Edits, Refused, free_name
from warpline.syntax.source import (
    NOT_LITERAL,
    Source,
    Statement,
    alone,
    is_method,
    only_target,
    plain_lines,
    receiver,
)
from warpline.wire.run import Site

_BY_HAND = (
    "make one optimizer of all parameters, with `fused=True`, and call its `step()` after `backward()`. "
    "Saved states do not fit it"
)


def one_after_backward(context: Context, site: Site, kind: str) -> Fix:
    """One fused optimizer in place of a dict of them, which steps after the only backward pass, and no hook.
    Raises Refused."""
    source = context.source(site.file)
    call = making_call(source, site, kind)
    hooks, passes = [*context.calls(HOOK)], [*context.calls("backward")]
    if call is None or len(hooks) != 1 or len(passes) != 1 or context.sites("parallel"):
        raise Refused(_BY_HAND)
    (other, registering), (third, backward) = hooks[0], passes[0]
    if other is not source or third is not source or source.scope(call) is not source.scope(registering):
        raise Refused(_BY_HAND)
    made, loop, target = _made(source, call)
    held, parameter = source.code(target), source.code(loop.target)
    hooked = next(iter(source.loops(registering)), None)
    if not isinstance(hooked, cst.For) or _turns(source, hooked) != _turns(source, loop):
        raise Refused(_BY_HAND)
    for one in {loop, hooked}:
        _only(source, one, (source.statement(call), source.statement(registering)))
    hook = _hook(source, registering, held, parameter)
    empty = _empty(source, made, held) if isinstance(loop, cst.For) else None
    parts = [made, hook, *([empty] if empty is not None else [])]
    _nowhere_else(context, source, held, parts)
    _nowhere_else(context, source, hook.name.value, [hook, registering])
    after = _after(source, backward, call, held)
    edits, short = Edits(source), free_name(source, "optimizer", "opt", "solver")
    name = f"self.{short}" if isinstance(target, cst.Attribute) else short
    edits.replace_statement(made, f"{name} = {_of_all(source, call, loop)}")
    for part in (empty, hooked if hooked is not made else None):
        if part is not None:
            edits.remove(part)
    edits.remove_function(hook)
    edits.insert_after(after, f"{name}.step()\n{name}.zero_grad()")
    return edits.fix(f"One {kind} of all parameters, after the backward pass", "unsafe")


_Loop = cst.For | cst.CompFor


def _made(source: Source, call: cst.Call) -> tuple[Statement, _Loop, cst.BaseExpression]:
    """The statement that makes the optimizers, its loop, and the dict that holds them, as in
    ``{p: AdamW([p]) for p in …}``, or ``held[p] = AdamW([p])`` in a loop. Raises Refused."""
    above, given = source.parent(call), source.argument(call, "params", 0)
    loop: cst.CSTNode | None
    if isinstance(above, cst.DictComp):
        loop, target, key = above.for_in, only_target(source.parent(above)), source.code(above.key)
        made = source.statement(above)
    else:
        entry = only_target(above)
        loop = made = next(iter(source.loops(call)), None)
        target = entry.value if isinstance(entry, cst.Subscript) else None
        key = source.code(entry.slice[0]) if isinstance(entry, cst.Subscript) else ""
    if not isinstance(loop, _Loop) or made is None or target is None or given is None:
        raise Refused(_BY_HAND)
    if not key == source.code(loop.target) == source.code(given.value)[1:-1]:
        raise Refused(_BY_HAND)
    if isinstance(target, cst.Attribute) and source.code(target.value) != "self":
        raise Refused(_BY_HAND)
    return made, loop, target


def _turns(source: Source, loop: _Loop) -> tuple[str, str]:
    return source.code(loop.target), source.code(loop.iter)


def _only(source: Source, loop: _Loop, kept: tuple[Statement | None, ...]) -> None:
    """Raises Refused where the loop does something else than ``kept``, or leaves out more than parameters
    that get no gradient."""
    trains = f"{source.code(loop.target)}.requires_grad"
    if isinstance(loop, cst.For):
        _only_in(source, loop.body, trains, kept)
    elif loop.inner_for_in is not None or any(source.code(one.test) != trains for one in loop.ifs):
        raise Refused(_BY_HAND)


def _only_in(source: Source, block: cst.BaseSuite, trains: str, kept: tuple[Statement | None, ...]) -> None:
    for one in block.body:
        if isinstance(one, cst.If) and source.code(one.test) == trains and one.orelse is None:
            _only_in(source, one.body, trains, kept)
        elif one not in kept or alone(one) is None:
            raise Refused(_BY_HAND)


def _hook(source: Source, registering: cst.Call, held: str, parameter: str) -> cst.FunctionDef:
    """The function that is registered, where it steps a parameter's optimizer, drops the gradient, and does
    no more. Raises Refused."""
    given = source.code(registering.args[0].value) if registering.args else ""
    found = source.functions(given.removeprefix("self."))
    bare = isinstance(source.parent(registering), cst.Expr)
    if len(found) != 1 or found[0].decorators or not bare or _on(source, registering) != parameter:
        raise Refused(_BY_HAND)
    names = [one.name.value for one in found[0].params.params]
    if not names or names[:-1] != (["self"] if given.startswith("self.") else []):
        raise Refused(_BY_HAND)
    optimizers, does = {f"{held}[{names[-1]}]"}, []
    for small in plain_lines(found[0].body) or ():
        value = small.value if isinstance(small, (cst.Assign, cst.Expr)) else None
        target = only_target(small)
        if isinstance(target, cst.Name) and value is not None and source.code(value) in optimizers:
            optimizers.add(target.value)
        elif is_method(value, "step", "zero_grad") and _on(source, value) in optimizers:
            does.append(source.code(value).rpartition(".")[2])
        elif not isinstance(value, cst.SimpleString):
            does.append(source.code(small))
    cleared = ("zero_grad()", "zero_grad(set_to_none=True)", f"{names[-1]}.grad = None")
    if len(does) != 2 or does[0] != "step()" or does[1] not in cleared:
        raise Refused(_BY_HAND)
    return found[0]


def _on(source: Source, call: cst.Call) -> str:
    """The code of what a method is called on."""
    return source.code(called) if (called := receiver(call)) is not None else ""


def _empty(source: Source, made: Statement, held: str) -> Statement:
    """The statement before the loop that makes the dict. Raises Refused."""
    for one in source.block(made):
        small = alone(one)
        target = small.target if isinstance(small, cst.AnnAssign) else only_target(small)
        if target is not None and source.code(target) == held:
            value = small.value if isinstance(small, (cst.AnnAssign, cst.Assign)) else None
            if value is not None and source.code(value) in ("{}", "dict()"):
                return one
    raise Refused(_BY_HAND)


def _nowhere_else(context: Context, source: Source, code: str, parts: Sequence[cst.CSTNode]) -> None:
    """Raises Refused where a name is used outside these parts of the file."""
    name = code.rpartition(".")[2]
    for other in context.sources():
        for one in other.nodes(cst.Name):
            inside = other is source and any(source.inside(one, part) for part in parts)
            if one.value == name and not inside:
                raise Refused(f"`{name}` is used elsewhere, too: {_BY_HAND}")


def _after(source: Source, backward: cst.Call, call: cst.Call, held: str) -> Statement:
    """The statement of the backward pass, where it sees what ``call`` makes. Raises Refused."""
    statement, scope = source.statement(backward), source.scope(call)
    if held.startswith("self."):
        owner = source.enclosing(call, cst.ClassDef)
        sees = owner is not None and owner is source.enclosing(backward, cst.ClassDef)
    else:
        later = source.line(backward) > source.line(call)
        sees = scope is source.module or (later and source.inside(backward, scope))
    if statement is None or not sees or not isinstance(alone(statement), cst.Expr):
        raise Refused(_BY_HAND)
    return statement


def _of_all(source: Source, call: cst.Call, loop: _Loop) -> str:
    """The call with all parameters. Raises Refused where its settings differ from one to another, or are
    unpacked."""
    first = source.argument(call, "params", 0)
    given = [source.code(loop.iter)]
    for arg in call.args:
        name = arg.keyword.value if arg.keyword is not None else ""
        if arg is first:
            continue
        if (
            arg.star
            or source.nodes(cst.Call, within=arg)
            or source.uses(source.code(loop.target), within=arg)
        ):
            raise Refused(_BY_HAND)
        if name in ("foreach", "fused"):
            if source.literal(arg.value) is NOT_LITERAL:
                raise Refused(_BY_HAND)
            continue
        given.append(f"{name}={source.code(arg.value)}" if name else source.code(arg.value))
    return f"{source.code(call.func)}({', '.join([*given, 'fused=True'])})"
