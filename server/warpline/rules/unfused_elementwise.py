"""A function runs many elementwise kernels that could be fused.

## What it does

Finds functions whose elementwise and reduction kernels take a measurable part of the step, except known
formulas, which have their own rules. The fix compiles the function. If a step's operators were recorded,
only those that the function itself calls count, not torch's own layers and autocast's casts, nor
operators on complex numbers, which torch.compile leaves to torch's kernels.

On a CPU it finds such operators if they take a tenth of the step, and reports them only if the recorded ones
were compiled beside the script and were faster. torch.compile needs a C++ compiler there: the finding says
so if there is none. A caller is compiled with what it calls only if it adds something to fuse. What it calls
and others call as well, as an actor and the training call a model, is no part of what is promised.

## Why is this slow

An elementwise kernel reads whole tensors, does an operation or two on each number, and writes a tensor.
Ten such kernels in a row transfer ten times as many bytes as one fused kernel.

## Example

```python
import torch


def rotate(q, cos, sin):  #> found
    half = q.shape[-1] // 2
    first, second = q[..., :half], q[..., half:]
    turned = torch.cat([-second, first], dim=-1)
    #^ cost device_ms=3; kernel CatArrayBatchedCopy count=24 device_ms=2
    #^ kernel vectorized_elementwise_kernel count=24 device_ms=1
    return q * cos + turned * sin
    #^ cost device_ms=4; kernel vectorized_elementwise_kernel count=72 device_ms=4
```

## Use instead

```python
import torch


@torch.compile
def rotate(q, cos, sin):
    half = q.shape[-1] // 2
    first, second = q[..., :half], q[..., half:]
    turned = torch.cat([-second, first], dim=-1)
    return q * cos + turned * sin
```

## Example

What a function calls is compiled with it. But if it waits for a number of the device's in a loop,
torch.compile leaves all of it as it is:

```python
def solve(d, x, most):  #> found
    for _ in range(most):
        q = d * 4 - d.roll(1, 0) - d.roll(-1, 0) + d.sin()
        #^ cost device_ms=9 calls=60; kernel vectorized_elementwise_kernel count=360 device_ms=9
        x = x + q
        if q.abs().sum() < 1e-3:  #> cost sync_ms=1 syncs=60
            break
    return x
```

## Use instead

The part of the loop without the wait as a function of its own, with `@torch.compile` above it.

## Fix safety

Unsafe: compiled code rounds differently (about 1e-6 of the value in float32). The first call and every
new shape take long, because of the compilation. Decorators that set a mode (`torch.no_grad()`) or say how a
class holds the function (`staticmethod`) stay above. With others, no edit is offered.

Compiled code draws other random numbers, and on a CPU takes up to 14 times as long for them. There the edit
for code that draws some keeps torch's own, which are as before:
`@torch.compile(options={"fallback_random": True})`.

## References

- [torch.compile](https://docs.pytorch.org/docs/stable/generated/torch.compile.html)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import libcst as cst

from warpline.model.change import Change, CompiledCalls, Replace, Scale, Together
from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, Source, count, ms
from warpline.rulekit.calling import callers, function_of
from warpline.rulekit.compiled_reach import (
    alone_in,
    breaks_at,
    calls_of,
    compiled_again,
    in_order,
    lines_in,
    not_compiled,
    reached_ms,
    runs_compiled,
    skipped_at,
    unrolled,
    written_out,
)
from warpline.rulekit.compiling import (
    NOTHING_COMPILED,
    compile_model,
    compiled_for_nothing,
    differentiates_twice,
    is_compiled,
)
from warpline.rulekit.formulas.activation import activation
from warpline.rulekit.formulas.attention import attention
from warpline.rulekit.formulas.loss import loss
from warpline.rulekit.formulas.norm import norm
from warpline.rulekit.fusible import Run, chains, passes_ms
from warpline.rulekit.graph import FAMILIES, Passes, matched, passes
from warpline.rulekit.graph.constants import RANDOM
from warpline.rulekit.graph.graph import graph_around
from warpline.rulekit.inference import steps
from warpline.rulekit.kernels import is_product
from warpline.rulekit.launches import launching_ms
from warpline.rulekit.model_lines import model_place
from warpline.rulekit.own_launches import model_uncompilable, uncompilable, variants
from warpline.rulekit.saving import Spent
from warpline.rulekit.terms import Term, formulas, function_at
from warpline.wire.probing import COMPILED
from warpline.wire.sites import RECOMPILE_LIMIT

_WORTH_COMPILING = 5.0  # percent of the step: what saves less is a hint
#: Percent of the step from which on a CPU compiles for a trial, which takes it seconds.
_MUCH_ON_A_CPU = 10.0


#: Decorators below which a compiled function works like another one.
_HOLDS = {"staticmethod", "classmethod", "property", "typing.override", "typing_extensions.override"}
_MODES = {
    "torch.no_grad", "torch.enable_grad", "torch.inference_mode", "torch.set_grad_enabled", "torch.autocast",
    "torch.amp.autocast", "torch.cuda.amp.autocast", "torch.autograd.no_grad",
}  # fmt: skip
#: On a CPU Inductor's own random numbers take longer than torch's: normal ones 4.7 ms instead of 0.3, dropout
#: 1.1 instead of 0.6 (131,072 numbers, torch 2.13, measured once).
_TORCHS_NUMBERS = 'options={"fallback_random": True}'


class UnfusedElementwise(Rule):
    area = "fusion"

    def find(self, context: Context) -> Iterator[Draft]:
        if differentiates_twice(context):
            return  # compiled code cannot do that
        if context.can("kernels"):
            yield from self._of_kernels(context)
        elif context.can("replacements"):
            yield from self._of_operators(context)

    def _of_operators(self, context: Context) -> Iterator[Draft]:
        """On a CPU, where only a trial tells what compiled code would gain."""
        recorded = passes(context)
        if not recorded or is_compiled(context):
            return
        told = _told(context)
        found = []
        for (source, function), costs in _by_function(context).items():
            if any(source.inside(one.backward, function) for one in steps(context)):
                continue
            if _is_compiled(source, function) or unrolled(context, source, function):
                continue
            if _around(context, source, function, costs):
                continue
            if variants(context, source, function) > RECOMPILE_LIMIT:
                continue
            inside = _compiled_with(context, source, function, costs)
            runs = chains([one for one in inside if one.place not in told], recorded)
            spent = Spent((cost for run in runs for cost in run.costs), partial(_passing_ms, recorded))
            if context.share(spent.total) >= _MUCH_ON_A_CPU:
                found.append((source, function, inside, spent, costs))
        found = [one for one in found if not any(_adds_nothing(context, one, other) for other in found)]
        for source, function, inside, spent, costs in found:
            whole = tuple(one.place for one in inside)
            if any(set(whole) < {one.place for one in other} for _, _, other, _, _ in found):
                continue  # compiled with the function that calls it
            rest = reached_ms(inside) - spent.total
            calls = sum(recorded[cost.place].count for cost in spent)
            around = _holds_the_step(context, source, function)
            inner = next((one for one in found if _has_all_of(whole, spent, one)), None)
            least = tuple(one.place for one in inner[2]) if inner is not None else whole
            compiled = [(source, function, inside, spent, costs), *([inner] if inner is not None else [])]
            yield context.draft(
                spent.hottest.place if around else source.place(function),
                f"`{function.name.value}` {'and what it calls run' if len(inside) > len(spent) else 'runs'} "
                "{calls} elementwise and reducing operators, which take {spent} ({share}). torch.compile "
                "would fuse them into a few."
                + (" What else these lines do takes {rest}." if context.matters(rest) else ""),
                {
                    "calls": count("elementwise operators", calls, "per step"),
                    **context.spent("elementwise operators", spent.total),
                    **({"rest": ms("other work there", rest)} if context.matters(rest) else {}),
                },
                cause=spent.hottest.place,
                cost_ms=spent.total,
                severity="information",
                change=_compiled_alone(context, source, function, whole, least),
                alternative=_compiled_alone(context, *inner[:2], least, least) if inner is not None else None,
                tried=True,
                fixes=[
                    _broken(context, where, body, own) or partial(_fix, context, where, body, own)
                    for where, body, _, _, own in compiled
                ],
            )

    def _of_kernels(self, context: Context) -> Iterator[Draft]:
        told = _told(context)
        recorded = passes(context)
        for (source, function), costs in _by_function(context).items():
            untold = [cost for cost in costs if cost.place not in told]
            runs = chains(sorted(untold, key=lambda cost: cost.line), recorded)
            kernels = [kernel for run in runs for kernel in run.kernels]
            together = [cost for run in runs for cost in run.costs if run.has_passes(cost)]
            spent = passes_ms(runs)
            if not runs or not context.matters(spent) or _is_compiled(source, function):
                continue
            if skipped_at(context, source, function) is not None or compiled_again(context, source, function):
                continue  # it is compiled already, for nothing: graph-break, recompilation
            step = next((one for one in steps(context) if source.inside(one.backward, function)), None)
            nothing = compiled_for_nothing(context, step)
            if step is not None and nothing is None and is_compiled(context):
                continue  # the model is compiled: what the loop itself adds (a loss, sums) stays as it is
            if step is None and (
                unrolled(context, source, function) or _around(context, source, function, costs)
            ):
                continue
            broken = (
                _broken(context, source, function, costs)
                if step is None
                else model_uncompilable(context, step)
            )
            own = len(kernels)
            change: Change | None = None
            idle = rest = 0.0
            if step is None and broken is None:
                inside = _compiled_with(context, source, function, costs)
                runs = chains([one for one in inside if one.place not in told], recorded)
                kernels = [kernel for run in runs for kernel in run.kernels]
                spent = passes_ms(runs)
                if not kernels or not context.matters(spent):
                    continue  # a product in what it calls lies between its passes
                calls = calls_of(context, source, function)
                whole = tuple((one.file, one.line) for one in inside)
                waited = sum(map(launching_ms, inside))  # compiled code also launches less
                idle = waited if context.matters(waited) else 0.0
                rest = reached_ms(inside) - spent - idle
                # Formulas with findings of their own are compiled with the rest.
                change = Replace(
                    COMPILED,
                    whole,
                    _compiled(chains(inside, recorded), calls),
                    ("", str(round(calls))),
                )
            elif broken is None:
                change = _compiled(runs, 1.0)
            elif step is None:  # nothing is promised: what it costs decides whether it is said
                waited = sum(map(launching_ms, costs))
                idle = waited if context.matters(waited) else 0.0
            saving = max(0.0, spent - max(kernel.device_ms for kernel in kernels)) if broken is None else 0.0
            name = f"`{function.name.value}`" if step is None else "The model"
            yield context.draft(
                source.place(function)
                if step is None
                else step.source.place(nothing)
                if nothing is not None
                else model_place(step),
                f"{name}{' and what it calls run' if len(kernels) > own else ' runs'} {{calls}} "
                "elementwise and reduction kernels, which take {spent} ({share}). torch.compile "
                "would fuse them into a few."
                + (" The device is idle for {idle} at these lines while the host launches." if idle else "")
                + (" What else these lines do takes {rest}." if context.matters(rest) else "")
                + (f" {NOTHING_COMPILED}" if nothing is not None else ""),
                {
                    "calls": count("elementwise kernels", round(sum(k.count for k in kernels)), "per step"),
                    **context.spent("elementwise kernels", spent),
                    **({"idle": ms("idle while launching", idle)} if idle else {}),
                    **({"rest": ms("other work there", rest)} if context.matters(rest) else {}),
                },
                cause=max(together, key=lambda cost: cost.step_ms).place,
                cost_ms=spent if broken is None else spent + idle,
                saving_ms=saving,
                severity="information" if context.share(saving) >= _WORTH_COMPILING else "hint",
                change=change,
                # A function that runs the backward pass as well is not compiled whole.
                fixes=[
                    broken
                    or (
                        partial(compile_model, context, step)
                        if step
                        else partial(_fix, context, source, function, costs)
                    )
                ],
            )


#: A function to compile: the lines that are compiled with it, those with operators to fuse, and its own.
_Found = tuple[Source, cst.FunctionDef, list[LineCost], Spent, list[LineCost]]


def _adds_nothing(context: Context, outer: _Found, inner: _Found) -> bool:
    """Whether all that is to be fused in ``outer`` is in ``inner``, which it calls once. What else it does
    may be compiled again and again, as a tensor of a Python number is for each value."""
    whole, part = ({cost.place for cost in one[2]} for one in (outer, inner))
    fused, same = ({cost.place for cost in one[3]} for one in (outer, inner))
    once = calls_of(context, *outer[:2]) == calls_of(context, *inner[:2])
    return part < whole and fused == same and once


def _has_all_of(whole: tuple[tuple[str, int], ...], spent: Spent, inner: _Found) -> bool:
    """Whether ``inner``, which a function of the lines ``whole`` calls, has all that is to be fused there: it
    is called several times, and compiles much sooner than all of its calls together."""
    part = {cost.place for cost in inner[2]}
    return part < set(whole) and {cost.place for cost in inner[3]} == {cost.place for cost in spent}


def _compiled_alone(
    context: Context,
    source: Source,
    function: cst.FunctionDef,
    whole: tuple[tuple[str, int], ...],
    saved: tuple[tuple[str, int], ...],
) -> Replace:
    """The lines ``whole`` as compiled code of a function; untried, it may save those that are ``saved``."""
    calls = max(1, round(calls_of(context, source, function)))
    return Replace(COMPILED, whole, Scale(saved), ("", str(calls)))


def _told(context: Context) -> set[tuple[str, int]]:
    """Lines with formulas that another rule reports."""
    told = {place for formula in formulas(context, _known) for place in formula.places}
    return told | {place for one in matched(context, *FAMILIES) for place in one.places}


def _passing_ms(recorded: Mapping[tuple[str, int], Passes], cost: LineCost) -> float:
    """On a CPU, the time of a line's elementwise and reducing operators, in both phases."""
    own = sum(op.device_ms for op in cost.ops if not is_product(op.name))
    return min(cost.step_ms, own * recorded.get(cost.place, Passes()).share)


