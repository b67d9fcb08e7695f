"""The training step in a source: where the loss is made, sent back and stepped on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from warpline.rulekit.context import Context
from warpline.rulekit.edits import Edits, Refused
from warpline.rulekit.imports import import_line
from warpline.rulekit.source import Source, Statement
from warpline.rulekit.terms.evaluate import descend

#: Calls that bring a batch to the model and compute nothing.
_MOVES = {
    "to", "cuda", "cpu", "float", "long", "half", "next", "zip", "len", "range", "iter", "items", "pop",
    "get", "tensor", "as_tensor", "from_numpy", "contiguous", "view", "reshape", "unsqueeze", "size",
}  # fmt: skip


@dataclass(frozen=True)
class TrainingStep:
    """``backward``: the call; the rest is found around it, in the same block."""

    source: Source
    backward: cst.Call

    @property
    def loss(self) -> cst.BaseExpression:
        assert isinstance(self.backward.func, cst.Attribute)
        return self.backward.func.value

    @cached_property
    def forward(self) -> list[Statement]:
        """The statements from the first that computes something for the loss to the last before
        ``backward()``; empty when the loss is not made in this block."""
        block = self.source.block(self.backward)
        statement = self.source.statement(self.backward)
        before = block[: block.index(statement)] if statement is not None else []
        needed = {name.value for name in descend(self.loss, cst.Name)}
        first = last = None
        for index in range(len(before) - 1, -1, -1):
            bound = set(_bound(before[index]))
            if not bound & needed:
                continue
            needed |= {name.value for name in descend(before[index], cst.Name)}
            if any(_computes(call) for call in descend(before[index], cst.Call)):
                first = index
                last = index if last is None else last
        return before[first : last + 1] if first is not None and last is not None else []

    @cached_property
    def loop(self) -> cst.For | cst.While | None:
        """The outermost loop around the step inside its function."""
        loops = self.source.loops(self.backward)
        return loops[-1] if loops else None

    def calls(self, *names: str) -> list[cst.Call]:
        """Calls of ``names`` in the same block or below it."""
        block = self.source.block(self.backward)
        found = (call for statement in block for call in descend(statement, cst.Call))
        return [
            call for call in found if isinstance(call.func, cst.Attribute) and call.func.attr.value in names
        ]

    def optimizer_steps(self) -> list[cst.Call]:
        """``optimizer.step()``; schedulers' and profilers' are left out by their names."""
        found = []
        for call in self.calls("step"):
            assert isinstance(call.func, cst.Attribute)
            name = self.source.code(call.func.value).lower()
            if "opt" in name and "sched" not in name:
                found.append(call)
        return found


def training_steps(context: Context) -> list[TrainingStep]:
    """The ``backward()`` calls in the files of the profile, the costliest first.

    Only lines with a cost count: what did not run is not this step."""
    found = []
    for file in dict.fromkeys(
        [context.profile.manifest.script, *(cost.file for cost in context.profile.lines)]
    ):
        source = context.source(file)
        for call in source.nodes(cst.Call) if source is not None else ():
            if (
                source is not None
                and isinstance(call.func, cst.Attribute)
                and call.func.attr.value == "backward"
            ):
                found.append(TrainingStep(source, call))
    return sorted(found, key=lambda step: -_spent(context, step))


def _spent(context: Context, step: TrainingStep) -> float:
    cost = context.cost(step.source.path, step.source.line(step.backward))
    return cost.step_ms if cost is not None else 0.0


def after_imports(source: Source, edits: Edits, code: str) -> None:
    """``code`` as a paragraph of its own below the imports at the top."""
    index = import_line(source.module)
    body = source.module.body
    if not index:
        raise Refused("the file has no imports at its top to put the setting after")
    edits.insert_after(body[index - 1], code, apart=True)


def _bound(statement: Statement) -> Iterator[str]:
    """Names that ``statement`` gives a value, also inside a ``with`` or ``if``."""
    targets: Iterable[cst.CSTNode] = (
        item.target for item in descend(statement, cst.AssignTarget, cst.AugAssign, cst.AnnAssign)
    )
    for target in targets:
        for name in descend(target, cst.Name):
            yield name.value


def _computes(call: cst.Call) -> bool:
    name = call.func.attr.value if isinstance(call.func, cst.Attribute) else getattr(call.func, "value", "")
    return name not in _MOVES


def model_name(step: TrainingStep) -> str | None:
    """What the forward pass calls that is a value and no function: ``model``, ``self.net``. Of several
    the one that is called so, else the innermost of the first call."""
    source = step.source
    functions = {node.name.value for node in source.nodes(cst.FunctionDef)}
    functions |= {node.name.value for node in source.nodes(cst.ClassDef)}
    names = []
    for statement in step.forward:
        for call in descend(statement, cst.Call):
            name = source.code(call.func)
            plain = (
                isinstance(call.func, cst.Name) and name not in functions and source.name(call.func) == name
            )
            member = re.fullmatch(r"self\.\w+", name) is not None and name[5:] not in functions
            if (plain or member) and _computes(call) and name not in _BUILTINS:
                names.append(name)
        if names:
            break
    return next((name for name in names if re.search("model|net", name)), names[-1] if names else None)


_BUILTINS = {"print", "sum", "min", "max", "float", "int", "zip", "list", "dict", "tuple", "enumerate"}


def model_made(step: TrainingStep, name: str) -> Statement | None:
    """The last statement of the file that makes, moves or wraps the model; None if it is elsewhere."""
    source, found = step.source, None
    for node in source.nodes(cst.Assign):
        if any(source.code(item.target) == name for item in node.targets) and any(
            descend(node.value, cst.Call)
        ):
            found = source.statement(node) if not source.loops(node) else found
    if found is None:
        return None
    for statement in source.block(found):
        if source.line(statement) > source.line(found) and source.code(statement).startswith(
            (f"{name}.to(", f"{name}.cuda(")
        ):
            found = statement
    return found


def about_model(step: TrainingStep, edits: Edits, code: str) -> None:
    """``code`` (with ``{model}``) as a line below where the model is made, else above the loop."""
    name = model_name(step)
    if name is None:
        raise Refused("the model was not found in the forward pass")
    made = model_made(step, name)
    line = code.format(model=name)
    if line in step.source.text:
        raise Refused("the script does so already")
    if made is not None:
        edits.insert_after(made, line)
    elif step.loop is not None:
        edits.insert_before(step.loop, line)
    else:
        raise Refused("neither the model's making nor a loop was found beside the training step")


def model_place(step: TrainingStep) -> tuple[str, int]:
    """Where such a line belongs: the statement that makes the model, else the forward pass."""
    name = model_name(step)
    made = model_made(step, name) if name is not None else None
    statement = made or (step.forward[0] if step.forward else None)
    return step.source.path, step.source.line(statement if statement is not None else step.backward)
