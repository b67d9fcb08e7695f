"""What the training step trains: the model's name, where it is made, and lines put there."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable

import libcst as cst

from warpline.rulekit.context import Context
from warpline.rulekit.terms.evaluate import descend
from warpline.rulekit.training import TrainingStep, computes
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import (
    Source,
    Statement,
    alone,
    called_name,
    is_method,
    methods,
    only_target,
    receiver,
)
from warpline.wire.run import Site
from warpline.wire.sites import Module, facts_of

_BUILTINS = frozenset(vars(builtins))
#: Methods of a module that return it.
_RETURN_IT = ("to", "cuda", "cpu", "train", "eval", "requires_grad_", "bfloat16", "half", "float")
#: How a loss is called; a critic is a model.
_LOSS = re.compile("loss|crit(?!ic)")
#: The class of a loss, as ``torch.nn.MSELoss``.
_LOSS_OF_TORCH = re.compile(r"torch\.nn\.(\w+\.)*\w*Loss")


def model_name(step: TrainingStep) -> str | None:
    """What the forward pass calls that is a value and no function: ``model``, ``self.net``. Of several
    the one that is called so; None where the step calls several and none of them is. What is frozen or
    called without a graph (an encoder, a teacher) is passed over where the step calls something else, and so
    is always what is seen to be no module, or to make a batch (masks, augmentation)."""
    called = [
        names
        for one in step.forward
        if step.adds_to_graph(one)
        and (names := [name for name in _called(step.source, one) if not _is_no_model(step, name)])
    ]
    called = called or [handed_over(step, one) for one in step.forward]
    aside = _untrained(step) if len({name for names in called for name in names}) > 1 else set()
    left = [kept for names in called if (kept := [name for name in names if name not in aside])]
    found = next(iter(left or called), [])
    if [name for name in found if not _LOSS.search(name)] == ["self"]:
        return _of_itself(step)
    return _model_of(found) or _called_through(step)


def _called_through(step: TrainingStep) -> str | None:
    """The module whose method the forward pass calls, where the method calls the module itself:
    ``model.log_probs(x)``."""
    calls = (call for one in step.forward for call in descend(one, cst.Call))
    return next((name for call in calls if (name := called_through(step, call))), None)


def called_through(step: TrainingStep, call: cst.Call) -> str | None:
    """The module that a call of its method calls; None for another call."""
    held = receiver(call)
    name = step.source.code(held) if held is not None else ""
    method = f"{model_class(step, name).rpartition('.')[2]}.{called_name(call)}"
    return name if method in step.through else None


def given_a_name(context: Context, source: Source, line: int) -> tuple[Statement, str] | None:
    """The assignment on ``line``, where a model is made, and the one name or attribute that it gives a value;
    None where there is no such assignment, or where another object gets the name, which holds the model."""
    statement = source.statement_at(line)
    assigns = source.nodes(cst.Assign, within=statement) if statement is not None else []
    target = only_target(assigns[0]) if assigns else None
    name = source.code(target) if target is not None else ""
    if statement is None or not re.fullmatch(r"[\w.]+", name) or _holds_model(context, assigns[0].value):
        return None
    return statement, name


def _holds_model(context: Context, made: cst.BaseExpression) -> bool:
    """Whether it makes an object of a class of the script's that inherits from nothing, so is no module."""
    while isinstance(made, cst.Call) and isinstance(made.func, cst.Attribute):
        if not isinstance(made.func.value, cst.Call):
            break
        made = made.func.value  # `Net()` of `Net().eval()`
    name = called_name(made) if isinstance(made, cst.Call) else ""
    owners = [owner for _, owner in context.classes(name)] if name else []
    return bool(owners) and not any(owner.bases for owner in owners)


def named_at(context: Context, born: Site) -> tuple[Source, int]:
    """Where a model that was made at ``born`` gets its name: there, or where functions return it to."""
    first = next((at for at, frame in enumerate(born.frames) if frame.place == born.place), 0)
    called = (facts_of(Module, born).type or "").rpartition(".")[2]
    for frame in born.frames[first:]:
        source = context.source(frame.file)
        made = alone(source.statement_at(frame.line))
        value = made.value if isinstance(made, (cst.Assign, cst.Return)) else None
        while value is not None and is_method(value, *_RETURN_IT):
            value = receiver(value)
        # The call that is returned, and no argument of another one.
        if not isinstance(value, cst.Call) or (
            called_name(value) != called and any(any(descend(one, cst.Call)) for one in value.args)
        ):
            break
        if isinstance(made, cst.Assign) and given_a_name(context, source, frame.line) is not None:
            return source, frame.line
        called = frame.function.rpartition(".")[2]
    return context.source(born.file), born.line


