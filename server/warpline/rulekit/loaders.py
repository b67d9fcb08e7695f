"""Loaders, for several rules: the wait for their batches, and edits of their arguments."""

from __future__ import annotations

import math
from collections.abc import Iterable

import libcst as cst

from warpline.model.costs import bound, value
from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit.changing import Changes
from warpline.rulekit.context import Context
from warpline.rulekit.frameworks import goes_through_again
from warpline.rulekit.holders import argument, holder, words
from warpline.rulekit.origins import Origin, argument_origin, assigned_values, mapping, origin
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, parameters
from warpline.wire.run import Site
from warpline.wire.sites import Loader, facts_of
from warpline.wire.workers import Workers

#: DataLoader's parameters in order, for those passed by position.
POSITIONS = {
    "batch_size": 1, "sampler": 3, "batch_sampler": 4, "num_workers": 5, "collate_fn": 6, "pin_memory": 7,
    "drop_last": 8, "timeout": 9, "multiprocessing_context": 11,
}  # fmt: skip
BUSY = bound("loader-busy")
_MOST_SUBSETS = 4  # of subsets, that are followed
LEAST_BUSY = 1 / 64  # of a core, which a worker needs at least: chosen, as no loader gets more than 64
#: Elements from which on torch divides an operator among threads (``at::internal::GRAIN_SIZE``), and how long
#: these loop afterwards: 3 to 5 ms on a Xeon (libgomp), about 6 beside an H200.
GRAIN, LOOPS_MS = 32768, 4.0
#: Percent of the step from which on a wait in spite of workers is reported (as in the TensorBoard plugin).
WAITS_PERCENT = 100 * bound("loader-waits")
_TELLING = {"dataset", "batch_size", "shuffle", "num_workers", "collate_fn", "drop_last", "pin_memory"}


def spare_cores(context: Context) -> int | None:
    """Cores that the operators leave to workers, where the CPU is the device; else, and where that is
    unknown, None."""
    on_cpu = context.profile.manifest.device.kind == "cpu"
    return context.profile.facts.flags.spare_cores if on_cpu else None


def cores_of_loading(context: Context, site: Site, lines: Iterable[LineCost]) -> int:
    """Cores that a worker of ``site`` keeps busy: its own, and those of threads of libraries, as NumPy's for
    products, which wait for more work in a loop. A trial tells; without one, what the main process kept busy.

    ``lines``: where batches are loaded. Torch's operators have one thread in a worker, so their threads do
    not count, also while they loop for more after one of loading, and on a CPU after the step's.
    """
    loader, flags = facts_of(Loader, site), context.profile.facts.flags
    most = int(flags.cpu_count or 1)
    if loader.worker_cores is not None:
        return max(1, min(round(loader.worker_cores), most))
    beside = loader.in_main_beside
    if beside is None or flags.threads is None:
        return 1
    share = _threaded_share(lines) if context.on_gpu else 1.0
    others = round(max(0.0, beside - share * (flags.threads - 1)))
    return max(1, min(1 + others, most))


def _threaded_share(lines: Iterable[LineCost]) -> float:
    """The part of loading at ``lines`` in which threads of torch's operators work or loop."""
    loading = threaded = 0.0
    for cost in lines:
        loading += cost.loader_ms
        threaded += sum(op.cpu_ms for op in cost.ops if op.outer)
        large = (op.count for op in cost.ops if any(math.prod(one) > GRAIN for one in op.shapes))
        threaded += LOOPS_MS * max(large, default=0.0)
    return min(1.0, threaded / loading) if loading > 0 else 1.0


def exposed_ms(context: Context, cost: LineCost) -> float:
    """The part of a line's loader time in which the device had nothing to do; on a CPU all of it."""
    return min(cost.loader_ms, cost.idle_ms) if context.on_gpu else cost.loader_ms


