"""The edit that puts an optimizer's parameters with the same settings into one group."""

from __future__ import annotations

import builtins
from textwrap import indent

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.optimizer_step import is_by_name
from warpline.rulekit.terms import descend
from warpline.syntax.edits import Edits, Refused, free_name
from warpline.syntax.source import Source, Statement, appended, is_method, only_target, plain_lines
from warpline.text.lines import lines_of

#: What tells one group from another by its number, or may.
_BY_NUMBER = {
    "param_groups", "add_param_group", "LambdaLR", "MultiplicativeLR", "OneCycleLR", "CyclicLR",
    "get_last_lr", "load_state_dict",
}  # fmt: skip
_BY_HAND = "the code that makes a group for each parameter was not found"
#: Through how many names and functions the groups are followed to their optimizer: chosen, so that a circle
#: of them ends.
_DEPTH = 4
#: What may be around a comprehension that is computed before its statement.
_AROUND = (cst.Arg, cst.Call, cst.Assign, cst.Return, cst.Expr)


def same_settings_together(context: Context, place: tuple[str, int]) -> Fix:
    """One group for each set of settings, where the line makes one for each parameter: it appends or yields
    them in a loop, or has a comprehension. Raises Refused."""
    source = context.source(place[0])
    statement = source.statement_at(place[1])
    if statement is None:
        raise Refused(_BY_HAND)
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    call = small.value if isinstance(small, cst.Expr) else None
    loops, added = source.loops(statement), _added(small)
    edits = Edits(source)
    if loops and isinstance(call, cst.Yield) and isinstance(call.value, cst.BaseExpression):
        groups = free_name(source, "groups", "settled", "sorted_groups")
        _only_yield(context, source, statement)
        edits.insert_before(loops[-1], f"{groups} = []")
        edits.insert_after(loops[-1], f"yield from {groups}")
        code = _lists(source, call.value, call.value)
        edits.replace_statement(statement, _merged(source, groups, code))
    elif loops and added is not None:
        held, made = added
        if not isinstance(held, cst.Name):
            raise Refused(_BY_HAND)
        _only_filled(context, source, held, loops[-1])
        edits.replace_statement(statement, _merged(source, held.value, _lists(source, made, made)))
    else:
        _comprehension(context, source, statement, edits, place[1])
    _not_by_number(context)
    return edits.fix("Put parameters with the same settings into one group", "unsafe")


def _added(small: cst.CSTNode | None) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """The list and the group of ``groups.append(group)`` and of ``groups += [group]``."""
    grown = isinstance(small, cst.AugAssign) and isinstance(small.operator, cst.AddAssign)
    if isinstance(small, cst.AugAssign) and grown and isinstance(small.value, cst.List):
        several = [one.value for one in small.value.elements]
        return (small.target, several[0]) if len(several) == 1 else None
    return appended(small)


def _comprehension(context: Context, source: Source, statement: Statement, edits: Edits, line: int) -> None:
    """Takes the groups of a comprehension one after the other, before the statement. Raises Refused."""
    found = [one for one in source.at(line, cst.ListComp, cst.GeneratorExp) if source.line(one) == line]
    made = next(iter(found), None)
    if made is None or source.statement(made) is not statement:
        raise Refused(_BY_HAND)
    _only_passed_on(context, source, made)
    around = list(source.ancestors(made))
    if not all(isinstance(one, _AROUND) for one in around[: around.index(statement)]):
        raise Refused(_BY_HAND)
    code = _lists(source, made, made.elt)
    if isinstance(made, cst.GeneratorExp):
        code = f"[{code}]"
    above = around[0]
    target = above.targets[0].target if isinstance(above, cst.Assign) else None
    named = isinstance(target, cst.Name)
    groups = source.code(target) if named and target is not None else free_name(source, "groups", "settled")
    group, merged = _names(source)[0], _merged(source, groups)
    block = f"{groups} = []\nfor {group} in {code}:\n" + indent(merged, source.module.default_indent)
    if named:
        edits.replace_statement(statement, block)
    else:
        edits.insert_before(statement, block)
        edits.replace(made, groups)


def _names(source: Source) -> tuple[str, str]:
    return free_name(source, "group", "single", "made"), free_name(source, "other", "present", "kept")


