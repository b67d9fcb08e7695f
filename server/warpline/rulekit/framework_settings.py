"""Arguments of a framework's construction, written where the user constructs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import libcst as cst

from warpline.model.costs import bound
from warpline.model.report import Edit, Fix
from warpline.rulekit.changing import Changes
from warpline.rulekit.context import Context
from warpline.rulekit.flags import switch_of, turned
from warpline.rulekit.frameworks import construction_call, made_by, values_of
from warpline.rulekit.holders import argument, display_of, holder
from warpline.rulekit.literals import written_for
from warpline.rulekit.options import of_field, options_passed
from warpline.rulekit.origins import field_default, origin, overridden
from warpline.rulekit.reached import main_edit
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import NOT_LITERAL, Source, called_name, is_method, only_target, receiver
from warpline.wire.frameworks import HALVES, Construction, Setting, constructions
from warpline.wire.run import Site
from warpline.wire.sites import Framework, Optimizer, facts_of

#: Arguments by position that a class has in common with the newer one.
_ALIKE = 2
#: What a larger batch does beside it.
ACCUMULATES = ", accumulate half as often"
#: Share of the device's free memory that weights may take.
MOST_OF_FREE = bound("memory-for-activations")


def setting_fix(
    context: Context, site: Site, one: Construction, setting: Setting, workers: int | None = None
) -> Fix:
    """Make the setting at ``site``, where ``one`` was constructed. Raises Refused."""
    values = values_of(site)
    _fits_device(context, setting.needs)
    for name in setting.unless:
        if values.get(name) not in (None, False, "no"):
            raise Refused(f"`{name}` is set there")
    found = construction_call(context, site, one)
    if found is None:
        raise Refused(f"the call of `{one.name}` was not found on that line")
    source, call = found
    if setting.without and setting.without in source.text:
        raise Refused(f"`{setting.without.rstrip('(')}` in this file does not go with it")
    _goes_with_optimizers(context, setting, values)
    if setting.undo:
        return _without(context, source, call, setting)
    if setting.classes:
        return _of_better_class(context, source, call, setting)
    if setting.instead:
        return _instead(context, site, source, call, setting)
    return _Making(context, site, one, setting, source, call).fix(workers)


def edited_at(
    context: Context, site: Site, one: Construction, settings: Sequence[Setting], fix: Fix | str | None
) -> tuple[str, int]:
    """Where ``fix`` makes one of ``settings``, or a value is to be changed by hand where there is no edit:
    where that is written, in a file that the script reads perhaps, else the construction."""
    found = construction_call(context, site, one)
    edit = main_edit(fix) if isinstance(fix, Fix) else None
    if found is None:
        return site.place
    if edit is None:
        held = (holder(site, name) for setting in settings for name in setting.arguments)
        return next((each.place for each in held if each is not None), site.place)
    source, call = found
    first, last = source.span(call)[0][0], source.span(call)[1][0]
    # A statement of its own, above or below, or an argument; not letters that are put into a value.
    beside = edit.start == edit.end and not _in_value(context.source(edit.file), edit)
    if beside and edit.file == site.file and first - 1 <= edit.start[0] <= last + 1:
        return site.place
    own = own_class(context, facts_of(Framework, site).type)
    if own is not None and edit.file == own[0].path and beside:  # a new field
        begins, ends = own[0].span(own[1])
        if begins[0] <= edit.start[0] <= ends[0] + 1:
            return edit.file, own[0].line(own[1].name)
    return edit.file, edit.start[0]


def _in_value(source: Source, edit: Edit) -> bool:
    """Whether ``edit`` begins within a word, number or string."""
    spans = map(source.span, source.at(edit.start[0], cst.SimpleString, cst.Integer, cst.Float, cst.Name))
    return any(start < edit.start < end for start, end in spans)


def _fits_device(context: Context, needs: str) -> None:
    """Raises Refused where the device has not what a setting needs."""
    if needs == "graphs" and not context.on_gpu:
        raise Refused("the device replays no graphs")
    if needs in ("bf16", "fp16") and (needs == "bf16") != context.device.bf16:
        raise Refused("the device has bfloat16" if context.device.bf16 else "the device has no bfloat16")


def accumulating_half(context: Context) -> list[Edits]:
    """The edits by which a framework adds up the gradients of half as many batches. Raises Refused."""
    changes = Changes(context)
    for one in constructions():
        for site in made_by(context, one) if one.accumulates else ():
            if _halved(changes, site, one):
                return list(changes.edits.values())
    return []


def _halved(changes: Changes, site: Site, one: Construction) -> bool:
    """Whether that call adds gradients up, of half as many batches with these changes. Raises Refused."""
    found = construction_call(changes.context, site, one)
    given = argument(site, one.accumulates)
    if found is None or given is None or type(given.value) is not int or given.value < 2:
        return False
    if given.value % 2:
        raise Refused("the number of accumulated batches is odd")
    source, call = found
    present, half = source.argument(call, one.accumulates), str(given.value // 2)
    if present is not None and source.literal(present.value) == given.value:
        changes.of(source).replace(present.value, half)
    else:
        changes.recorded(site, source, call, one.accumulates, half)
    return True


def _goes_with_optimizers(context: Context, setting: Setting, values: Mapping[str, object]) -> None:
    """Raises Refused where the setting and a fused optimizer would raise together. ``values``: the call's."""
    if not any(facts_of(Optimizer, each).fused for each in context.sites("optimizer")):
        return
    for word in setting.unfused:
        if values.get(word) or any(word in source.text for source in context.sources()):
            raise Refused(f"with `{word}` it raises for a fused optimizer: leave `fused=True` out as well")