def waited_ms(context: Context, site: Site) -> float:
    """What each step waits for batches of ``site``, which has workers, the device being idle.

    The workers go on while the profiler starts. The captured steps then find batches that are ready, and
    wait less than those of the timing window did. On a CPU that window alone says it: nothing else is to be
    done meanwhile, and the step is as long as it was there.
    """
    captured = sum(exposed_ms(context, cost) for cost in waits(context, site))
    timed = facts_of(Loader, site).wait_ms
    if context.on_gpu:
        return max(captured, min(timed or 0.0, _not_working_ms(context)))
    return captured if timed is None else min(timed, context.step_ms)


def _not_working_ms(context: Context) -> float:
    """How long the device can have been without work of the script's in a timed step, at most. Where those
    took longer than the captured ones, the profile spreads their time, which leaves too little as idle."""
    kernels = context.profile.totals.get("device_ms")
    idle = context.idle_ms()
    return idle if kernels is None else max(idle, context.step_ms - float(kernels))


def starved_ms(context: Context, site: Site) -> float:
    """What of ``waited_ms`` too few workers can be to blame for: nothing where they keep up with steps that
    do not wait, by the time that a batch takes one of them (waits for a processor left out: more workers
    would have to wait too), or where that time is unknown."""
    present = facts_of(Loader, site).num_workers or 0
    wait = waited_ms(context, site)
    if context.profile.facts.workers is None:
        if present and context.share(wait) >= WAITS_PERCENT:
            context.note(
                "steps wait for loader workers, but the time that a worker needs for a batch is unknown"
            )
        return 0.0
    return 0.0 if _keep_up(context, site, wait) else wait


def _keep_up(context: Context, site: Site, waited_ms: float) -> bool:
    """Whether workers keep up with steps that do not wait, by the time that a batch takes one of them, its
    waits for a processor left out."""
    present = facts_of(Loader, site).num_workers or 0
    workers = context.profile.facts.workers
    return workers is None or _work_ms(context, site, workers) < present * (context.step_ms - waited_ms)


def _work_ms(context: Context, site: Site, workers: Workers) -> float:
    """Milliseconds that one worker needs for the batches of a step, without its waits for a processor."""
    batches = max(1.0, sum(cost.calls for cost in context.costs(site.uses)))
    return batches * (workers.batch_ms - workers.queued_ms)


def crowded_ms(context: Context, own_ms: float, work_ms: float) -> float:
    """What a step of ``own_ms`` waits at least, as its work and that of workers has to be done by the cores
    that there are; 0 if their number is unknown."""
    cores = context.profile.facts.flags.cpu_count
    return max(0.0, (own_ms + work_ms) / cores - own_ms) if cores else 0.0


def start_ms(context: Context, site: Site) -> float | None:
    """What workers that stay would save at the start of a usual epoch, in ms: not the time of the first
    batch, which they too have to make. None if it was not measured."""
    loader, workers = facts_of(Loader, site), context.profile.facts.workers
    if loader.start_ms is None:
        return None
    return max(0.0, loader.start_ms - (workers.batch_ms if workers is not None else 0.0))


def slowed_ms(context: Context, site: Site) -> float:
    """What the first step of an epoch takes longer than the others beside its wait: new workers share the
    memory of the process that starts them, which then copies each page that it writes to (`man 2 fork`). Only
    what is longer than the device's work, where that goes on meanwhile. 0 where it was not measured."""
    loader = facts_of(Loader, site)
    if loader.after_first_ms is None or loader.after_others_ms is None:
        return 0.0
    device_ms = float(context.profile.totals.get("device_ms") or 0.0) if context.on_gpu else 0.0
    return max(0.0, loader.after_first_ms - max(loader.after_others_ms, device_ms))


def taking_ms(batch_ms: float) -> float:
    """What the main process spends on a batch that a worker made in ``batch_ms``, without a wait for it."""
    return max(value("batch-take-ns") / 1e6, value("batch-take-share") * batch_ms)


