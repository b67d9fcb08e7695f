"""Copies from host to device: which they are, and the calls that make them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from warpline.model.profile import Kernel, LineCost
from warpline.rulekit.calling import callers, function_of
from warpline.rulekit.context import Context
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, is_method
from warpline.wire.sites import Loader, Move, facts_of

FileLine = tuple[str, int]


def host_to_device(cost: LineCost, *, pageable: bool) -> float:
    """Device time per step of copies to the device from pageable (or from pinned) host memory."""
    return sum(kernel.device_ms for kernel in _copies(cost, "HtoD", "pageable" if pageable else "pinned"))


def _copies(cost: LineCost, way: str, memory: str) -> list[Kernel]:
    copies = (kernel for kernel in cost.kernels if kernel.kind == "copy")
    return [kernel for kernel in copies if way in kernel.name and memory in kernel.name.lower()]


@dataclass(frozen=True, slots=True)
class CopyWait:
    """Lines of a block whose copies from pinned memory the host waits for; times per step.

    ``seen_ms``: as long as it was seen to wait, under the profiler or in the surveyed step, as far as that
    can cost something: while the host waits, the device copies, or works on what is before the copy.
    ``most_ms``: what it may cost at most, where nothing looks on.
    """

    costs: list[LineCost]  # what takes longest first
    seen_ms: float
    most_ms: float

    @property
    def places(self) -> tuple[FileLine, ...]:
        return tuple(cost.place for cost in self.costs)


def copy_waits(context: Context) -> Iterator[CopyWait]:
    """The copies from pinned memory that the host waits for.

    A profiler slows the host. The device is then done with what is before the copy when the host gets there,
    and a wait that costs much takes next to no time. So does the survey, but less. No wait got shorter by
    more than the step got longer.
    """
    steps, surveyed_ms = context.profile.steps, context.profile.facts.flags.surveyed_ms
    known: set[FileLine] = set()
    for first in context.profile.lines:
        if first.place in known or not _waits_for_copy(context, first):
            continue
        beside = context.costs(moves_beside(context, first.place))
        others = [cost for cost in beside if cost is not first and _waits_for_copy(context, cost)]
        costs = [first, *others]
        known.update(cost.place for cost in costs)
        timed = [wait for cost in costs if (wait := _surveyed_ms(context, cost)) is not None]
        looked_ms = surveyed_ms if timed and surveyed_ms is not None else steps.profiled_step_ms
        waited = max(sum(cost.sync_ms for cost in costs), sum(timed))
        copied = sum(host_to_device(cost, pageable=False) for cost in costs)
        limit = max(copied, context.idle_ms())
        slowed = max(0.0, looked_ms - context.step_ms + context.crowded_ms())
        most = min(waited + slowed, limit)
        yield CopyWait(costs, min(waited, limit), most)


def _waits_for_copy(context: Context, cost: LineCost) -> bool:
    if host_to_device(cost, pageable=False) <= 0:
        return False
    moves = moves_at(context, cost.place)
    if moves:
        return any(move.pinned and not move.non_blocking for move in moves)
    return cost.sync_ms > 0


def moves_at(context: Context, *places: FileLine) -> list[Move]:
    """What was recorded of the moves on these lines."""
    return [facts_of(Move, site) for site in context.sites(Move.KIND) if site.place in places]


def _surveyed_ms(context: Context, cost: LineCost) -> float | None:
    """How long the moves of a line took in the surveyed step, where they were timed."""
    timed = [one.wait_ms for one in moves_at(context, cost.place) if one.wait_ms is not None]
    return sum(timed) if timed else None


def copied_to_host_unwaited(context: Context) -> bool:
    """Whether a step copies from the device to pinned host memory without waiting for it. Such a copy may
    still be under way when its call returns, and something else has to wait before the values are read.
    ``item()`` copies to pinned memory as well, but waits on the same line."""
    lines = context.profile.lines
    return any(sum(one.count for one in _copies(cost, "DtoH", "pinned")) > cost.syncs for cost in lines)


def own_pinned_memory(context: Context) -> bool:
    """Whether a step copies to the device from pinned memory that is not a loader's: the script may fill it
    again once the copy is over. torch keeps that of a loader's batch until then."""
    if not any(host_to_device(cost, pageable=False) > 0 for cost in context.profile.lines):
        return False
    loaders = (facts_of(Loader, site) for site in context.sites(Loader.KIND) if site.uses)
    return not any(loader.pin_memory for loader in loaders)


def move_calls(source: Source, line: int) -> list[cst.Call]:
    """``x.to(…)`` and ``x.cuda(…)`` calls on a line, in the order of the text."""
    found = [call for call in source.calls(line) if is_method(call, "to", "cuda")]
    return sorted(found, key=lambda call: source.span(call)[1])