def _without(context: Context, source: Source, call: cst.Call, setting: Setting) -> Fix:
    """The edit by which ``call``, whose result is not used, does not run. Raises Refused."""
    title, own = setting.title, (call, *source.ancestors(call))
    conditions = [one for one in own if isinstance(one, cst.If)]
    # A flag that decides more than this, as whether to train at all, stays.
    others = [
        each for one in conditions for each in one.body.body if not any(each is around for around in own)
    ]
    alone = bool(conditions) and all(_serves(each, setting.beside) for each in others)
    switch = switch_of(context, source, call) if alone else None
    if switch is not None and switch.on and overridden(context, switch.flag) is None:
        return turned(switch.flag).fix(title, "unsafe")
    edits = Edits(source)
    try:
        edits.remove_call(call)
    except Refused as reason:
        raise Refused(f"{reason}: leave `{source.code(call.func)}` out by hand") from None
    return edits.fix(title, "unsafe")


def _serves(statement: cst.CSTNode, names: tuple[str, ...]) -> bool:
    """Whether all that a statement does is one call of these methods, or to set one of these attributes."""
    only = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
    for one in only:
        target = one.value.func if isinstance(one, cst.Expr) and isinstance(one.value, cst.Call) else None
        if isinstance(one, cst.Assign) and len(one.targets) == 1:
            target = one.targets[0].target
        if not isinstance(target, cst.Attribute) or target.attr.value not in names:
            return False
    return bool(only)


def _instead(context: Context, site: Site, source: Source, call: cst.Call, setting: Setting) -> Fix:
    """Another call on the same object. Raises Refused."""
    weights, free = facts_of(Framework, site).weights_bytes, context.profile.facts.memory.free_bytes
    if not weights or not free or weights > MOST_OF_FREE * free:
        raise Refused("it is not known that the device has room for the weights")
    held = receiver(call)
    if call.args or held is None:
        raise Refused("its arguments may name another device")
    edits = Edits(source).replace(call, f"{source.code(held)}.{setting.instead}")
    return edits.fix(setting.title, "unsafe")


def _of_better_class(context: Context, source: Source, call: cst.Call, setting: Setting) -> Fix:
    """Another class for what the call is given, where that is made. Raises Refused."""
    better = dict(setting.classes)

    def makes(_: Source, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Call) and called_name(node) in better

    found = origin(context, source, call.args[0].value, ends=makes) if call.args else None
    if found is None or not isinstance(found.node, cst.Call) or not makes(found.source, found.node):
        raise Refused(
            f"give `{source.code(call.func)}` one of {', '.join(f'`{one}`' for one in better.values())}"
        )
    edits = Edits(found.source)
    module = found.source.name(found.node.func).rpartition(".")[0]
    _make(edits, found.node.func, module, better[called_name(found.node)])
    return edits.fix(setting.title, "unsafe")