def _holds_the_step(context: Context, source: Source, function: cst.FunctionDef) -> bool:
    """Whether the loop whose turns are the steps is in the function: nothing called the function in them."""
    costs = [cost for cost in _lines_in(context, source, function) if cost.calls > 0]
    called = any(callers(context, function_of(cost)) for cost in costs)
    statements = (source.statement_at(cost.line) for cost in costs)
    return not called and any(
        source.inside(loop, function)
        for statement in statements
        if statement is not None
        for loop in source.loops(statement)
    )


def _compiled_with(
    context: Context, source: Source, function: cst.FunctionDef, costs: Sequence[LineCost]
) -> list[LineCost]:
    """The lines that are compiled with the function: ``costs``, its own, and those of what it calls, but for
    what torch.compile leaves as it is, and for functions that others call as well, whose time is not known
    apart. Where the function has the loop of the steps it is not compiled whole, and what it calls can be
    without it."""
    if _holds_the_step(context, source, function):
        return list(costs)
    inside = alone_in(context, costs, in_order(context, costs))
    left = not_compiled(context, inside)
    return [cost for cost in inside if cost.place not in left]


def _lines_in(context: Context, source: Source, function: cst.FunctionDef) -> list[LineCost]:
    lines = lines_in(context, source, function)
    return [cost for cost in lines if function_at(source, cost.line) is function]


