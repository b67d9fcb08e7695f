"""Tensors that grow by ``out = torch.cat([out, piece])`` in a loop, and the edit that concatenates once."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.lasting import lasting
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, Statement, only_target

_JOINS = ("torch.cat", "torch.concat", "torch.concatenate", "torch.hstack", "torch.vstack")


@dataclass(frozen=True)
class Growth:
    """A tensor that grows by concatenation in a loop."""

    source: Source
    name: str
    call: cst.Call
    piece: cst.BaseExpression
    statement: Statement
    loop: cst.For | cst.While


def join_in_loop(source: Source, line: int) -> Growth | None:
    """``out = torch.cat([out, piece])`` on ``line``, in a loop."""
    for call in source.calls(line, *_JOINS):
        statement, target, loops = (
            source.statement(call),
            only_target(source.parent(call)),
            source.loops(call),
        )
        parts = call.args[0].value if call.args else None
        if not isinstance(target, cst.Name) or not loops or statement is None:
            continue
        if not isinstance(parts, (cst.List, cst.Tuple)) or len(parts.elements) != 2:
            continue
        first, second = parts.elements
        starred = any(isinstance(one, cst.StarredElement) for one in parts.elements)
        if source.code(first.value) == target.value and not starred:
            return Growth(source, target.value, call, second.value, statement, loops[0])
    return None


def is_read(growth: Growth) -> bool:
    """Whether the loop needs the tensor before it is complete."""
    source = growth.source
    own = {growth.statement, _choice(growth)}
    return not all(
        any(item is not None and source.inside(name, item) for item in own)
        for name in source.uses(growth.name, growth.loop)
    )


def _choice(growth: Growth) -> cst.If | None:
    """``if out is None: out = piece`` ``else: out = cat(...)``."""
    source = growth.source
    other = source.parent(source.parent(growth.statement) or growth.statement)
    choice = source.parent(other) if isinstance(other, cst.Else) else None
    if not isinstance(choice, cst.If) or source.code(choice.test) != f"{growth.name} is None":
        return None
    if len(choice.body.body) != 1 or len(source.block(growth.statement)) != 1:
        return None
    first = source.code(choice.body.body[0]).strip()
    return choice if first == f"{growth.name} = {source.code(growth.piece)}" else None


def concatenated_once(growth: Growth) -> Fix:
    """The pieces are collected in a list and concatenated after the loop. Raises Refused."""
    source, name = growth.source, growth.name
    parts = f"{name}_parts"
    if any(node.value == parts for node in source.nodes(cst.Name)):
        raise Refused(f"the name `{parts}` is already used")
    if growth.loop.orelse is not None:
        raise Refused("the loop has an `else`")
    choice = _choice(growth)
    # `torch.cat` copied each piece at once: one that changes later, or is a part of a larger one, still is.
    piece = lasting(source, growth.loop, growth.piece)
    edits = Edits(source)
    start = _start(growth)
    if choice is not None:
        if start is None:
            raise Refused("the assignment of None was not found directly above the loop")
        edits.replace_statement(start, f"{parts} = []")
        edits.replace_statement(choice, f"{parts}.append({piece})")
    else:
        edits.insert_before(growth.loop, f"{parts} = [{name}]")
        edits.replace_statement(growth.statement, f"{parts}.append({piece})")
    rest = "".join(f", {source.code(arg)}" for arg in growth.call.args[1:]).rstrip(", ")
    edits.insert_after(growth.loop, f"{name} = {source.code(growth.call.func)}({parts}{rest})")
    return edits.fix("Concatenate once, after the loop", "safe")


def _start(growth: Growth) -> Statement | None:
    """``out = None`` right above the loop."""
    block = growth.source.block(growth.loop)
    above = block[: block.index(growth.loop)]
    return next(
        (item for item in reversed(above) if growth.source.code(item).strip() == f"{growth.name} = None"),
        None,
    )
