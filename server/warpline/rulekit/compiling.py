"""Compiling a model: the line that does it, options of a call that does, and whether it did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import libcst as cst

from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit.calling import function_of, is_forward, model_born
from warpline.rulekit.context import Context
from warpline.rulekit.kernels import COMPILED
from warpline.rulekit.model_calls import compiled_with, model_calls
from warpline.rulekit.model_lines import (
    about_model,
    below_its_making,
    classes_of,
    is_called_directly,
    is_torchs,
    made_by_calls,
    model_made,
    model_place,
    named_at,
    on_module,
    replaced,
    several,
    trained,
)
from warpline.rulekit.replaying import model_overwritten, model_runs
from warpline.rulekit.training import TrainingStep
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, Statement
from warpline.wire.run import Site
from warpline.wire.sites import Compile, Module, facts_of

#: ``Module.compile()`` leaves the code of torch's own modules as it is (seen with torch 2.4 to 2.13, where
#: ``nn.Sequential(…).compile()`` compiles nothing); this form compiles it, and keeps the model's names.
_OF_TORCHS = "{model}.forward = torch.compile({model}.forward{option})"
_COMPILE = "compile"
#: Inductor's name for launching what it compiled as CUDA graphs.
_GRAPHS = 'mode="reduce-overhead"'
#: In the names of the autograd nodes of gradients that are differentiated.
_TWICE = "BackwardBackward"
#: Calls that copy or pickle a module with what was set on it.
_COPIES = (
    "copy.deepcopy",
    "torch.optim.swa_utils.AveragedModel",
    "torch.save",
    "pickle.dump",
    "pickle.dumps",
)
NOTHING_COMPILED = (
    "The model's `compile()` compiled nothing: it does not compile torch's own modules, nor a `forward` "
    "that is called by its name."
)


@dataclass(frozen=True)
class Target:
    """What a step calls that could be compiled.

    ``place``: where a line for it belongs. ``fixes``: the ways to do it, which may be refused. ``promised``:
    compiling it would change the step. ``graphs``: the second fix compiles it as CUDA graphs. ``calls``: how
    often a step calls it, as far as the run tells, else 1. ``inside``: lines that are compiled with it, as
    ``(file, line)``; empty where they are not known.
    """

    place: tuple[str, int] | None
    fixes: list[Callable[[], Fix]]
    promised: bool
    graphs: bool
    calls: float = 1.0
    inside: frozenset[tuple[str, int]] = frozenset()


def target(context: Context, steps: Sequence[TrainingStep]) -> Target:
    """The model of the first step that has a forward pass; where it has none, all models of the steps."""
    step = next((found for found in steps if found.forward), None)
    alone = step is not None and trained(step)[0] is not None
    models = sorted(several(steps), key=lambda one: model_place(*one)) if not alone else []
    if models:
        fixes: list[Callable[[], Fix]] = [partial(compile_several, context, models)]
        place: tuple[str, int] | None = model_place(*models[0])
    elif (elsewhere := _made_elsewhere(context, step)) is not None:
        fixes, place = _where_made(context, elsewhere)
        if step is not None and model_overwritten(context, step):
            fixes = fixes[:1]
    else:
        fixes = [partial(compile_model, context, step)]
        if step is None or not model_overwritten(context, step):
            fixes.append(partial(compile_model, context, step, graphs=True))
        place = model_place(step) if step is not None else None
    once = not differentiates_twice(context)
    compiled = models or ([(step, name)] if step is not None and (name := trained(step)[0]) else [])
    calls = [(one, name, model_calls(context, one, name)) for one, name in compiled]
    seen = bool(calls) and all(found for *_, found in calls)
    inside = {place for *_, found in calls for place in compiled_with(context, found)}
    return Target(
        place,
        [partial(of_one_pass, context, fix) for fix in fixes],
        promised=once and (alone or bool(models)),
        graphs=alone and len(fixes) > 1,
        calls=max(1.0, sum(model_runs(context, *one) for one in calls)),
        inside=frozenset(inside if seen else ()),
    )


def target_made(context: Context, site: Site, calls: float) -> Target:
    """The one model of a class of the script's own whose ``forward`` the steps run ``calls`` times, by where
    it gets its name."""
    fixes, place = _where_made(context, site)
    return Target(place, fixes[:1], promised=True, graphs=False, calls=max(1.0, calls))


def _made_elsewhere(context: Context, step: TrainingStep | None) -> Site | None:
    """Where the model was made that the step's function, perhaps a closure, is given. It has to be the only
    one of a class of the script's own. None where the step's file makes it, or has a loop around the
    step."""
    name, layer = trained(step) if step is not None else (None, None)
    if step is None or name is None or layer is not None or step.loop is not None:
        return None
    if model_made(step, name) is not None or context.sites("parallel"):
        return None
    called = {one for cost in model_calls(context, step, name) for one in cost.called if is_forward(one)}
    born = [model_born(context, cost) for cost in context.profile.lines if function_of(cost) in called]
    site = born[0] if born and all(one == born[0] for one in born) else None
    alone = site is not None and (facts_of(Module, site).count or 1) == 1
    return site if alone else None


def _where_made(context: Context, site: Site) -> tuple[list[Callable[[], Fix]], tuple[str, int]]:
    """The edits that compile the model made at ``site``, where it gets its name, and that line."""
    source, line = named_at(context, site)
    made = partial(_compile_made, context, source, line, facts_of(Module, site).type or "")
    return [made, partial(made, graphs=True)], (source.path, line)


def _compile_made(context: Context, source: Source, line: int, kind: str, *, graphs: bool = False) -> Fix:
    unnamed = "the model is not given a name where it is made: call its `compile()`"
    edits = Edits(source)
    code = on_module(context, edits, {kind}, _COMPILE, _GRAPHS if graphs else "")
    below_its_making(context, source, line, edits, code, unnamed)
    return edits.fix("Compile the model" + (", as CUDA graphs" if graphs else ""), "unsafe")


def differentiates_twice(context: Context) -> bool:
    """Whether a step sends gradients back that were computed with ``create_graph=True``: autograd names what
    differentiates a backward operator ``…BackwardBackward0``."""
    return any(_TWICE in op.name for cost in context.profile.lines for op in cost.ops)


def of_one_pass(context: Context, fix: Callable[[], Fix]) -> Fix:
    """``fix``, which compiles something. Raises Refused where a step has gradients of gradients: AOTAutograd
    raises an error there (tried with torch 2.13)."""
    if differentiates_twice(context):
        raise Refused(
            "compiled code has no gradients of gradients, and the step computes some (`create_graph=True`): "
            "compile what is called without them"
        )
    return fix()


def compile_model(context: Context, step: TrainingStep | None, *, graphs: bool = False) -> Fix:
    """Compile what the step trains, with ``graphs`` as CUDA graphs. Raises Refused where it is not found, or
    compiled already."""
    if step is None:
        raise Refused(
            "no model was found that the step calls and that could be compiled by one line: compile what the "
            "step calls, a model by its `compile()` or a function by `torch.compile`"
        )
    name, layer = trained(step)
    edits = Edits(step.source)
    own = replaced(context, classes_of(step, name or ""), _COMPILE)
    code = _compiling(context, step, name, edits)
    if graphs:
        if layer is not None:
            raise Refused("the step calls its layers one by one, and each would be a separate graph")
        if code.format(model=name) in step.source.text:
            raise Refused("the script already compiles it")
        code = _compiling(context, step, name, edits, _GRAPHS)
    present = _compiled_at(step, name) if name is not None and layer is None and not own else None
    off = _switched_off(step, name, own)
    if off is not None:
        raise Refused(f"the script does this already, but that line did not run: {off}")
    if present is None:
        about_model(step, edits, code, each=code)
    elif name is None or not _needs_forward(step, name):
        raise Refused("the script already does this")
    else:
        edits.replace_statement(present, code.format(model=name))
    return edits.fix("Compile the model" + (", as CUDA graphs" if graphs else ""), "unsafe")


def _compiling(context: Context, step: TrainingStep, name: str | None, edits: Edits, option: str = "") -> str:
    """The code that compiles ``{model}``, which the step calls ``name``, with an option."""
    if name is None or not _needs_forward(step, name):
        return on_module(context, edits, classes_of(step, name or ""), _COMPILE, option)
    _set_forward(step, name, edits)
    return _OF_TORCHS.format(model="{model}", option=f", {option}" if option else "")


def _needs_forward(step: TrainingStep, name: str) -> bool:
    """Whether ``compile()`` of the model would compile nothing, so its ``forward`` has to be compiled."""
    return is_torchs(step, name) or is_called_directly(step, name)


def _set_forward(step: TrainingStep, name: str, edits: Edits) -> None:
    """Prepares for a ``forward`` that is set on the object ``name``. Raises Refused where the object may be
    copied, as its copy would run the original's, with the original's weights; and where it is pickled."""
    source = step.source
    for call in source.calls_of(*_COPIES):
        given = source.code(call.args[0].value) if call.args else ""
        if "state_dict" not in given and (given == name or not made_by_calls(step, given)):
            raise Refused(
                "`compile()` does not compile this model, and a compiled `forward` does not "
                f"survive `{source.code(call)}`: compile a module of your own that holds them"
            )
    if edits.add_import("torch.compile", "import torch") != "torch.compile":
        raise Refused("torch has another name in this file")


def compile_several(context: Context, models: Sequence[tuple[TrainingStep, str]]) -> Fix:
    """Compile each of the modules that the steps call (``model_lines.several``). Raises Refused where one is
    not found, or compiled already."""
    edits = Edits(models[0][0].source)
    for step, name in models:
        made = model_made(step, name)
        if made is None or step.source is not edits.source:
            raise Refused(f"`{name}` is made elsewhere: compile it there")
        line = _compiling(context, step, name, edits).format(model=name)
        own = replaced(context, classes_of(step, name), _COMPILE)
        if line in step.source.text or _switched_off(step, name, own) is not None:
            raise Refused("the script already does this for some of its models")
        edits.insert_after(made, line)
    return edits.fix("Compile the models", "unsafe")


def _switched_off(step: TrainingStep, name: str | None, own: bool) -> str | None:
    """The call that would compile the model, in a branch that was not taken: its code, its line, the
    condition, and the options of the command line that it tests. ``own``: the model's ``compile`` is the
    script's, and does something else."""
    for call in step.source.nodes(cst.Call):
        if name is None or step.ran(call):
            continue
        given = call.args[0].value if call.args else None
        function = step.source.is_named(call.func, "torch.compile") and given is not None
        compiled = function and given is not None and step.source.code(given) == name
        if compiled or (not own and step.source.code(call.func) == f"{name}.{_COMPILE}"):
            around = [one for one in step.source.ancestors(call) if isinstance(one, cst.If)]
            under = f", a branch of `if {step.source.code(around[0].test)}`" if around else ""
            passed = [f"`{word}`" for test in around for word in _options(step, test.test)]
            said = f"; the command line passes {', '.join(passed)}" if passed else ""
            return f"`{step.source.code(call)}` (line {step.source.line(call)}{under}){said}"
    return None


