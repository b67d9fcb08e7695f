"""Tensors and arrays that grow by concatenation, and the edit that concatenates once, after the loop."""

from __future__ import annotations

from dataclasses import dataclass, replace

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.lasting import lasting
from warpline.rulekit.terms import names_in
from warpline.rulekit.waiting import counter
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, Statement, only_target

_JOINS = ("torch.cat", "torch.concat", "torch.concatenate", "torch.hstack", "torch.vstack")
#: NumPy's, which leave no operators in a run.
_OF_ARRAYS = tuple(f"numpy.{name}" for name in ("concatenate", "vstack", "hstack", "row_stack", "append"))


@dataclass(frozen=True)
class Growth:
    """A tensor that grows by concatenation in a loop. ``statement``: all of it, with the test for the first
    piece. ``begins``: how that is told: "None", "round" (the loop's first one), or "" where nothing tests it,
    and the tensor that the loop finds is the first piece."""

    source: Source
    name: str
    call: cst.Call
    piece: cst.BaseExpression
    statement: Statement
    loop: cst.For | cst.While
    begins: str = ""


def join_in_loop(source: Source, line: int) -> Growth | None:
    """``out = torch.cat([out, piece])`` on ``line``, in a loop, perhaps in one branch of an ``if``."""
    for call in source.calls(line, *_JOINS, *_OF_ARRAYS[:-1]):
        above, loops = source.parent(call), source.loops(call)
        either = above if isinstance(above, cst.IfExp) else None
        target = only_target(source.parent(either) if either is not None else above)
        statement, parts = source.statement(call), call.args[0].value if call.args else None
        if not isinstance(target, cst.Name) or not loops or statement is None:
            continue
        if not isinstance(parts, (cst.List, cst.Tuple)) or len(parts.elements) != 2:
            continue
        first, second = parts.elements
        starred = any(isinstance(one, cst.StarredElement) for one in parts.elements)
        if source.code(first.value) == target.value and not starred:
            found = Growth(source, target.value, call, second.value, statement, loops[0])
            chosen = _in_branch(found) if either is None else _chosen(found, either, "")
            if chosen is not None or either is None:
                return chosen or found
    return None


def joins_arrays(source: Source, line: int) -> bool:
    """Whether ``line`` joins arrays of NumPy's."""
    return bool(source.calls(line, *_OF_ARRAYS))


def joined_again(source: Source, line: int) -> bool:
    """Whether ``line`` joins a piece to what the run before left in the same place, as
    ``self.queue = torch.cat([self.queue, piece])[-size:]`` does: an attribute of ``self``, or a variable from
    outside of the loop, or an entry of those."""
    for call in source.calls(line, *_JOINS, *_OF_ARRAYS):
        assign, given = source.enclosing(call, cst.Assign), [arg.value for arg in call.args]
        target = only_target(assign)
        if given and isinstance(given[0], (cst.List, cst.Tuple)):
            given = [item.value for item in given[0].elements]
        if assign is None or target is None or not source.inside(call, assign.value):
            continue
        if source.code(target) in {source.code(_whole(one)) for one in given}:
            return _stays(source, assign, target)
    return False


def _whole(value: cst.BaseExpression) -> cst.BaseExpression:
    """``queue`` of ``queue[1:]`` and ``queue[:, :-n]``."""
    cut = isinstance(value, cst.Subscript) and any(isinstance(one.slice, cst.Slice) for one in value.slice)
    return value.value if isinstance(value, cst.Subscript) and cut else value


def _stays(source: Source, assign: cst.Assign, target: cst.BaseExpression) -> bool:
    """Whether each run of the assignment finds what the one before left in its target."""
    holder, loops = target, source.loops(assign)
    while isinstance(holder, cst.Subscript):  # a loop over the entries joins once to each
        number = set().union(*(names_in(one) for one in holder.slice))
        loops = [one for one in loops if not isinstance(one, cst.For) or not number & names_in(one.target)]
        holder = holder.value
    own = isinstance(holder, cst.Attribute) and source.code(holder.value) == "self"
    around = loops[0] if loops else source.enclosing(assign, cst.FunctionDef) if own else None
    if around is None or not (own or isinstance(holder, cst.Name)):
        return False
    places = {source.code(target), source.code(holder)}
    given: list[cst.CSTNode] = [*source.bindings(source.code(holder), around)]
    given += [one.target for one in source.nodes(cst.AssignTarget, within=around) if one.target not in given]
    for one in given:
        statement, value = source.statement(one), source.enclosing(one, cst.Assign)
        again = value is not None and any(
            source.code(read) in places
            for read in source.nodes(cst.Name, cst.Attribute, cst.Subscript, within=value.value)
        )
        block = source.block(statement) if statement is not None else []
        if source.code(one) in places and not again and any(source.inside(assign, line) for line in block):
            return False
    return True