def _compiled(runs: Sequence[Run], calls: float) -> Change:
    places = tuple(cost.place for run in runs for cost in run.costs)
    return Together((*(run.change for run in runs), CompiledCalls(places, calls)))


def _known(term: Term) -> object | None:
    """A formula that another rule reports."""
    return norm(term) or attention(term) or activation(term) or loss(term)


def _by_function(context: Context) -> dict[tuple[Source, cst.FunctionDef], list[LineCost]]:
    found: dict[tuple[Source, cst.FunctionDef], list[LineCost]] = {}
    for cost in context.profile.lines:
        if not (cost.kernels if context.on_gpu else cost.ops) or cost.group:
            continue
        source = context.source(cost.file)
        function = function_at(source, cost.line)
        if function is not None and not source.call(cost.line, "step", "backward"):
            found.setdefault((source, function), []).append(cost)
    return found


def _is_compiled(source: Source, function: cst.FunctionDef) -> bool:
    return any("compile" in source.code(item.decorator) for item in function.decorators)


def _around(context: Context, source: Source, function: cst.FunctionDef, costs: Sequence[LineCost]) -> bool:
    """Whether a long loop is around code that is compiled already: that is compiled again, turn by turn."""
    inside = in_order(context, costs)
    return runs_compiled(inside) and written_out(inside, calls_of(context, source, function))