def _options(step: TrainingStep, test: cst.BaseExpression) -> list[str]:
    """The words of the command line that are options named like something in ``test``, or like its
    opposite."""
    names = {node.value.casefold().replace("_", "-") for node in step.source.nodes(cst.Name, within=test)}
    words = step.reached.argv if step.reached is not None else ()
    spelled = {word: word.split("=")[0].lstrip("-").casefold().replace("_", "-") for word in words}
    return [
        word
        for word, option in spelled.items()
        if word.startswith("-")
        and {option, option.removeprefix("no-"), option.removeprefix("disable-")} & names
    ]


def is_compiled(context: Context) -> bool:
    """Whether the script compiles, or its steps ran compiled code."""
    return bool(context.profile.facts.compiled_kernels or context.sites("compile"))


def compiled_for_nothing(context: Context, step: TrainingStep | None) -> Statement | None:
    """The ``model.compile()`` after which everything ran as it was: of one of torch's own modules, or of a
    model whose ``forward`` is called by its name."""
    name, _ = trained(step) if step is not None else (None, None)
    if step is None or name is None or compiled_lines(context) or not _needs_forward(step, name):
        return None
    return _compiled_at(step, name)


def compiled_lines(context: Context) -> set[tuple[str, int]]:
    """``(file, line)`` of what ran as compiled code in the steps, or called it; empty where nothing did."""
    ran = {cost.place for cost in context.profile.lines if _has_compiled(cost)}
    known = {place[:2] for kernel in context.profile.facts.compiled_kernels for place in kernel.lines}
    return ran and ran | known


