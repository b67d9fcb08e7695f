"""The edit that puts an optimizer's parameters with the same settings into one group."""

from __future__ import annotations

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, is_method

#: What tells one group from another by its number.
_BY_NUMBER = {
    "param_groups", "add_param_group", "LambdaLR", "MultiplicativeLR", "OneCycleLR", "CyclicLR",
    "load_state_dict",
}  # fmt: skip
_BY_HAND = "the code that makes a group for each parameter was not found"


def same_settings_together(context: Context, place: tuple[str, int]) -> Fix:
    """One group for each set of settings, where the line appends or yields one for each parameter. Raises
    Refused."""
    source = context.source(place[0])
    statement = source.statement_at(place[1])
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    call = small.value if isinstance(small, cst.Expr) else None
    if statement is None or not source.loops(statement):
        raise Refused(_BY_HAND)
    edits, taken = Edits(source), {name.value for name in source.nodes(cst.Name)}
    made: cst.CSTNode | None = None
    groups = ""
    if isinstance(call, cst.Yield):
        made, groups = call.value, _free(taken, "groups", "settled", "sorted_groups")
        _only_called(source, statement)
        loop = source.loops(statement)[-1]
        edits.insert_before(loop, f"{groups} = []")
        edits.insert_after(loop, f"yield from {groups}")
    elif isinstance(call, cst.Call) and is_method(call, "append") and len(call.args) == 1:
        held = call.func.value if isinstance(call.func, cst.Attribute) else None
        if not isinstance(held, cst.Name):
            raise Refused(_BY_HAND)
        made, groups = call.args[0].value, held.value
        _only_passed_on(source, held, statement)
    if not isinstance(made, cst.Dict):
        raise Refused(_BY_HAND)
    parameter, settings = _entries(source, made)
    for other in context.sources():
        for name in other.nodes(cst.Name):
            if name.value in _BY_NUMBER:
                raise Refused(f"`{name.value}` may tell its groups apart by their numbers")
    kept, one = _free(taken, "settings", "options", "same"), _free(taken, "group", "other", "present")
    step = source.module.default_indent
    edits.replace_statement(
        statement,
        f"{kept} = {{{', '.join(settings)}}}\n"
        f"for {one} in {groups}:\n"
        f"{step}if {{key: {one}[key] for key in {kept}}} == {kept}:\n"
        f'{step * 2}{one}["params"].append({parameter})\n'
        f"{step * 2}break\n"
        "else:\n"
        f'{step}{groups}.append({{"params": [{parameter}], **{kept}}})',
    )
    return edits.fix("Put parameters with the same settings into one group", "unsafe")


def _only_called(source: Source, statement: cst.CSTNode) -> None:
    """Raises Refused where the generator yields elsewhere, too, or is called more than once."""
    function = source.enclosing(statement, cst.FunctionDef)
    named = [
        one for one in source.nodes(cst.Name) if function is not None and one.value == function.name.value
    ]
    yields = source.nodes(cst.Yield, within=function)
    if function is None or len(named) != 2 or len(yields) != 1 or source.nodes(cst.Return, within=function):
        raise Refused(_BY_HAND)


def _is_parameter(source: Source, name: cst.Name) -> bool:
    """Whether the loop around it is over a module's parameters, and gives it one of them."""
    for loop in source.loops(name):
        if isinstance(loop, cst.For):
            pair = isinstance(loop.target, cst.Tuple)
            last = loop.target.elements[-1].value if isinstance(loop.target, cst.Tuple) else loop.target
            if isinstance(last, cst.Name) and last.value == name.value:
                return is_method(loop.iter, "named_parameters" if pair else "parameters")
    return False


def _entries(source: Source, made: cst.Dict) -> tuple[str, list[str]]:
    """The one parameter of a group, and its other entries as they are written. Raises Refused."""
    parameter, settings = None, []
    for element in made.elements:
        key = source.literal(element.key) if isinstance(element, cst.DictElement) else None
        if not isinstance(element, cst.DictElement) or not isinstance(key, str):
            raise Refused(_BY_HAND)
        if key == "params":
            value = element.value
            one: cst.BaseExpression | None = value
            if isinstance(value, cst.List):
                one = value.elements[0].value if len(value.elements) == 1 else None
            elif not isinstance(value, cst.Name) or not _is_parameter(source, value):
                one = None
            parameter = source.code(one) if isinstance(one, cst.Name) else None
        else:
            settings.append(f"{source.code(element.key)}: {source.code(element.value)}")
    if parameter is None or not settings or "#" in source.code(made):
        raise Refused(_BY_HAND)
    return parameter, settings


def _only_passed_on(source: Source, groups: cst.Name, statement: cst.CSTNode) -> None:
    """Raises Refused where something else than the optimizer may read the list, or what is in it."""
    function = source.enclosing(statement, cst.FunctionDef) or source.module
    read = []
    for name in source.nodes(cst.Name, within=function):
        if name.value != groups.value or name is groups or not source.is_value(name):
            continue
        above = source.parent(name)
        outer = source.parent(above) if above is not None else None
        if isinstance(above, cst.AssignTarget) and isinstance(outer, cst.Assign):
            if source.code(outer.value) != "[]" or source.inside(outer, source.loops(statement)[-1]):
                raise Refused(_BY_HAND)
        elif isinstance(above, (cst.Return, cst.Arg)):
            read.append(name)
        else:
            raise Refused(f"`{groups.value}` is read elsewhere, too")
    if len(read) != 1:
        raise Refused(f"`{groups.value}` is read elsewhere, too")


def _free(taken: set[str], *names: str) -> str:
    found = next((name for name in names if name not in taken), None)
    if found is None:
        raise Refused("there is no free name for what the groups have in common")
    return found