def below_its_making(
    context: Context, source: Source, line: int, edits: Edits, code: str, unnamed: str
) -> Edits:
    """``edits`` with ``code`` (with ``{model}``) as a line below the assignment on ``line``, where a model is
    made. Raises Refused, with ``unnamed`` if the model is given no name there, or if the line is already
    there."""
    found = given_a_name(context, source, line)
    if found is None:
        raise Refused(unnamed)
    statement, name = found
    return below_statement(source, statement, edits, code.format(model=name))


def below_statement(source: Source, statement: Statement, edits: Edits, code: str) -> Edits:
    """``edits`` with ``code`` as a line below a statement. Raises Refused if the line is already there."""
    if code in source.text:
        raise Refused("the script already does this")
    edits.insert_after(statement, code)
    return edits


def on_module(context: Context, edits: Edits, classes: Iterable[str], method: str, given: str = "") -> str:
    """The code of a call of ``nn.Module``'s ``method`` on ``{model}``, which is of one of ``classes``: by the
    class ``Module`` where the script's has a method of that name of its own, which may do anything."""
    if not replaced(context, classes, method):
        return f"{{model}}.{method}({given})"
    module = edits.add_import("torch.nn.Module", "import torch")
    return f"{module}.{method}({', '.join(['{model}', *([given] if given else [])])})"


def replaced(context: Context, classes: Iterable[str], method: str) -> bool:
    """Whether one of ``classes``, or a class of the script's that it inherits from, has a ``method`` of its
    own. Where one is not seen ("", or none is given), any class counts that the script makes modules of."""
    waiting = [name.rpartition(".")[2] for name in classes]
    if not all(waiting) or not waiting:
        types = (facts_of(Module, site).type or "" for site in context.sites(Module.KIND))
        waiting += [name.rpartition(".")[2] for name in types]
    waiting, seen = [name for name in waiting if name], {""}
    while waiting:
        seen.add(name := waiting.pop())
        for source, owner in context.classes(name):
            if method in methods(owner):
                return True
            waiting += {source.name(base.value).rpartition(".")[2] for base in owner.bases} - seen
    return False


def several(steps: Iterable[TrainingStep]) -> list[tuple[TrainingStep, str]]:
    """The modules that the steps call where none of them alone is the model (an actor and its critics, the
    networks of a GAN), each with a step of its file. Only what is seen to be made of a module's class."""
    found = dict[tuple[str, str], TrainingStep]()
    for step in steps:
        for name in [name for statement in step.forward for name in _called(step.source, statement)]:
            if not _LOSS.search(name) and _is_module(step, name):
                found.setdefault((step.source.path, name), step)
    return [(step, name) for (_, name), step in found.items()]


def _is_module(step: TrainingStep, name: str) -> bool:
    made = classes_of(step, name)
    return bool(made) and all(
        one.startswith("torch.nn.")
        or _has_forward(step.source, one)
        or one.rpartition(".")[2] in step.modules
        for one in made
    )


def _is_no_model(step: TrainingStep, name: str) -> bool:
    """Whether ``name`` is only given losses of torch's, or objects of classes in this file that inherit from
    nothing."""
    made = classes_of(step, name)
    plain = {one.name.value for one in step.source.nodes(cst.ClassDef) if not one.bases}
    return bool(made) and all(one in plain or _LOSS_OF_TORCH.fullmatch(one) for one in made)


def _has_forward(source: Source, name: str) -> bool:
    """Whether a class of that name in this file has a ``forward``."""
    return any(one.name.value == name and "forward" in methods(one) for one in source.nodes(cst.ClassDef))


def made_by_calls(step: TrainingStep, name: str) -> bool:
    """Whether ``name`` is what a call returned, and not another name of something."""
    values = _values(step, name)
    return bool(values) and all(isinstance(one, cst.Call) for one in values)