def _broken(
    context: Context, source: Source, function: cst.FunctionDef, costs: Sequence[LineCost]
) -> str | None:
    """Why the function is not compiled as it is written."""
    if breaks_at(context, source, function) is not None:
        return (
            "a loop in the function waits for the device, and torch.compile skips such a function: move the "
            "code between the waits into its own function, and compile that"
        )
    different = variants(context, source, function)
    if different > RECOMPILE_LIMIT:
        return (
            f"torch.compile would compile this again for each of {different} modules, which differ in shapes "
            f"or in whole numbers that the code reads, and it gives up after {RECOMPILE_LIMIT}: compile a "
            "function that calls all of them"
        )
    inside = in_order(context, costs)
    if written_out(inside, calls_of(context, source, function)):
        return (
            "torch.compile writes out each turn of a loop, and would compile this one for minutes: compile a "
            "function that the loop calls, or move the loop's body into one"
        )
    return uncompilable(context, inside)


def _passes_on(source: Source, decorator: cst.Decorator) -> bool:
    """Whether a decorator only calls what it is given, be it compiled: it sets a mode for the call, or says
    how the class holds the function."""
    made = decorator.decorator
    if isinstance(made, cst.Call):
        return source.name(made.func) in _MODES
    return source.name(made) in _HOLDS | _MODES