def _make(edits: Edits, called: cst.BaseExpression, module: str, name: str) -> None:
    """Another class of the same module in the place of the one that is ``called``."""
    if isinstance(called, cst.Attribute):
        edits.replace(called.attr, name)
    else:
        edits.replace(called, edits.add_import(f"{module}.{name}", f"from {module} import {name}"))


def _filled(code: str, **values: object) -> str:
    """``code``, which may have a dict in it, with the values in the place of their names in braces."""
    for name, value in values.items():
        code = code.replace(f"{{{name}}}", str(value))
    return code


@dataclass
class _Making:
    """The edits that make a setting where ``call`` constructs ``one``. All methods raise Refused."""

    context: Context
    site: Site
    one: Construction
    setting: Setting
    source: Source
    call: cst.Call

    def __post_init__(self) -> None:
        self.changes = Changes(self.context)
        self.here = partial(self.changes.of, self.source)
        self.made = facts_of(Framework, self.site)
        self.values = values_of(self.site)

    def fix(self, workers: int | None) -> Fix:
        """All of them."""
        setting = self.setting
        others = {each.place for each in made_by(self.context, self.one)} - {self.site.place}
        # Of several such objects, which one the steps use is unknown.
        place = written_for(self.source, self.call, setting.written) if not others else None
        for name in setting.arguments:
            recorded = argument(self.site, name)
            passed = self.source.argument(self.call, name) or (recorded is not None and recorded.passed)
            try:
                if place is not None and not passed:
                    raise Refused("it is written elsewhere")
                self.set(name, workers)
            except Refused:
                if place is None:
                    raise
                self.here().replace(place, setting.arguments[name])
        if setting.lines:
            self.below()
        if setting.renamed:
            self.renamed(setting.renamed)
        if not self.changes.edits:
            raise Refused("the setting is already there")
        title = setting.title.format(workers=workers)
        twice = any("{twice}" in code for code in setting.arguments.values())
        if twice and _halved(self.changes, self.site, self.one):
            title += ACCUMULATES
        return self.changes.fix(title, "unsafe")

    def renamed(self, name: str) -> None:
        """Make an object of another class of the same module."""
        if name not in (self.made.parameters or ()):
            raise Refused(f"the installed version has no `{name}`")
        if sum(arg.keyword is None for arg in self.call.args) > _ALIKE:
            raise Refused(f"`{name}` takes other arguments by position")
        _make(self.here(), self.call.func, self.one.module.rpartition(".")[0], name)

    def set(self, name: str, workers: int | None) -> None:
        """One argument."""
        one, source, called = self.one, self.source, self.call.func
        if name not in (self.made.parameters or ()):
            if name in self.setting.where_known:
                return
            raise Refused(f"the installed version's `{one.name}` has no `{name}`")
        code = self.setting.arguments[name]
        if "{workers}" in code and workers is None:
            raise Refused("the sufficient number of workers is unknown")
        twice = 2 * self.values[name] if type(self.values.get(name)) is int else None
        if "{twice}" in code and twice is None:
            raise Refused(f"the value of `{name}` is unknown")
        if name in (self.made.changed or {}):
            self.afterwards(name, _filled(code, workers=workers, twice=twice))
            return
        if source.is_named(called, *one.parsers):
            self.parsed(name, _filled(code, workers=workers, twice=twice))
            return
        half = next((name for name in HALVES if f"{{{name}}}" in code), "")
        spelled = {half: self.here().add_import(f"torch.{half}", "import torch")} if half else {}
        wanted = _filled(code, workers=workers, twice=twice, **spelled)
        mapping = next((each for maker, each in one.within if source.is_named(called, maker)), "")
        if mapping:
            self.mapped(mapping, name, wanted)
        else:
            self.passed(name, wanted)

    def passed(self, name: str, wanted: str) -> None:
        """One argument of the call itself."""
        source, call, changes = self.source, self.call, self.changes
        recorded, present = argument(self.site, name), source.argument(call, name)
        if present is not None:
            if source.code(present.value) == wanted:
                return
            if source.literal(present.value) is not NOT_LITERAL or wanted.rpartition(".")[2] in HALVES:
                self.here().replace(present.value, wanted)
                return
        if recorded is not None and not recorded.passed and source.unpacked(call):
            where, display = self.unpacked()
            changes.of(where).set_entry(display, name, wanted)
        elif recorded is not None and recorded.passed:
            changes.recorded(self.site, source, call, name, wanted)
        elif present is not None:
            raise Refused(f"`{name}` comes from `{source.code(present.value)}`: change it there")
        elif name in self.values and self.one.method == "__init__" and recorded is None:
            raise Refused(f"`{name}` is passed by position or computed elsewhere")
        elif not source.unpacked(call) and (own := self.own_field(name)) is not None:
            self.field(*own, name, wanted)
        else:
            try:
                changes.absent(source, call, name, wanted)
            except Refused:
                if name in self.values or self.one.method in ("__init__", "__post_init__"):
                    raise
                self.here().set_argument(call, name, wanted, lacks=True)  # the run noted all that it got

    def afterwards(self, name: str, code: str) -> None:
        """An attribute that is set on the object once it is made: the only place that gives it that value."""
        found = [
            (source, node.value)
            for source in self.context.sources()
            for node in source.nodes(cst.Assign)
            if any(
                isinstance(one.target, cst.Attribute) and one.target.attr.value == name
                for one in node.targets
            )
            and source.literal(node.value) == self.values[name]
        ]
        if len(found) != 1:
            raise Refused(f"`{name}` is set after this call: set it to {code} there")
        self.changes.of(found[0][0]).replace(found[0][1], code)

    def mapped(self, mapping: str, name: str, code: str) -> None:
        """An entry of the dict that the call takes as its argument ``mapping``."""
        _not_passed(self.context, lambda word: word.startswith("--") and word.rpartition(".")[2] == name)
        given = self.source.argument(self.call, mapping)
        if given is None:
            self.here().set_argument(self.call, mapping, f'{{"{name}": {code}}}')
        elif isinstance(given.value, cst.Dict):
            self.here().set_entry(given.value, name, code)
        else:
            raise Refused(f"set `{name}` to {code} in `{self.source.code(given.value)}`")

    def unpacked(self) -> tuple[Source, cst.Dict]:
        """The dict that the call unpacks, by an entry of it that the run recorded."""
        for each in self.site.arguments:
            where, display = display_of(self.context, self.site, each.name) or (self.source, None)
            if isinstance(display, cst.Dict):
                return where, display
        raise Refused("the dict that the call unpacks was not found")

    def parsed(self, name: str, code: str) -> None:
        """The object is made by a parser: from the command line its default is set, a dict gets an entry."""
        source, call, method = self.source, self.call, called_name(self.call)
        if method == "parse_dict" and call.args:
            given = call.args[0].value
            found = origin(self.context, source, given, ends=lambda _, node: isinstance(node, cst.Dict))
            if isinstance(found.node, cst.Dict):
                self.changes.of(found.source).set_entry(found.node, name, code)
                return
        if method not in ("parse_args_into_dataclasses", "parse_args_and_config"):  # the second is trl's
            raise Refused(f"set `{name}` to {code} in what `{method}` reads")
        if self.listed(name, code):
            return
        _not_passed(self.context, of_field(name).__contains__)
        own = own_class(self.context, self.made.type)
        if own is not None:
            self.field(*own, name, code)
            return
        statement, parser = source.statement(call), receiver(call)
        if statement is None or not isinstance(parser, cst.Name):
            raise Refused(f"set `{name}` to {code} on the command line")
        self.here().insert_before(statement, f"{parser.value}.set_defaults({name}={code})")

    def listed(self, name: str, code: str) -> bool:
        """Change the option in the list that the parser is given instead of the command line; False where
        there is no list, or it has no such option."""
        given = self.source.argument(self.call, "args", 0)
        if given is None:
            return False
        taken = given.value
        if isinstance(taken, cst.BooleanOperation) and _is_command_line(self.source, taken.left):
            taken = taken.left if self.context.profile.manifest.argv else taken.right
        if _is_command_line(self.source, taken):
            return False
        found = origin(self.context, self.source, taken, ends=_is_list)
        if not isinstance(found.node, (cst.List, cst.Tuple)):
            raise Refused(f"set `{name}` to {code} in what the parser is given")
        source, words = found.source, [one.value for one in found.node.elements]
        for at, word in enumerate(words):
            option, equals, _ = str(source.literal(word)).partition("=")
            if option not in of_field(name):
                continue
            value = code.strip('"')
            if equals:
                self.changes.of(source).replace(word, f'"{option}={value}"')
            elif at + 1 < len(words) and _is_value(source.literal(words[at + 1])):
                self.changes.of(source).replace(words[at + 1], f'"{value}"')
            else:
                raise Refused(f"set `{name}` to {code} in what the parser is given")
            return True
        if any(source.literal(word) is NOT_LITERAL for word in words):
            raise Refused(f"set `{name}` to {code} in what the parser is given")
        return False

    def own_field(self, name: str) -> tuple[Source, cst.ClassDef] | None:
        """The user's dataclass of settings, where it has a default for that one."""
        own = own_class(self.context, self.made.type) if self.one.method == "__post_init__" else None
        return own if own is not None and _default(*own, name) is not None else None

    def field(self, source: Source, owner: cst.ClassDef, name: str, code: str) -> None:
        """The default of a field of the user's class: the one that it has, else a new one."""
        value = _default(source, owner, name)
        if value is not None:
            if source.literal(value) is NOT_LITERAL:
                raise Refused(f"the default of `{name}` is not a plain value")
            self.changes.of(source).replace(value, code)
            return
        fields = _fields(source, owner)
        last = source.statement(fields[-1]) if fields else None
        kind = "bool" if code in ("True", "False") else "str" if code[:1] == '"' else "int"
        if last is None or code == "None":
            raise Refused(f"give `{owner.name.value}` the field `{name}` with the default {code}")
        self.changes.of(source).insert_after(last, f"{name}: {kind} = {code}")

    def below(self) -> None:
        """Statements below the one that makes the object."""
        source, edits = self.source, self.here()
        statement, assigned = source.statement(self.call), source.enclosing(self.call, cst.Assign)
        target = only_target(assigned)
        own = assigned is not None and _made(assigned.value) is self.call
        if statement is None or not own or not isinstance(target, (cst.Name, cst.Attribute)):
            where = f"{Path(self.site.file).name}:{self.site.line}"
            raise Refused(f"what `{where}` makes is not assigned to a name")
        parts = self.made.parts or {}
        part = next((name for name, methods in parts.items() if self.setting.call in methods), None)
        if part is None:
            raise Refused(f"the installed version's models have no `{self.setting.call}`")
        layout = "{channels_last}"
        for line in self.setting.lines:
            name = edits.add_import("torch.channels_last", "import torch") if layout in line else ""
            written = line.format(made=source.code(target), part=part, channels_last=name)
            if written in source.text:
                raise Refused("the script already does this")
            edits.insert_after(statement, written)