def _has_compiled(cost: LineCost) -> bool:
    names = (*(op.name for op in cost.ops), *(kernel.name for kernel in cost.kernels))
    return any(name.startswith(COMPILED) for name in names)


def _compiled_at(step: TrainingStep, name: str) -> Statement | None:
    """``model.compile()`` as a statement of its own."""
    for call in step.source.nodes(cst.Call):
        if step.source.code(call.func) == f"{name}.compile" and isinstance(
            step.source.parent(call), cst.Expr
        ):
            return step.source.statement(call)
    return None


def set_option(context: Context, site: Site, name: str, code: str) -> Edits:
    """Pass ``name=code`` to the ``torch.compile``, ``model.compile()`` or ``@torch.compile`` at ``site``.

    Raises :class:`Refused` where no such call is there."""
    source = context.source(site.file)
    call = source.call(site.line, "torch.compile", "compile")
    if call is not None:
        return Edits(source).set_argument(call, name, code)
    bare = _bare_decorator(source, site.line)
    if bare is None:
        raise Refused("the call of torch.compile was not found on that line")
    return Edits(source).replace(bare, f"{source.code(bare)}({name}={code})")


def _bare_decorator(source: Source, line: int) -> cst.BaseExpression | None:
    """``@torch.compile`` on that line, or above the function that begins there."""
    for function in source.nodes(cst.FunctionDef):
        for decorator in function.decorators:
            if source.is_named(decorator.decorator, "torch.compile") and line in (
                source.line(decorator),
                source.line(function),
                source.line(function.name),
            ):
                return decorator.decorator
    return None


def has_graphs(site: Site) -> bool:
    """Whether this call of ``torch.compile`` asks for CUDA graphs already, or for no kernels of its own."""
    made = facts_of(Compile, site)
    mode, backend = made.mode or "default", made.backend or "inductor"
    return mode not in ("default", "max-autotune-no-cudagraphs") or backend != "inductor"