def begins_again(context: Context, site: Site) -> bool:
    """Whether the loader is iterated again in each round of a loop: what iterates it is in one, or in a
    function that is called in one, perhaps by other functions. A framework may have the loop."""
    for file, line in site.uses:
        source = context.source(file)
        statement = source.statement_at(line)
        if statement is not None and _is_repeated(context, source, statement, set()):
            return True
        if goes_through_again(context, (file, line)):
            return True
    return False


def _is_repeated(context: Context, source: Source, node: cst.CSTNode, seen: set[cst.FunctionDef]) -> bool:
    """Whether ``node`` is in a loop, or in a function that was called from one, directly or not."""
    if source.loops(node):
        return True
    function = source.enclosing(node, cst.FunctionDef)
    if function is None or function in seen:
        return False
    seen.add(function)
    return any(
        _may_call(where, call, source, function)
        and context.reached.node(where, call) is not False
        and _is_repeated(context, where, call, seen)
        for where, call in context.calls(function.name.value)
    )


def _may_call(where: Source, call: cst.Call, source: Source, function: cst.FunctionDef) -> bool:
    """Whether a call by the name of ``function``, which is in ``source``, may be one of it, by how it is
    written and what it passes: `model.train()` is none of `def train(model, loader)`."""
    taken = function.params
    most = len(parameters(function))
    least = sum(one.default is None for one in (*taken.posonly_params, *taken.params))
    if source.enclosing(function, cst.ClassDef) is not None:
        named = isinstance(call.func, cst.Attribute)
        own = 0 if source.decorated(function, "staticmethod") else 1
        most, least = most - own, least - own
    elif where is source:
        named = isinstance(call.func, cst.Name)
    else:
        named = bool(where.imported_from(call.func)) or _imports_all(where)
    if isinstance(taken.star_arg, cst.Param) or taken.star_kwarg is not None:
        most = max(most, len(call.args))
    return named and (any(arg.star for arg in call.args) or least <= len(call.args) <= most)


def _imports_all(source: Source) -> bool:
    return any(isinstance(one.names, cst.ImportStar) for one in source.nodes(cst.ImportFrom))


def keeping_up_ms(context: Context, site: Site) -> float | None:
    """The most of a step that it can wait for what the workers do: a batch, which each of them makes in turn,
    and where they keep up with the steps only the share of the first one of an epoch, or for the cores that
    they take from it. None if unknown.

    A longer wait is for something else than what they do: they start again, or the machine is busy.
    """
    workers, loader = context.profile.facts.workers, facts_of(Loader, site)
    if workers is None or not loader.num_workers:
        return None
    epoch = loader.batches_per_epoch or loader.batches_seen
    first_ms = workers.batch_ms / epoch if epoch else 0.0
    waited = waited_ms(context, site)
    if _keep_up(context, site, waited):
        busy_ms = (1.0 if workers.busy is None else workers.busy) * _work_ms(context, site, workers)
        return max(first_ms, crowded_ms(context, context.step_ms - waited, busy_ms))
    return workers.batch_ms / loader.num_workers + first_ms


def launching_share(context: Context) -> float:
    """The part of the idle time that launching may be to blame for, 0 to 1.

    Not the wait for batches that the timed steps had and the captured ones did not, whose time is spread over
    the captured lines. And no more than the device was idle in the captured steps: a profiled host is slower,
    so what the timed steps lost beyond that they lost to something else. Where other processes used the
    device, no more than it was idle in the quickest of the timed steps: launching takes as long in each of
    them, and the quickest was disturbed least (as `timeit`'s documentation says of the minimum).
    """
    unseen = 0.0
    for site in context.sites("loader"):
        if facts_of(Loader, site).num_workers:
            captured = sum(exposed_ms(context, cost) for cost in waits(context, site))
            unseen += max(0.0, waited_ms(context, site) - captured)
    idle = context.idle_ms()
    if idle <= 0:
        return 1.0
    launching, kernels = idle - unseen, context.profile.totals.get("device_ms")
    slowdown = context.profile.steps.slowdown
    if kernels is not None and slowdown < 1:
        launching = min(launching, slowdown * context.step_ms - float(kernels))
    timed = context.profile.manifest.timed_ns
    if kernels is not None and timed and context.profile.facts.nvml.other_processes:
        launching = min(launching, min(timed) / 1e6 - float(kernels))
    return min(1.0, max(0.0, launching / idle))