def _merged(source: Source, groups: str, code: str | None = None) -> str:
    """Statements that add a group's parameters to those of ``groups`` with the same settings, else itself.
    ``code`` makes the group."""
    group, other = _names(source)
    step = source.module.default_indent
    return (f"{group} = {code}\n" if code is not None else "") + (
        f"for {other} in {groups}:\n"
        f'{step}if {other} == {{**{group}, "params": {other}["params"]}}:\n'
        f'{step * 2}{other}["params"] += {group}["params"]\n'
        f"{step * 2}break\n"
        "else:\n"
        f"{step}{groups}.append({group})"
    )


def _lists(source: Source, outer: cst.BaseExpression, group: cst.BaseExpression) -> str:
    """The code of ``outer``, in which ``group`` has a list of parameters. Raises Refused where that is not
    known."""
    entries = source.entries(group)
    value = entries.pop("params", None)
    bare = isinstance(value, cst.Name) and _is_parameter(source, value)
    if not entries or value is None or not (bare or isinstance(value, (cst.List, cst.ListComp))):
        raise Refused(_BY_HAND)
    if any("\n" in source.code(one) for one in source.nodes(cst.SimpleString, within=outer)):
        raise Refused(_BY_HAND)  # a text of several lines would be moved
    code = source.rewritten(outer, {value: f"[{source.code(value)}]"} if bare else {})
    # The code gets the indentation of the statement.
    indentation = source.indentation(source.line(source.statement(outer) or outer))
    return "\n".join(line.removeprefix(indentation) for line in lines_of(code))


def _is_parameter(source: Source, name: cst.Name) -> bool:
    """Whether the loop around it is over a module's parameters, and gives it one of them."""
    inner = source.enclosing(name, cst.ListComp, cst.GeneratorExp)
    turns: list[cst.For | cst.CompFor] = [
        *(descend(inner.for_in, cst.CompFor) if inner is not None else ()),
        *(one for one in source.loops(name) if isinstance(one, cst.For)),
    ]
    for loop in turns:
        pair = isinstance(loop.target, cst.Tuple)
        last = loop.target.elements[-1].value if isinstance(loop.target, cst.Tuple) else loop.target
        if isinstance(last, cst.Name) and last.value == name.value:
            return is_method(loop.iter, "named_parameters" if pair else "parameters")
    return False


# -- what else reads the groups ------------------------------------------------------------------


def _only_yield(context: Context, source: Source, statement: Statement) -> None:
    """Raises Refused where the generator gives something else, too, or not only to optimizers."""
    function = source.enclosing(statement, cst.FunctionDef)
    others = source.nodes(cst.Return, within=function)
    if function is None or others or len(source.nodes(cst.Yield, within=function)) != 1:
        raise Refused(_BY_HAND)
    _only_called(context, source, function, _DEPTH)


def _only_filled(context: Context, source: Source, held: cst.Name, loop: cst.CSTNode) -> None:
    """Raises Refused where the list ``held`` is not empty before ``loop``, or is not only for optimizers."""
    read = []
    for name in _same(source, held):
        above = source.parent(name)
        outer = source.parent(above) if above is not None else None
        if isinstance(above, cst.AssignTarget) and isinstance(outer, cst.Assign):
            if source.code(outer.value) != "[]" or source.inside(outer, loop):
                raise Refused(_BY_HAND)
        else:
            read.append(name)
    if not read:
        raise _elsewhere(held.value)
    for name in read:
        _only_passed_on(context, source, name)


def _only_passed_on(context: Context, source: Source, node: cst.CSTNode, depth: int = _DEPTH) -> None:
    """Raises Refused where something else than optimizers may read the list that ``node`` is."""
    above = source.parent(node)
    function = source.enclosing(node, cst.FunctionDef)
    if isinstance(above, cst.Arg) and _makes_optimizer(context, source, source.parent(above)):
        return
    if isinstance(above, cst.Return) and function is not None and depth:
        _only_called(context, source, function, depth - 1)
        return
    target = only_target(above)
    if isinstance(target, cst.Name) and depth:
        others = _same(source, target)
        if len(others) != 1:
            raise _elsewhere(target.value)
        _only_passed_on(context, source, others[0], depth - 1)
        return
    raise _elsewhere(source.code(node).partition("\n")[0])