def _values(step: TrainingStep, name: str) -> list[cst.BaseExpression]:
    """What lines that ran before the steps gave ``name``: of ``a, b = (f() for _ in range(2))``, ``f()``."""
    nodes = [node for node in step.source.nodes(cst.Assign) if step.done(node)]
    return [value for node in nodes if (value := _given(step.source, node, name)) is not None]


def _given(source: Source, node: cst.Assign, name: str) -> cst.BaseExpression | None:
    """What an assignment gives to ``name``, also one to several names."""
    each = node.value.elt if isinstance(node.value, (cst.GeneratorExp, cst.ListComp)) else None
    for target in (item.target for item in node.targets):
        if source.code(target) == name:
            return node.value
        elements = target.elements if isinstance(target, cst.Tuple) else ()
        values = node.value.elements if isinstance(node.value, cst.Tuple) else ()
        for at, one in enumerate(elements):
            if source.code(one.value) == name and (each is not None or len(values) == len(elements)):
                return each if each is not None else values[at].value
    return None


def _untrained(step: TrainingStep) -> set[str]:
    """What the script freezes with ``requires_grad_(False)``, and what the step calls under ``no_grad``."""
    source, found = step.source, set()
    for call in source.nodes(cst.Call):
        if source.code(call).endswith(".requires_grad_(False)") and (held := receiver(call)) is not None:
            found.add(source.code(held))
    for statement in step.forward:
        for block in descend(statement, cst.With):
            modes = [item.item.func for item in block.items if isinstance(item.item, cst.Call)]
            if any(source.is_named(mode, "no_grad", "inference_mode") for mode in modes):
                found |= {source.code(call.func) for call in descend(block, cst.Call)}
    return found


def _model_of(names: list[str]) -> str | None:
    called = next((name for name in names if re.search("model|net", name)), None)
    others = {name for name in names if not _LOSS.search(name)}
    # One of several modules that the step calls is not the model.
    return called or (names[-1] if names and len(others) <= 1 else None)


def _called(source: Source, within: cst.CSTNode, depth: int = 2) -> list[str]:
    """Values that are called: ``model``, ``self.net``; those of the class's own methods that are called."""
    functions = {node.name.value for node in source.nodes(cst.FunctionDef)}
    functions |= {node.name.value for node in source.nodes(cst.ClassDef)}
    names = []
    for call in descend(within, cst.Call):
        func = module_called(call)
        name = source.code(func)
        plain = isinstance(func, cst.Name) and name not in functions and source.name(func) == name
        member = re.fullmatch(r"self\.\w+", name) is not None
        if not (plain or member) or not computes(call) or name in _BUILTINS:
            continue
        if member and name[5:] in functions:
            method = _method(source, call, name[5:]) if depth else None
            names += _called(source, method.body, depth - 1) if method is not None else []
        else:
            names.append(name)
    return list(dict.fromkeys(names)) if "self" in names else names


def module_called(call: cst.Call) -> cst.BaseExpression:
    """What a call calls: ``net`` for ``net.forward(x)`` too, but neither ``self`` nor a base class."""
    held = receiver(call) if is_method(call, "forward") else None
    if not isinstance(held, (cst.Name, cst.Attribute)) or _is_self(held):
        return call.func
    is_base = bool(call.args) and _is_self(call.args[0].value)  # ``Base.forward(self, x)``
    return call.func if is_base else held


def _is_self(node: cst.CSTNode | None) -> bool:
    return isinstance(node, cst.Name) and node.value == "self"


def is_called_directly(step: TrainingStep, name: str) -> bool:
    """Whether the step calls the model's ``forward`` by its name: it runs nothing that is set around calls,
    such as hooks and ``compile()``."""
    calls = (call for one in step.forward for call in descend(one, cst.Call))
    return any(step.source.code(call.func) == f"{name}.forward" for call in calls)


def handed_over(step: TrainingStep, within: cst.CSTNode) -> list[str]:
    """The modules that are given to functions of the user's: ``loss_of(net, batch)``."""
    source = step.source
    names = [
        source.code(given.value)
        for call in descend(within, cst.Call)
        if isinstance(call.func, cst.Name) and not source.name(call.func).startswith("torch.")
        for given in call.args
        if isinstance(given.value, (cst.Name, cst.Attribute))
    ]
    return [name for name in dict.fromkeys(names) if _is_module(step, name)]