def waits(context: Context, site: Site) -> list[LineCost]:
    """The lines at which the step waits for batches of ``site``, or makes them: where it is iterated,
    and for a loader without workers the lines of its dataset; what waits longest first."""
    beside = [other for other in context.sites("loader") if set(other.uses) & set(site.uses)]
    timed = [facts_of(Loader, other).wait_ms is not None for other in (site, *beside)]
    if any(timed) and not timed[0]:
        return []  # the steps took batches of another one: `trainer.fit()` iterates a validation's too
    found = [cost for cost in context.costs(site.uses) if cost.loader_ms > 0]
    if facts_of(Loader, site).num_workers == 0 and site.uses:
        used = [other for other in context.sites("loader") if other.uses]
        at_use = {place for other in used for place in other.uses}
        own_files = {facts_of(Loader, site).dataset_file, facts_of(Loader, site).collate_file}
        if _at_uses(context, site) < max(_at_uses(context, other) for other in used if _alike(site, other)):
            used, own_files = [], set()  # of two loaders of one dataset, the steps iterate the other one more
        found += [
            cost
            for cost in context.profile.lines
            if cost.loader_ms > 0 and cost.place not in at_use and (len(used) == 1 or cost.file in own_files)
        ]
    return sorted(found, key=lambda cost: (-cost.loader_ms, cost.file, cost.line))


def _at_uses(context: Context, site: Site) -> float:
    return sum(cost.loader_ms for cost in context.costs(site.uses))


def _alike(site: Site, other: Site) -> bool:
    return other is site or facts_of(Loader, site).dataset_file == facts_of(Loader, other).dataset_file


def made_in_step(context: Context, site: Site) -> bool:
    """Whether the steps make this loader again: its workers would be started each time.

    Not for a loader that is made in the head of the loop over it: that line is begun for each batch.
    """
    cost = context.cost(site.file, site.line)
    return cost is not None and cost.calls >= 0.5 and site.place not in site.uses


def iterates_itself(context: Context, site: Site) -> bool:
    """Whether the dataset is an iterable one that does not share its samples out among workers."""
    dataset = facts_of(Loader, site)
    file, line = dataset.dataset_file, dataset.dataset_line
    source = context.source(file if file in context.profile.sources and file is not None else "")
    function = next(iter(source.at(int(line), cst.FunctionDef)), None) if line else None
    if function is None:
        return "Iterable" in (dataset.dataset_type or "")
    owner = source.enclosing(function, cst.ClassDef) or function
    return function.name.value == "__iter__" and "get_worker_info" not in source.code(owner)


def iterated_at(context: Context, site: Site) -> tuple[str, int]:
    """The line that iterates the loader, the one that waits longest of several."""
    costs = sorted(context.costs(site.uses), key=lambda cost: -cost.loader_ms)
    return costs[0].place if costs else (site.uses or (site.place,))[0]


def loader_call(context: Context, site: Site) -> tuple[Source, cst.Call]:
    """The call that makes the loader. Raises Refused when it is not found on the site's line."""
    found = _call(context, site)
    if found is None:
        raise Refused("the call that creates the loader was not found on that line")
    return found


def _call(context: Context, site: Site) -> tuple[Source, cst.Call] | None:
    source = context.source(site.file)
    named = source.call(site.line, "DataLoader", "super.__init__", "__init__")
    if named is not None:
        return source, named
    # An alias, a factory, a subclass: the call on that line that takes what a loader takes.
    for call in source.calls(site.line):
        told = any(arg.keyword is not None and arg.keyword.value in _TELLING for arg in call.args)
        if told or source.unpacked(call):
            return source, call
    return None


