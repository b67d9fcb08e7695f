"""The trials that a change needs, and the change with their results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from statistics import fmean, stdev

from warpline.devices import can
from warpline.model import costs
from warpline.model.change import Change, Fuse, MatmulRate, Operator, PadProducts, Replace, Scale, Together
from warpline.model.profile import LineCost, Profile
from warpline.model.student import student
from warpline.probing import compiled, inputs, layouts, loops, optimizers, pointwise
from warpline.wire.probing import COMPILED, NOT_COMPILING, Answer, Cost, Probed, Question

Answers = Mapping[Question, Answer]

#: What a kind is asked about; activations and losses by their whole inputs.
_READERS: dict[str, inputs.Reader] = {
    "layer_norm": inputs.reduced,
    "rms_norm": inputs.reduced,
    "attention": inputs.attended,
    "fused_attention": inputs.fused_attention,
    "cat": inputs.grown,
    "padded": inputs.odd,
    "narrower": inputs.doubles,
    "convolution": inputs.convolved,
    "recurrent": inputs.recurrent,
    "embedding": inputs.looked_up,
    "topk": inputs.ordered,
    "windows": inputs.cut,
}
#: Tried on what the operators themselves did. The other kinds are tried in one usual spelling, and what is
#: written may cost more than that, or less.
_AS_RECORDED = frozenset({
    "fused_attention", "cat", "padded", "narrower", "convolution", "pointwise", "loop", "rows", "lists",
    "optimizer", "recurrent", "channels_last", "embedding", "topk", "windows", COMPILED,
})  # fmt: skip
#: Of those the ones whose inputs say how often they run, or that are tried as they are in a whole step.
_COUNTED, _WHOLE = frozenset({"fused_attention"}), frozenset({"optimizer"})
#: A spelling that seems to cost more times the usual one, or less, was not counted right.
_SPELLED = 4.0
#: The share of the time between operators that is Python of the script.
PYTHON = costs.value("python-between")
#: Products that are asked about, those that take longest first.
MOST_PRODUCTS = 12


def by_question(probed: Probed) -> Answers:
    """The answers of a run, by what was asked."""
    return {one.question: one for one in probed.answers}


def questions(profile: Profile, change: Change) -> list[Question]:
    """What has to be tried, what matters most first; none where nothing can be."""
    if isinstance(change, Together):
        return [one for part in change.changes for one in questions(profile, part)]
    if isinstance(change, Replace):
        return [question for question, _ in _asked(profile, change)]
    if isinstance(change, MatmulRate):
        return [question for question, _, _ in _products(profile, change)]
    return []


def informed(profile: Profile, change: Change, answers: Answers) -> tuple[Change, bool]:
    """``change`` with what was found out, and whether that is all that can be found out of it."""
    if isinstance(change, Together):
        parts = [informed(profile, part, answers) for part in change.changes]
        return Together(tuple(part for part, _ in parts)), bool(parts) and all(tried for _, tried in parts)
    if not answers:
        return change, False
    if isinstance(change, Replace):
        asked = _asked(profile, change, answers)
        left = _left(asked, answers)
        if left is None:
            return change, False
        device, host = left
        on_device = can(profile.manifest.device.kind, "kernels")
        if isinstance(change.otherwise, PadProducts):
            return replace(change.otherwise, left=device, assumed=False), True
        if change.by == "loop":  # one call takes the host as long, however many rounds it replaces
            host *= min(1.0, loops.tried_rounds(asked[0][0]) / int(change.options[0]))
        if change.by == COMPILED:
            host = _of_whole_calls(profile, change, asked, answers, host)
        # Other findings are about other tables of these lines; a line with a sort has other work, too.
        if change.by in ("embedding", "topk"):
            return _apart(change, device, on_device), True
        dearer = _dearer(profile, change, asked, answers)
        device, host = device / dearer, host / max(1.0, dearer)
        between = _left_between(change, host, on_device)
        fused = Fuse(change.places, keep=device, shares=change.shares, keep_host=host, keep_between=between)
        return fused, True
    if isinstance(change, MatmulRate):
        tried: dict[Operator, float] = {}
        spent = known = 0.0
        for question, operator, ms in _products(profile, change):
            answer = answers.get(question)
            spent += ms
            if answer is not None and answer.before is not None and answer.after is not None:
                known += ms
                tried[operator] = answer.after.device_ns / answer.before.device_ns
        if spent and known >= inputs.COVERED * spent:
            return replace(change, tried=tuple(tried.items())), True
    return change, False


def _left_between(change: Replace, host: float, on_device: bool) -> float | None:
    """What stays of the host's time between operators, if that is another share than of the operators. A
    trial has none of the script's Python. Compiled code leaves it out; with more rows it runs as often as
    before."""
    if change.by == "rows":
        return 1.0
    return host * (1 - PYTHON) if change.by == COMPILED and on_device else None


def _of_whole_calls(
    profile: Profile, change: Replace, asked: inputs.Weighted, answers: Answers, host: float
) -> float:
    """The share ``host`` of a trial of a part, for whole calls: what a call costs beside its launches
    (guards, the runtime around the graph) is paid once for all parts. Of a CUDA graph that is all there is.
    Of code that launches, the same part replayed as a CUDA graph tells it, where that was tried as well: such
    a call costs more than one that launches, by the figures of both. Where it was not, or records a graph in
    each call, the figure alone tells, in operators of the trial.
    """
    tried = {bool(weight): answers[one] for one, weight in asked if one in answers}
    own, replayed = tried.get(True), tried.get(False)
    if own is None or own.before is None or own.after is None:
        return host
    parts = compiled.parts(profile, change)
    if compiled.is_graph(own.question):
        return host / parts * compiled.replayed_whole(profile, change, own.question)
    once = compiled.call_in_operators(own.question)
    if replayed is not None and replayed.after is not None and _replays(own.after, replayed.after):
        once = compiled.call_share(own.question) * replayed.after.host_ns / own.before.host_ns
    once = min(host, once)
    return host - once + once / parts


def _replays(launched: Cost, replayed: Cost) -> bool:
    """Whether a trial as a CUDA graph replays one: recording it each time takes the host longer than the
    launches, and the device waits for that."""
    return replayed.host_ns < launched.host_ns or replayed.device_ns <= launched.device_ns


def _apart(change: Replace, left: float, on_device: bool) -> Together:
    """``left`` of each line's share. On a device the host's time stays."""
    parts = zip(change.places, change.shares, strict=True)
    shares = [(place, 1 - share * (1 - min(1.0, left))) for place, share in parts]
    return Together(tuple(Scale((place,), of, 1.0 if on_device else of, apart=True) for place, of in shares))


def compiling_s(profile: Profile, change: Change, answers: Answers) -> float:
    """Seconds that ``change`` compiles for, once; 0 where it compiles nothing that is known.

    Trials of a part count as often as the part goes into the whole. Without one the operators are counted.
    """
    if isinstance(change, Together):
        return sum(compiling_s(profile, part, answers) for part in change.changes)
    if not isinstance(change, Replace) or change.by != COMPILED:
        return 0.0
    tried = [answers[one].compiling_s for one, weight in _asked(profile, change) if weight and one in answers]
    spent = sum(tried)
    return spent * compiled.size(profile, change) if spent else compiled.untried_s(profile, change)


def not_compiling(profile: Profile, change: Change, answers: Answers) -> str:
    """Why nothing can be compiled where the script runs, if a trial of ``change`` found that; else ""."""
    if isinstance(change, Together):
        return next(filter(None, (not_compiling(profile, part, answers) for part in change.changes)), "")
    if not isinstance(change, Replace) or change.by != COMPILED:
        return ""
    errors = (answers[one].error for one, _ in _asked(profile, change) if one in answers)
    return next((error for error in errors if error.startswith(NOT_COMPILING)), "")


def undecided(profile: Profile, change: Change, answers: Answers) -> bool:
    """Whether the rounds of the trials differ too much to say that ``change`` gains: at the upper end of the
    95 % interval, what was tried takes as long as it does now, or longer.

    Each answer's share is the mean of its rounds, in the logarithm, and has that mean's standard error. One
    round says nothing of how far it may be off.
    """
    if not isinstance(change, Replace):
        return False
    share = variance = now = 0.0
    least = math.inf
    for question, weight in _asked(profile, change, answers):
        ratios = answers[question].ratios if question in answers else ()
        if ratios:
            logs = [math.log(ratio) for ratio in ratios]
            error = stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.inf
            taken = weight * math.exp(fmean(logs))
            now, share, variance = now + weight, share + taken, variance + (taken * error) ** 2
            least = min(least, len(logs))
    return now > 0 and not (least > 1 and share + student(int(least) - 1) * math.sqrt(variance) < now)


def _asked(profile: Profile, change: Replace, answers: Answers = layouts.NO_ANSWERS) -> inputs.Weighted:
    if change.by == "optimizer":
        return optimizers.questions_for(profile, change)
    if change.by == "channels_last":
        return layouts.questions_for(profile, change, _costs(profile, change.places), answers)
    if change.by == "loop":
        return loops.questions_for(profile, change, _costs(profile, change.places))
    if change.by == "pointwise":
        return pointwise.questions_for(profile, change, _costs(profile, change.places))
    if change.by == "lists":
        return loops.lists_for(profile, change)
    if change.by == "rows":
        return loops.rows_for(profile, change, _costs(profile, change.places))
    if change.by == COMPILED:
        return compiled.questions_for(profile, change, _costs(profile, change.places))
    return _READERS.get(change.by, inputs.whole)(change.by, change.options, _costs(profile, change.places))


def _costs(profile: Profile, places: tuple[tuple[str, int], ...]) -> list[LineCost]:
    wanted = set(places)
    return [cost for cost in profile.lines if not places or (cost.file, cost.line) in wanted]


def _left(weighted: inputs.Weighted, answers: Answers) -> tuple[float, float] | None:
    """``(device, host)``: the shares of the time now that the replacement takes; None where too little is
    known."""
    whole = known = device = host = 0.0
    for question, weight in weighted:
        answer = answers.get(question)
        whole += weight
        if answer is not None and answer.before is not None and answer.after is not None:
            known += weight
            device += weight * answer.after.device_ns / answer.before.device_ns
            host += weight * answer.after.host_ns / answer.before.host_ns
    if not known or known < inputs.COVERED * whole:
        return None
    return device / known, host / known


def _dearer(profile: Profile, change: Replace, asked: inputs.Weighted, answers: Answers) -> float:
    """How many times the trial's time now the lines themselves take: one where that is not known.

    The lines run so often a step, with each of the inputs as often as they occur among these; of an attention
    below a line, in a library, only the inputs tell how often it runs. On a device that is another spelling
    than the usual one. On a CPU a line's time has what other processes took of it, and the trial's has not:
    only what new pages take, which a trial has none of, can be the lines' own. They hold what the operators
    compute on the way, which the replacement does not.
    """
    costs = [cost for cost in _costs(profile, change.places) if cost.calls > 0]
    on_device = can(profile.manifest.device.kind, "kernels")
    known = _WHOLE | _COUNTED if not on_device else frozenset()
    if change.by in _AS_RECORDED - known or not costs:
        return 1.0
    shares = dict(zip(change.places, change.shares, strict=False))
    own_ms = sum(cost.device_ms * shares.get((cost.file, cost.line), 1.0) for cost in costs)
    counts = usual_ns = 0.0
    for question, weight in asked:
        answer = answers.get(question)
        if answer is not None and answer.before is not None:
            one = 1 if change.by in _WHOLE else prod(question.tensors[0].shape)
            count = weight / max(1, one)
            counts += count
            usual_ns += count * answer.before.device_ns
    below = change.by == "attention" and any(cost.inside for cost in costs)
    runs = counts if below or change.by in _COUNTED else min(cost.calls for cost in costs)
    runs = runs * counts if change.by in _WHOLE else runs
    usual_ms = runs * usual_ns / counts / 1e6 if counts else 0.0
    times = own_ms / usual_ms if usual_ms > 0 else 1.0
    if not on_device:
        memory = profile.facts.memory
        pages_ms = (memory.new_pages_per_step or 0.0) * (memory.page_ns or 0.0) / 1e6
        return max(1.0, min(times, 1 + pages_ms / usual_ms)) if usual_ms > 0 else 1.0
    return times if 1 / _SPELLED <= times <= _SPELLED else 1.0


def _products(profile: Profile, change: MatmulRate) -> list[tuple[Question, Operator, float]]:
    """Each product that takes time in float32, as a question, with its operator and its time a step."""
    if not can(profile.manifest.device.kind, "kernels") or change.factor is not None:
        return []
    found: dict[tuple[Question, Operator], float] = {}
    costs = _costs(profile, change.places)
    calls = [(Question("product", pair, (change.precision,)), op) for pair, op in inputs.products(costs)]
    if change.precision != "tf32":  # cuDNN's own choice already
        backward = inputs.differentiated(costs)
        calls += [
            (Question("convolution", pair, (*words, change.precision), backward), op)
            for pair, words, op in inputs.convolutions(costs)
        ]
    for question, op in calls:
        if question.tensors[0].dtype == "float" and op.device_ms > 0:
            key = question, (op.name, op.shapes, op.strides)
            found[key] = found.get(key, 0.0) + op.device_ms
    longest = sorted(found.items(), key=lambda item: -item[1])[:MOST_PRODUCTS]
    return [(question, operator, ms) for (question, operator), ms in longest]