def _method(source: Source, node: cst.CSTNode, name: str) -> cst.FunctionDef | None:
    """The method of that name of the class around ``node``."""
    owner = source.enclosing(node, cst.ClassDef)
    return methods(owner).get(name) if owner is not None else None


def _of_itself(step: TrainingStep) -> str | None:
    """The module that the model's ``forward`` calls, where the step calls ``self(x)``; ``self`` if it calls
    several."""
    forward = _method(step.source, step.backward, "forward")
    names = _called(step.source, forward.body) if forward is not None else []
    return "self" if not names else _model_of(names) or "self"


def _layers(step: TrainingStep) -> tuple[str, str] | None:
    """``(layer, layers)`` of a forward pass that calls one module after the other: ``for layer in
    layers: h = layer(h)``, perhaps through ``checkpoint(layer, h)``; None for another one."""
    for statement in step.forward:
        for loop in [statement] if isinstance(statement, cst.For) else descend(statement, cst.For):
            if not isinstance(loop, cst.For) or not isinstance(loop.target, cst.Name):
                continue
            item, layers = loop.target.value, step.source.code(loop.iter)
            called = (
                step.source.code(call.args[0].value)
                if step.source.is_named(call.func, "checkpoint") and call.args
                else step.source.code(call.func)
                for call in descend(loop.body, cst.Call)
            )
            if re.fullmatch(r"[\w.]+", layers) and item in called:
                return item, layers
    return None


def trained(step: TrainingStep) -> tuple[str | None, str | None]:
    """The name of the model, and what the step calls each of its layers where it calls them itself."""
    name, layers = model_name(step), _layers(step)
    if layers is not None and name in (None, layers[0]):
        return layers[1], layers[0]
    return name, None


def model_made(step: TrainingStep, name: str) -> Statement | None:
    """The last statement of the file that made, moved or wrapped the model before the steps, perhaps in a
    loop around theirs (over folds, seeds); None if it is elsewhere."""
    source, found = step.source, None
    if name == "self":
        constructor = _method(source, step.backward, "__init__")
        body = constructor.body.body if constructor is not None else ()
        last = body[-1] if body else None
        return last if isinstance(last, Statement) and step.done(last) else None
    outside = source.loops(step.backward)[1:]
    for node in source.nodes(cst.Assign):
        made = any(descend(node.value, cst.Call)) or (name.startswith("self.") and found is None)
        if made and _given(source, node, name) is not None:
            around = all(any(one is outer for outer in outside) for one in source.loops(node))
            found = source.statement(node) if around and step.done(node) else found
    if found is None:
        return None
    for statement in source.block(found):
        moved = source.code(statement).startswith((f"{name}.to(", f"{name}.cuda("))
        if moved and source.line(statement) > source.line(found) and step.done(statement):
            found = statement
    return found


def made_inside(step: TrainingStep, name: str) -> tuple[Statement, str] | None:
    """Where the function that returns the model, and is called once in this file, makes it, and its name
    there: ``net`` of ``return net``. None where no such function does, or the caller changes it after."""
    source, made = step.source, model_made(step, name)
    assigned = source.nodes(cst.Assign, within=made) if made is not None else []
    value = _given(source, assigned[0], name) if len(assigned) == 1 else None
    back = source.returned(value) if value is not None else None
    if not isinstance(back, cst.Name) or not isinstance(value, cst.Call):
        return None
    function = source.enclosing(back, cst.FunctionDef)
    called = source.nodes(cst.Name)
    if function is None or sum(one.value == function.name.value for one in called) != 2:
        return None
    inside = [
        source.statement(one)
        for one in source.nodes(cst.Assign, within=function)
        if _given(source, one, back.value) is not None and step.done(one)
    ]
    last = inside[-1] if inside else None
    return (last, back.value) if last is not None and last in function.body.body else None


