"""The edit that makes a loader once, where a function of the script's makes an equal one for each epoch."""

from __future__ import annotations

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.constants import changed
from warpline.rulekit.context import Context
from warpline.rulekit.loaders import change_loader, loader_call
from warpline.syntax.edits import Edits, Refused, free_name
from warpline.syntax.source import Source
from warpline.wire.run import Site
from warpline.wire.sites import Loader, facts_of

_BY_HAND = "make the loader once, unless each epoch needs a different one"


def before_epochs(context: Context, site: Site) -> Fix:
    """The call of the function that makes the loader before the loop over the epochs, and workers that stay.
    Raises Refused where the loaders, or their dataset, may differ from epoch to epoch."""
    source, call = loader_call(context, site)
    function = _maker(source, call)
    calls = [*context.calls(function.name.value)] if function is not None else []
    if function is None or len(calls) != 1 or not _is_settled(context, source, function, call):
        raise Refused(_BY_HAND)
    where, made = calls[0]
    loop = next((one for one in where.loops(made) if where.inside(made, one.body)), None)
    if loop is None or _is_given_anew(where, made, loop) or _may_change(context, site):
        raise Refused(_BY_HAND)
    edits = Edits(where)
    kept = free_name(where, "loader", "kept_loader", "same_loader")
    edits.insert_before(loop, f"{kept} = {where.code(made)}")
    edits.replace(made, kept)
    title = "Make the loader once, and keep its workers (persistent_workers)"
    return change_loader(context, site, title, others=[edits], persistent_workers="True")


def _maker(source: Source, call: cst.Call) -> cst.FunctionDef | None:
    """The function that returns ``call`` and does nothing else."""
    function = source.enclosing(call, cst.FunctionDef)
    if function is None or function.decorators or not isinstance(source.parent(call), cst.Return):
        return None
    return function if len(source.block(call)) == 1 and source.statement(call) in function.body.body else None


def _is_settled(context: Context, source: Source, function: cst.FunctionDef, call: cst.Call) -> bool:
    """Whether the arguments of ``call`` are the same each time that ``function`` has the same: its own
    parameters, what the file names once, and attributes that only an ``__init__`` gives."""
    given = {one.name.value for one in source.nodes(cst.Param, within=function)}
    args = [arg.value for arg in call.args]
    names = [one for arg in args for one in source.nodes(cst.Name, within=arg) if source.is_value(one)]
    named = {one.value for one in names} - given
    attributes = {one.attr.value for arg in args for one in source.nodes(cst.Attribute, within=arg)}
    bound = [one.value for one in source.nodes(cst.Name) if one.value in named and source.binds(one)]
    again = any(source.nodes(cst.Call, cst.Await, within=arg) for arg in args)
    return (
        not again
        and len(bound) == len(set(bound))
        and not any(
            one.attr.value in attributes and other.binds(one) and not _in_init(other, one)
            for other in context.sources()
            for one in other.nodes(cst.Attribute)
        )
    )


def _in_init(source: Source, node: cst.CSTNode) -> bool:
    function = source.enclosing(node, cst.FunctionDef)
    return function is not None and function.name.value == "__init__"


def _is_given_anew(source: Source, call: cst.Call, loop: cst.For | cst.While) -> bool:
    """Whether the loop gives a name in ``call`` another value."""
    read = {source.code(one) for one in source.nodes(cst.Name, cst.Attribute, within=call)}
    return any(source.bindings(code, loop) for code in read)


def _may_change(context: Context, site: Site) -> bool:
    """Whether anything but its ``__init__`` may write into the dataset. Workers that stay keep their copy."""
    loader = facts_of(Loader, site)
    source, line = context.source(loader.dataset_file or ""), loader.dataset_line or 0
    owner = next(iter(source.at(line, cst.ClassDef)), None)
    made = [one for one in source.nodes(cst.FunctionDef, within=owner) if one.name.value == "__init__"]
    if owner is None or len(made) != 1:
        return True
    own = source.nodes(cst.Attribute, within=owner)
    return changed(
        context, {one.attr.value for one in own if source.code(one.value) == "self"}, made[0], owner
    )
