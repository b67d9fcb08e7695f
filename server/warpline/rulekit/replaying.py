"""Whether code can be launched as a CUDA graph: not if it runs again while its last results are needed.

A graph writes its results to the same memory each time. torch keeps those of a forward pass until the
backward pass that needs them has begun (``torch._inductor.cudagraph_trees``). Code that runs several times
before that, as equal layers that are compiled one by one, is recorded again for each place in the order of
its runs. What a checkpoint computes again runs between two parts of the backward pass, when results of other
graphs count as used up: reading them raises an error. So does reading the results of compiled code that ran
without gradients, once other compiled code has run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from warpline.model.profile import LineCost
from warpline.rulekit.compiled_reach import calls_of
from warpline.rulekit.context import Context
from warpline.rulekit.inference import InferenceStep
from warpline.rulekit.model_calls import Calls, model_calls
from warpline.rulekit.model_lines import handed_over, model_class, trained
from warpline.rulekit.training import TrainingStep
from warpline.syntax.source import methods
from warpline.wire.sites import Module, facts_of

#: torch's names for a compiled frame that runs, and for the forward pass of one that has gradients.
_FRAME, _FORWARD = "Torch-Compiled Region", "CompiledFunction"
#: What runs once may be recorded a little more often: a captured step need not begin where a round does.
_ONCE = 1.25
_WHOLE = ": compile what calls all of it, so that a step runs it once"


def regions_overwritten(context: Context, steps: Sequence[TrainingStep]) -> str | None:
    """Why the steps' compiled code cannot be launched as CUDA graphs, as far as the run tells; else None."""
    if _recomputes(context.profile.lines):
        return (
            "the backward pass computes parts of the forward pass again (checkpointing), between its CUDA "
            f"graphs, and that would overwrite what these need{_WHOLE}"
        )
    runs: dict[str, float] = {}
    with_gradients = 0.0
    for cost in context.profile.lines:
        for op in cost.ops:
            if op.phase == "forward" and op.name.startswith(_FRAME):
                runs[op.name] = runs.get(op.name, 0.0) + op.count
            elif op.phase == "forward" and op.name == _FORWARD:
                with_gradients += op.count
    passes = max((_passes(context, step) for step in steps), default=1.0)
    if max(runs.values(), default=0.0) > _ONCE * passes:
        return (
            "the compiled code runs several times before its backward pass, or before the end of the step, "
            f"and each run of a CUDA graph would overwrite the results of the last one{_WHOLE}"
        )
    if 0 < with_gradients * _ONCE < sum(runs.values()):
        return (
            "a step also runs compiled code without gradients, and the next CUDA graph would overwrite its "
            "results"
        )
    return None


def model_overwritten(context: Context, step: TrainingStep) -> bool:
    """Whether the model of ``step``, compiled and launched as a CUDA graph, would overwrite results that are
    still needed."""
    name, layer = trained(step)
    runs = 1.0
    if name is not None and layer is None:
        runs = model_runs(context, step, name, model_calls(context, step, name))
    unknown = not runs and any(name in handed_over(step, one) for one in step.forward)
    return _recomputes(context.profile.lines) or unknown or runs > _ONCE * _passes(context, step)


def _recomputes(costs: Iterable[LineCost]) -> bool:
    return any(op.phase == "recompute" for cost in costs for op in cost.ops)


def _passes(context: Context, step: TrainingStep) -> float:
    """How often a step sends the loss back; one where it does not."""
    if isinstance(step, InferenceStep):
        return 1.0
    here = context.costs_of(step.source, step.backward)
    return max(1.0, max((cost.calls for cost in here), default=1.0))


def model_runs(context: Context, step: TrainingStep, name: str, calls: Calls) -> float:
    """How often a step calls the module ``name``, or all of its layers together: by its ``calls`` in the text
    of the forward pass, and by its own ``forward`` where the run says how often that ran; 0 where neither
    tells."""
    return max(sum(calls.values()), _forward_runs(context, model_class(step, name)))


def _forward_runs(context: Context, name: str) -> float:
    """How often the ``forward`` of the only object of a class of the script's own runs in a step."""
    name = name.rpartition(".")[2]
    sites = [facts_of(Module, site) for site in context.sites(Module.KIND)]
    made = sum(one.count or 1 for one in sites if (one.type or "").rpartition(".")[2] == name)
    if not name or made != 1:
        return 0.0
    for source, owner in context.classes(name):
        if (forward := methods(owner).get("forward")) is not None:
            return calls_of(context, source, forward)
    return 0.0