def _draws(context: Context, costs: Sequence[LineCost]) -> bool:
    """Whether random numbers are drawn at the lines of a function, or of what it calls."""
    graph = graph_around(context.profile.facts.dataflow)
    places = {cost.place for cost in in_order(context, costs)}
    return graph is not None and any(
        node.name in RANDOM and graph.place(node) in places for node in graph.nodes
    )


def _fix(context: Context, source: Source, function: cst.FunctionDef, costs: Sequence[LineCost]) -> Fix:
    around = [source.code(one.decorator) for one in function.decorators if not _passes_on(source, one)]
    if around:
        raise Refused(f"`@{around[0]}` may need the function as it is: compile what the function computes")
    if _holds_the_step(context, source, function):
        raise Refused(
            "the loop of the steps is in this function, and torch.compile would write out all of its turns: "
            "move what a step computes into its own function, and compile that"
        )
    if any(source.enclosing(node, cst.FunctionDef) is function for node in source.nodes(cst.Yield)):
        raise Refused("torch.compile does not compile generators: compile what the function computes")
    if function.asynchronous is not None or source.enclosing(function, cst.FunctionDef) is not None:
        raise Refused("the function is defined again each time")
    edits = Edits(source)
    name = edits.add_import("torch.compile", "import torch")
    own = not context.on_gpu and _draws(context, costs)
    edits.decorate(function, f"{name}({_TORCHS_NUMBERS})" if own else name)
    return edits.fix(f"Compile {function.name.value}", "unsafe")