def is_read(growth: Growth) -> bool:
    """Whether the loop needs the tensor before it is complete."""
    source = growth.source
    used = source.uses(growth.name, growth.loop)
    own = source.uses(growth.name, growth.piece)
    return bool(own) or not all(source.inside(name, growth.statement) for name in used)


def _in_branch(growth: Growth) -> Growth | None:
    """``if out is None: out = piece`` ``else: out = cat(...)``, or the other way round."""
    source, block = growth.source, growth.source.block(growth.statement)
    above = source.parent(source.parent(growth.statement) or growth.statement)
    choice = source.parent(above) if isinstance(above, cst.Else) else above
    if not isinstance(choice, cst.If) or choice not in source.block(choice) or len(block) != 1:
        return None
    return _chosen(replace(growth, statement=choice), choice, f"{growth.name} = ")


def _chosen(growth: Growth, choice: cst.If | cst.IfExp, assigned: str) -> Growth | None:
    """``growth``, where ``choice`` takes the piece in the first round and joins it to the others later."""
    source, name = growth.source, growth.name
    tests = {f"{name} is None": ("None", True), f"{name} is not None": ("None", False)}
    if number := _number(growth):
        tests |= dict.fromkeys((f"{number} == 0", f"{number} < 1", f"not {number}"), ("round", True))
        tests |= dict.fromkeys(
            (f"{number} > 0", f"{number} != 0", f"{number} >= 1", number), ("round", False)
        )
    begins, first = tests.get(source.code(choice.test), ("", True))
    other = choice.orelse.body if isinstance(choice.orelse, cst.Else) else choice.orelse
    way = choice.body if first else other
    if not begins or way is None or source.inside(growth.call, way):
        return None
    same = source.code(way).strip() == assigned + source.code(growth.piece)
    return replace(growth, begins=begins) if same else None


def _number(growth: Growth) -> str:
    """The name that counts the loop's rounds from 0, where each of them runs the statement; else ""."""
    source, loop = growth.source, growth.loop
    found = counter(source, growth.statement)
    every = growth.statement in loop.body.body and not source.nodes(cst.Continue, cst.Break, within=loop)
    if found is None or not every or len(cst.ensure_type(found[1].iter, cst.Call).args) != 1:
        return ""
    return found[0] if len(source.bindings(found[0], loop)) == 1 else ""


def concatenated_once(growths: list[Growth]) -> Fix:
    """The pieces are collected in lists and concatenated after the loop, those of tensors that can be. Raises
    Refused where none can."""
    found, refused = list[Edits](), Refused("")
    for growth in growths:
        try:
            found.append(_collected(growth))
        except Refused as why:
            refused = why
    if not found:
        raise refused
    edits = Edits(growths[0].source)
    for one in found:
        edits.join(one)
    return edits.fix("Concatenate once, after the loop", "safe")


def _collected(growth: Growth) -> Edits:
    source, name = growth.source, growth.name
    parts = f"{name}_parts"
    if any(node.value == parts for node in source.nodes(cst.Name)):
        raise Refused(f"the name `{parts}` is already used")
    if growth.loop.orelse is not None:
        raise Refused("the loop has an `else`")
    # `torch.cat` copied each piece at once: one that changes later, or is a part of a larger one, still is.
    piece = lasting(source, growth.loop, growth.piece)
    if source.name(growth.call.func) in _OF_ARRAYS and piece.endswith(".clone()"):
        piece = f"{piece.removesuffix('.clone()')}.copy()"
    edits = Edits(source)
    if growth.begins == "None":
        edits.replace_statement(_start(growth), f"{parts} = []")
    else:
        edits.insert_before(growth.loop, f"{parts} = [{'' if growth.begins else name}]")
    edits.replace_statement(growth.statement, f"{parts}.append({piece})")
    rest = "".join(f", {source.code(arg)}" for arg in growth.call.args[1:]).rstrip(", ")
    edits.insert_after(growth.loop, f"{name} = {source.code(growth.call.func)}({parts}{rest})")
    return edits


def _start(growth: Growth) -> Statement:
    """``out = None`` right above the loop. Raises Refused where that is not found."""
    block = growth.source.block(growth.loop)
    for item in reversed(block[: block.index(growth.loop)]):
        if growth.source.code(item).strip() == f"{growth.name} = None":
            return item
    raise Refused("the assignment of None was not found directly above the loop")