def finished_in(step: TrainingStep, name: str) -> cst.Call | None:
    """The method by which a function of this file returns the model that it makes, as in ``return
    net.to(device)``; None where the model is no such function's, or is moved after that."""
    made = model_made(step, name)
    assigned = step.source.nodes(cst.Assign, within=made) if made is not None else []
    value = _given(step.source, assigned[0], name) if len(assigned) == 1 else None
    back = step.source.returned(value) if value is not None else None
    return back if is_method(back, *_RETURN_IT) and step.done(back) else None


def is_torchs(step: TrainingStep, name: str) -> bool:
    """Whether the model, or each of its layers in a ``ModuleList``, is of a class of torch's own."""
    made = classes_of(step, name)
    return bool(made) and all(found.startswith("torch.nn.") for found in made)


def model_class(step: TrainingStep, name: str) -> str:
    """The class of what ``name`` stands for; "" where that is not seen, or several are assigned."""
    made = classes_of(step, name)
    return made.pop() if len(made) == 1 else ""


def classes_of(step: TrainingStep, name: str) -> set[str]:
    """The classes of what is assigned to ``name``; "" among them where one is not seen."""
    return {constructor(step.source, value) for value in _values(step, name)}


def constructor(source: Source, value: cst.BaseExpression, inside: frozenset[str] = frozenset()) -> str:
    """The class that ``value`` makes: of ``Net(8).cuda()`` it is Net, of a list of modules theirs, of a
    function in this file what it returns, be it by several lines; "" where that is not seen."""
    for call in descend(value, cst.Call):
        name = source.name(call.func)
        if name.endswith(".ModuleList"):
            return next((source.name(one.func) for one in descend(call, cst.Call) if one is not call), "")
        if isinstance(receiver(call), cst.Call):
            continue  # ``.cuda()`` of what is made
        for function in source.nodes(cst.FunctionDef):
            if function.name.value == name and name not in inside:
                back = [node.value for node in source.nodes(cst.Return, within=function) if node.value]
                made = [one for value in back for one in _made_in(source, function, value)]
                classes = {constructor(source, one, inside | {name}) for one in made}
                return classes.pop() if len(classes) == 1 else ""
        return name
    return ""


def _made_in(
    source: Source, function: cst.FunctionDef, value: cst.BaseExpression
) -> list[cst.BaseExpression]:
    """What a function gives the name that it returns, but for what only moves it: ``net = net.cuda()``."""
    while is_method(value, *_RETURN_IT):
        value = cst.ensure_type(value.func, cst.Attribute).value
    if not isinstance(value, cst.Name):
        return [value]
    given = source.assigned(value.value, within=function)
    moved = [one for one in given if source.code(receiver(one) or one) == value.value]
    return [one for one in given if one not in moved] or [value]


def about_model(step: TrainingStep, edits: Edits, code: str, each: str | None = None) -> None:
    """``code`` (with ``{model}``) as a line below where the model is made, else above the loop. ``each``:
    what is done to each of several layers that the step calls itself; else ``code`` to their list. Raises
    Refused if the model is not found, or the line is already there."""
    name, layer = trained(step)
    if name is None:
        raise Refused("the model was not found in the forward pass")
    made = model_made(step, name)
    if layer is None and name is not None and (inside := made_inside(step, name)) is not None:
        made, name = inside
    line = code.format(model=name)
    if layer is not None and each is not None:
        line = f"for {layer} in {name}:\n    {each.format(model=layer)}"
    if line in step.source.text:
        raise Refused("the script already does this")
    if made is not None:
        edits.insert_after(made, line)
    elif step.loop is not None and step.source.bindings(name, step.loop):
        raise Refused(f"the loop gives `{name}` a value: do this where the model is made")
    elif step.loop is not None:
        edits.insert_before(step.loop, line)
    else:
        raise Refused("neither the creation of the model nor a loop was found near the training step")


def model_place(step: TrainingStep, name: str | None = None) -> tuple[str, int]:
    """Where such a line belongs: the statement that makes the model (or ``name``), else the forward pass."""
    name = name or trained(step)[0]
    made = model_made(step, name) if name is not None else None
    inside = made_inside(step, name) if name is not None and trained(step) == (name, None) else None
    statement = inside[0] if inside is not None else made or (step.forward[0] if step.forward else None)
    return step.source.place(statement if statement is not None else step.backward)