def dataset_at(context: Context, site: Site) -> tuple[str, int]:
    """Where the loader's dataset is made; where the loader is, if that cannot be seen."""
    found = _call(context, site)
    if found is None:
        return site.place
    source, given = found[0], found[0].argument(found[1], "dataset", 0)
    for _ in range(_MOST_SUBSETS):
        if given is None:
            break
        value = given.value
        if isinstance(value, (cst.Name, cst.Attribute)):
            made = [
                (where, node)
                for where, node in assigned_values(context, source, value)
                if isinstance(node, cst.Call) and context.reached.node(where, node) is not False
            ]
            if len(made) != 1:
                return site.place
            source, value = made[0]
        if not source.is_named(getattr(value, "func", None), "Subset"):
            return source.place(value)
        assert isinstance(value, cst.Call)
        given = source.argument(value, "dataset", 0)
    return site.place


def setting(context: Context, site: Site, name: str) -> Origin | None:
    """Where the loader's ``name`` comes from; None when it is not passed (or cannot be seen)."""
    found = _call(context, site)
    return argument_origin(context, *found, name, POSITIONS.get(name)) if found is not None else None


def edit_site(context: Context, site: Site, name: str) -> tuple[str, int]:
    """The line to change ``name`` at: where its value is written, else the call that makes the loader."""
    held = holder(site, name)
    if held is not None:
        return held.place
    found = setting(context, site, name)
    return found.place if found is not None and found.editable else site.place


def unpacked_at(context: Context, site: Site) -> tuple[str, int] | None:
    """The line of the dict that the call unpacks, where an argument can be added; None if it unpacks none."""
    found = _call(context, site)
    unpacked = found[0].unpacked(found[1]) if found is not None else []
    held = mapping(context, found[0], unpacked[-1]) if found is not None and unpacked else None
    return held[0].place(held[1]) if held is not None else None


def whence(context: Context, site: Site, name: str) -> str:
    """Where the value is written, in words, if that is not the call itself; else ""."""
    held = holder(site, name)
    if held is not None:
        return f" Its value comes from {words(held)}." if words(held) else ""
    found = setting(context, site, name)
    if found is None or found.kind in ("literal", "unknown"):
        return ""
    return f" Its value comes from {found.words}."


def change_loader(
    context: Context, site: Site, title: str, others: Iterable[Edits] = (), safe: bool = False, **values: str
) -> Fix:
    """Give the loader ``values``, each where it is now (config dict, constant, option), else at
    the call. What comes after the first may be left out where nothing can hold it. ``others``: more edits
    of the same fix. Raises Refused."""
    changes = Changes(context, POSITIONS, others)
    found = _call(context, site)
    (first, *more) = values.items()
    if found is None and not more and changes.held(site, *first):  # a library makes the loader
        return changes.fix(title, "safe" if safe else "unsafe")
    source, call = found if found is not None else loader_call(context, site)
    for at, (name, code) in enumerate(values.items()):
        if name == "persistent_workers" and "num_workers" not in values:
            code = _with_workers(context, source, call, code)
        if argument(site, name) is not None:
            try:
                changes.recorded(site, source, call, name, code)
            except Refused:
                if at == 0:
                    raise
                # It only helps the first, which has been changed.
            continue
        present = source.argument(call, name, POSITIONS.get(name))
        if present is not None:
            changes.at_origin(origin(context, source, present.value), name, code)
        else:
            changes.absent(source, call, name, code)
    return changes.fix(title, "safe" if safe else "unsafe")


def _with_workers(context: Context, source: Source, call: cst.Call, code: str) -> str:
    """``code``; where the number of workers may be none, which torch refuses beside it, on that condition."""
    present = source.argument(call, "num_workers", POSITIONS["num_workers"])
    if present is None or not isinstance(present.value, (cst.Name, cst.Attribute, cst.Subscript)):
        return code
    found = origin(context, source, present.value)
    if found.kind != "argument" and isinstance(found.source.literal(found.node), int):
        return code
    return f"{source.code(present.value)} > 0"