def _is_value(word: object) -> bool:
    """Whether a word of a command line is an option's value."""
    return isinstance(word, str) and not word.startswith("-")


def _is_command_line(source: Source, node: cst.BaseExpression) -> bool:
    """Whether it is ``sys.argv[1:]``, which a parser takes by itself."""
    return isinstance(node, cst.Subscript) and source.is_named(node.value, "sys.argv")


def _is_list(source: Source, node: cst.BaseExpression) -> bool:
    return isinstance(node, (cst.List, cst.Tuple))


def _not_passed(context: Context, is_it: Callable[[str], bool]) -> None:
    """Raises Refused where the command line passes an option that ``is_it``."""
    if option := next(filter(is_it, options_passed(context)), ""):
        raise Refused(f"the command line passes `{option}`: change it there")


def _fields(source: Source, owner: cst.ClassDef) -> list[cst.AnnAssign]:
    return [one for one in source.nodes(cst.AnnAssign, within=owner) if isinstance(one.target, cst.Name)]


def _default(source: Source, owner: cst.ClassDef, name: str) -> cst.BaseExpression | None:
    """The default of a class's field; None where it has no such field."""
    found = (one.value for one in _fields(source, owner) if source.code(one.target) == name)
    value = next((one for one in found if one is not None), None)
    return field_default(source, value) if value is not None else None


def own_class(context: Context, name: str | None) -> tuple[Source, cst.ClassDef] | None:
    """The user's own class of settings. None where several have the name."""
    found = [*context.classes(name)] if name else []
    return found[0] if len(found) == 1 else None


def _made(value: cst.BaseExpression) -> cst.BaseExpression:
    """The call that makes the object of ``X.from_pretrained(…).to("cuda")``."""
    while is_method(value, "to", "cuda", "eval"):
        value = receiver(value) or value
    return value