def _only_called(context: Context, source: Source, function: cst.FunctionDef, depth: int) -> None:
    """Raises Refused where what ``function`` gives is not only for optimizers."""
    name, method = function.name.value, source.enclosing(function, cst.ClassDef) is not None
    for other in context.sources():
        for one in other.nodes(cst.Name):
            if one.value != name or one is function.name:
                continue
            above = other.parent(one)
            if isinstance(above, cst.ImportAlias) and above.asname is None:
                continue
            called: cst.CSTNode = one
            if isinstance(above, cst.Attribute):
                if above.attr is one and not method and not other.imported_from(above):
                    continue  # what an object has by that name
                called = above
            call = other.parent(called)
            if not isinstance(call, cst.Call) or call.func is not called:
                raise _elsewhere(name)
            _only_passed_on(context, other, call, depth)


def _same(source: Source, name: cst.Name) -> list[cst.Name]:
    """Where else the function, or the file, has the name of a value."""
    return [one for one in source.uses(name.value, source.scope(name)) if one is not name]


def _makes_optimizer(context: Context, source: Source, call: cst.CSTNode | None) -> bool:
    """Whether an optimizer was made while the call ran, or is by its name, as in a branch that did not run.
    Calls of builtins, such as ``zip``, do not count."""
    if isinstance(call, cst.Call) and is_by_name(source, call):
        return True
    if not isinstance(call, cst.Call) or hasattr(builtins, source.name(call.func)):
        return False
    places = {
        (place.file, place.line) for site in context.sites("optimizer") for place in (site, *site.frames)
    }
    return any(file == source.path and line in source.extent(call) for file, line in places)


def _elsewhere(code: str) -> Refused:
    return Refused(f"`{code}` may be read elsewhere, too")


def _not_by_number(context: Context) -> None:
    """Raises Refused where the files may distinguish groups by their numbers."""
    for source in context.sources():
        for name in source.nodes(cst.Name):
            if name.value in _BY_NUMBER and not _same_for_all(source, name):
                raise Refused(f"`{name.value}` may distinguish its groups by their numbers")


def _same_for_all(source: Source, name: cst.Name) -> bool:
    """Whether groups with the same settings are the same there: it is an import, reads a setting of the
    first group, which stays the first, gives all groups one function, or sets each by its own settings."""
    if source.enclosing(name, cst.ImportFrom) is not None:
        return True
    node = source.parent(name) if isinstance(source.parent(name), cst.Attribute) else name
    above = source.parent(node) if node is not None else None
    if name.value in ("LambdaLR", "MultiplicativeLR") and isinstance(above, cst.Call):
        given = source.argument(above, "lr_lambda", 1)
        defined = {one.name.value for one in source.nodes(cst.FunctionDef)}
        return given is not None and (
            isinstance(given.value, cst.Lambda) or source.code(given.value) in defined
        )
    if name.value == "get_last_lr":
        return source.code(source.parent(above or name) or name).endswith("get_last_lr()[0]")
    if name.value != "param_groups":
        return False
    if source.is_value(name):  # a list of that name, which is followed
        return True
    if isinstance(above, cst.Subscript):
        outer = source.parent(above)
        stored = isinstance(source.parent(outer or above), (cst.AssignTarget, cst.AugAssign))
        return source.code(above).endswith("param_groups[0]") and _is_setting(source, outer) and not stored
    return isinstance(above, cst.For) and above.iter is node and _sets_settings(source, above)


def _is_setting(source: Source, node: cst.CSTNode | None) -> bool:
    """Whether it is a group's entry by a literal key, and not the parameters."""
    if not isinstance(node, cst.Subscript) or len(node.slice) != 1:
        return False
    key = source.literal(node.slice[0])
    return isinstance(key, str) and key != "params"


def _sets_settings(source: Source, loop: cst.For) -> bool:
    """Whether the loop only assigns to settings of its group what follows from its settings and from values
    that are the same for all: it calls nothing that may be different each time."""
    smalls = plain_lines(loop.body)
    if smalls is None or not isinstance(loop.target, cst.Name):
        return False
    for small in smalls:
        target = small.target if isinstance(small, cst.AugAssign) else only_target(small)
        if not _is_setting(source, target):
            return False
        if not all(source.name(one.func) in _PURE for one in source.nodes(cst.Call, within=small)):
            return False
    uses = [one for one in source.nodes(cst.Name, within=loop.body) if one.value == loop.target.value]
    return all(_is_setting(source, source.parent(one)) for one in uses)


_PURE = ("min", "max", "abs", "float", "math.cos", "math.sin", "math.exp", "math.sqrt", "math.pow")