def without_waiting(context: Context, places: list[FileLine]) -> dict[str, Edits]:
    """``non_blocking=True`` for every move at ``places`` that does not say it yet, by file; also for
    moves to the same device beside them: one that waits would undo the others' overlap. A function that
    passes its own keywords on to the move gets it from its callers.

    Raises Refused when no such call is found.
    """
    made: dict[str, Edits] = {}
    places = list(dict.fromkeys(place for own in places for place in (own, *moves_beside(context, own))))
    known = set[int]()
    for file, line in sorted(places):
        given = [
            one for call in move_calls(context.source(file), line) for one in _given(context, file, call)
        ]
        for source, call, position in given:
            if id(call) not in known and source.passed(call, "non_blocking", position) is not True:
                known.add(id(call))
                made.setdefault(source.path, Edits(source)).set_argument(call, "non_blocking", "True")
    if not made:
        raise Refused("the calls that copy were not found on those lines")
    return made


def _given(context: Context, file: str, move: cst.Call) -> list[tuple[Source, cst.Call, int | None]]:
    """The calls that ``move`` has its keywords from, each with the position of ``non_blocking``: itself, or
    those of its function in the steps, where it unpacks that function's ``**`` and nothing else reads it."""
    source = context.source(file)
    unpacked, position = source.unpacked(move), _position(move)
    if not unpacked or source.argument(move, "non_blocking", position) is not None:
        return [(source, move, position)]
    function, cost = source.enclosing(move, cst.FunctionDef), context.cost(*source.place(move))
    own = function.params.star_kwarg if function is not None else None
    calls: list[tuple[Source, cst.Call, int | None]] = []
    if function and own and cost and source.uses(own.name.value, function.body) == unpacked:
        lines = [(context.source(line.file), line.line) for line in callers(context, function_of(cost))]
        name = function.name.value
        calls += [(where, call, None) for where, line in lines for call in where.calls(line, name)]
    if not calls:
        raise Refused("`non_blocking` may be in the unpacked arguments")
    return calls


def never_wait(context: Context, places: list[FileLine]) -> bool:
    """Whether every move at ``places`` says ``non_blocking=True`` already."""
    lines = ((context.source(file), line) for file, line in places)
    moves = [(source, call) for source, line in lines for call in move_calls(source, line)]
    passed = (source.passed(call, "non_blocking", _position(call)) for source, call in moves)
    return bool(moves) and all(one is True for one in passed)


def _position(move: cst.Call) -> int:
    """The position of ``non_blocking``."""
    return 2 if is_method(move, "to") else 1


def moves_beside(context: Context, place: FileLine) -> list[FileLine]:
    """Lines of the same block with a move to the same place, be it ever so quick."""
    source = context.source(place[0])
    moves = move_calls(source, place[1])
    if not moves:
        return []
    wanted = {_target(source, call) for call in moves}
    return [
        (place[0], source.line(call))
        for statement in source.block(moves[0])
        if isinstance(statement, cst.SimpleStatementLine)
        for call in move_calls(source, source.line(statement))
        if _target(source, call) in wanted
    ]


def _target(source: Source, call: cst.Call) -> tuple[bool, str]:
    return is_method(call, "to"), source.code(call.args[0].value) if call.args else ""


def loop_over(context: Context, place: FileLine) -> tuple[FileLine, ...]:
    """The lines of the ``for`` statements around ``place`` (none for a place in another function)."""
    source = context.source(place[0])
    node = source.statement_at(place[1])
    return tuple(source.place(loop) for loop in source.loops(node)) if node is not None else ()


def moved_to(source: Source, move: cst.Call) -> dict[str, str]:
    """Keywords equivalent to ``.to(…)`` or ``.cuda(…)``. Raises Refused for arguments that are not
    understood."""
    found: dict[str, str] = {}
    for arg in move.args:
        code = source.code(arg.value)
        name = arg.keyword.value if arg.keyword is not None else ""
        if name in ("non_blocking", "copy") or (not name and isinstance(source.literal(arg.value), bool)):
            continue
        if name not in ("", "device", "dtype") or arg.star:
            raise Refused(f"`{code}` in the move could not be understood")
        is_type = name == "dtype" or source.name(arg.value).startswith("torch.")
        found["dtype" if is_type else "device"] = code
    if is_method(move, "cuda") and "device" not in found:
        found["device"] = '"cuda"'
    value = found.get("device", "")
    if not value or not _names_device(value):
        raise Refused("its target may not be a device")
    return dict(sorted(found.items()))


def _names_device(code: str) -> bool:
    """``device``, ``self.device``, ``DEVICE``, ``dev``, ``"cuda:0"``, ``0``; not ``other_tensor``."""
    return bool(re.search(r"device|cuda|\bdev\b", code.lower())) or code.isdigit()
