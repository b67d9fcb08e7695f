"""Command-line options: the calls that add them, their defaults, and what was passed."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from warpline.rulekit.context import Context
from warpline.syntax.source import Source, receiver

_BARE = ("store_true", "store_false")


def adding(context: Context, name: str) -> Iterator[tuple[Source, cst.Call, str]]:
    """Calls that add an option for ``name``, and the spelling of the option in each."""
    wanted = {f"--{name}", f"--{name.replace('_', '-')}"}
    for source, call in context.calls("add_argument", "option"):
        names = option_names(source, call)
        told = source.passed(call, "dest")
        found = [one for one in names if one in wanted or told == name]
        if found and told in (None, name):
            yield source, call, found[0]


def defaults(context: Context, name: str) -> Iterator[tuple[Source, cst.BaseExpression, str]]:
    """What ``name`` is unless it is passed, with words for a message: what a parser's ``set_defaults`` says,
    else the defaults of its options."""
    given = ((source, source.argument(call, name)) for source, call in context.calls("set_defaults"))
    set_ = [(source, one.value, f"the default of `{name}`") for source, one in given if one is not None]
    yield from set_
    for source, call, spelled in adding(context, name) if not set_ else ():
        default = source.argument(call, "default")
        if default is not None:
            yield source, default.value, f"the option `{spelled}`"


def switches(source: Source, call: cst.Call) -> cst.BaseExpression | None:
    """The action of an option that has no default, and is off unless it is passed, or on; None of another
    one."""
    action = source.argument(call, "action")
    bare = source.passed(call, "action") in _BARE and source.argument(call, "default") is None
    return action.value if action is not None and bare else None


def choices(source: Source, default: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What an option with this ``default`` may be: its ``choices``."""
    call = source.enclosing(default, cst.Call)
    given = source.argument(call, "choices") if call is not None else None
    listed = given.value if given is not None else None
    return [one.value for one in listed.elements] if isinstance(listed, (cst.List, cst.Tuple)) else []


def spellings(context: Context, source: Source, default: cst.BaseExpression) -> set[str]:
    """The words of the command line that give an option another value than this ``default``."""
    call, arg = source.enclosing(default, cst.Call), source.enclosing(default, cst.Arg)
    if call is None:
        return set()
    name = _given_to(source, call)
    if source.is_named(call.func, "set_defaults") and arg is not None and arg.keyword is not None:
        name = arg.keyword.value
    calls = [(where, one) for where, one, _ in adding(context, name)] if name else []
    names = {name for where, one in [(source, call), *calls] for name in option_names(where, one)}
    return names | {f"--no-{name[2:]}" for name in names if name.startswith("--")}


def _given_to(source: Source, call: cst.Call) -> str:
    """The name that ``add_argument`` gives its value: several options may share it."""
    told = source.passed(call, "dest")
    long = (one[2:].replace("-", "_") for one in option_names(source, call) if one.startswith("--"))
    return told if isinstance(told, str) else next(long, "")


def firsts(added: Iterator[tuple[Source, cst.Call, str]]) -> Iterator[tuple[Source, cst.Call]]:
    """The first that each parser gets of the options that share a name: its default counts."""
    seen = set()
    for source, call, _ in added:
        parser = source.path, source.code(receiver(call) or call.func), source.scope(call)
        if parser not in seen:
            seen.add(parser)
            yield source, call


def of_field(name: str) -> set[str]:
    """The options by which parsers of dataclasses set the field ``name``."""
    spelled = (name, name.replace("_", "-"))
    return {f"--{no}{one}" for one in spelled for no in ("", "no_", "no-")}


def options_passed(context: Context) -> list[str]:
    """The words of the command line, each without what is behind its ``=``."""
    return [word.split("=")[0] for word in context.profile.manifest.argv]


def option_names(source: Source, call: cst.Call) -> list[str]:
    """All spellings of the option that ``add_argument("-j", "--workers", …)`` adds."""
    names = (source.literal(arg.value) for arg in call.args if arg.keyword is None)
    return [name for name in names if isinstance(name, str)]
