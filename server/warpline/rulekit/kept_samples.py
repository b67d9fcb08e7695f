"""Loaders over samples that are the same in each epoch and fit into memory: an edit that makes them once.

``samples = default_collate([data[i] for i in range(len(data))])`` has the structure of a batch. The loader
gets ``range(len(data))`` for its dataset, and a ``collate_fn`` that takes a batch's rows from there by one
index. So its other arguments stay: order, sampler and ``drop_last``. That samples do not change is
tried where the script runs (``capture/runner/waits/samples.py``). What that cannot see is read from the text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import libcst as cst

from warpline.model.change import KeptSamples
from warpline.model.profile import LineCost
from warpline.model.report import Evidence, Fix
from warpline.rulekit.context import Context
from warpline.rulekit.draft import Draft
from warpline.rulekit.holders import argument
from warpline.rulekit.loaders import POSITIONS, begins_again, edit_site, iterated_at, loader_call
from warpline.rulekit.message import count, seconds, size
from warpline.rulekit.whole_batches import Names, named, names_of, own_statement
from warpline.syntax.edits import Edits, Refused, free_name
from warpline.syntax.source import Source, called_name, receiver
from warpline.wire.run import Site
from warpline.wire.sites import Loader, facts_of

#: What a loop over epochs visits each sample at least. Making the samples has to be won back by then. Chosen.
_EPOCHS = 2
#: What takes less once is not told. Chosen, not fitted.
_LONG_MS = 1000.0
#: What workers need, and what a loader without any takes for it.
_WITHOUT_WORKERS = {
    "num_workers": "0",
    "persistent_workers": "False",
    "prefetch_factor": "None",
    "multiprocessing_context": "None",
    "timeout": "0",
}
#: Samplers that give plain row numbers.
_SAMPLERS = {
    "RandomSampler", "SequentialSampler", "SubsetRandomSampler", "WeightedRandomSampler", "NoneType", "None",
}  # fmt: skip
_TAKES = {
    "tensor": "{kept}[rows]",
    "list": "[part[rows] for part in {kept}]",
    "dict": "{{name: part[rows] for name, part in {kept}.items()}}",
}
_NAMES = ("samples", "kept_samples", "all_samples", "made_samples")
#: Methods that change a list, a dict or an array.
_CHANGING = {
    "append", "clear", "extend", "fill", "insert", "pop", "popitem", "put", "remove", "reverse", "setdefault",
    "shuffle", "sort", "update",
}  # fmt: skip
_SAID = (
    "All {samples} samples are the same in each epoch and take {bytes}: if they are made once, before the "
    "loader, a batch is one index."
)
_ONCE = " Making them takes about {once}; about {steps} steps win that back."


@dataclass(frozen=True, slots=True)
class Kept:
    """``left_ms``: what a step spends on batches then. ``said``: sentences over ``evidence``."""

    left_ms: float
    said: str
    evidence: dict[str, Evidence]
    fix: Fix
    places: tuple[tuple[str, int], ...]  # that wait for batches, or make them


def made_once(
    context: Context,
    site: Site,
    said: str,
    wait: float,
    kept: Kept,
    evidence: Mapping[str, Evidence] | None = None,
    *,
    at: tuple[str, int] | None = None,
    unseen: bool = False,
) -> Draft:
    """The finding with this edit, at the number of workers or ``at``; ``said``: its first sentence, over
    ``spent`` and ``share`` of ``wait``."""
    return context.draft(
        at or edit_site(context, site, "num_workers"),
        said + kept.said,
        {**(evidence or {}), **context.spent("exposed wait", wait), **kept.evidence},
        cause=iterated_at(context, site),
        cost_ms=wait,
        saving_ms=wait - kept.left_ms,
        change=KeptSamples(kept.left_ms, kept.places),
        fixes=[kept.fix],
        unseen=unseen,
    )


def kept_samples(context: Context, site: Site, lines: list[LineCost], wait: float) -> Kept | None:
    """The edit for a loader that each step waits ``wait`` ms for, at ``lines``. None where samples may
    change, do not fit, are visited once, or take longer to make than two epochs save."""
    loader = facts_of(Loader, site)
    form, length, epoch = loader.sample_form, loader.dataset_length, loader.batches_per_epoch
    if form not in _TAKES or not length or not epoch or context.profile.manifest.world_size > 1:
        return None
    if loader.rows_ms is None or loader.sample_ms is None or loader.sample_bytes is None:
        return None
    batches = max(1.0, sum(cost.calls for cost in context.costs(site.uses)))
    # Pinned memory is another copy.
    left = batches * loader.rows_ms * (2 if loader.pin_memory and context.on_gpu else 1)
    once = loader.sample_ms * length
    if left >= wait or once > _EPOCHS * epoch / batches * (wait - left) or not begins_again(context, site):
        return None
    try:
        fix = _fix(context, site, loader)
    except Refused:
        return None
    if context.reached.refusal(fix, context.source) is not None:
        return None
    said, evidence = _SAID, {"samples": count("samples", length, "samples")}
    evidence["bytes"] = size("memory of all samples", length * loader.sample_bytes)
    if once >= _LONG_MS:
        said += _ONCE
        evidence["once"] = seconds("making all samples, once", once / 1e3)
        evidence["steps"] = count("steps that win it back", math.ceil(once / (wait - left)), "steps")
    return Kept(left, said, evidence, fix, tuple(cost.place for cost in lines))


def _fix(context: Context, site: Site, loader: Loader) -> Fix:
    source, call = loader_call(context, site)
    statement, given = own_statement(source, call), source.argument(call, "dataset", 0)
    if statement is None or given is None or not source.is_named(call.func, "DataLoader"):
        raise Refused("no statement of its own makes the loader of a dataset")
    if _again(context, source, call):
        raise Refused("the loader is made again and again, or in the body of a class")
    _check_arguments(site, source, call)
    _check_reads(context, source, call)
    _check_changes(context, source, call, given.value, loader)
    edits = Edits(source)
    data = named(source, edits, call, given.value)
    kept = free_name(source, *(name for name in _NAMES if name != data))
    names = Names(source, edits, call)
    collate = names.of("default_collate")
    names.add()
    edits.insert_before(statement, f"{kept} = {collate}([{data}[i] for i in range(len({data}))])")
    edits.replace(given.value, f"range(len({data}))")
    _without_workers(site, source, edits, call)
    taken = _TAKES[loader.sample_form or ""].format(kept=kept)
    edits.set_argument(call, "collate_fn", f"lambda rows: {taken}", lacks=True)
    return edits.fix("Make all samples once", "unsafe")


def _again(context: Context, source: Source, call: cst.Call) -> bool:
    """Whether a loop makes the loader, or calls the function that does, or a class has it."""
    function = source.enclosing(call, cst.FunctionDef)
    if source.loops(call) or function is None:
        return bool(source.loops(call)) or source.enclosing(call, cst.ClassDef) is not None
    return any(other.loops(one) for other, one in context.calls(function.name.value))


def _check_arguments(site: Site, source: Source, call: cst.Call) -> None:
    """Raises Refused where another argument may want the samples, or several dicts are unpacked."""
    stars = [arg.star for arg in call.args if arg.star]
    if stars not in ([], ["**"]) or (stars and not site.arguments):
        raise Refused("what the call unpacks is not known")
    collate, written = argument(site, "collate_fn"), POSITIONS["collate_fn"]
    if source.argument(call, "collate_fn", written) or (collate is not None and collate.passed):
        raise Refused("the call passes `collate_fn`")
    for name in ("sampler", "batch_sampler"):
        passed = argument(site, name)
        unknown = passed is None and source.argument(call, name) is not None
        if unknown or (passed is not None and passed.passed and str(passed.value) not in _SAMPLERS):
            raise Refused(f"the call passes `{name}`")


def _check_reads(context: Context, source: Source, call: cst.Call) -> None:
    """Raises Refused where other code reads the loader's dataset, other than its length, or its
    ``collate_fn``."""
    holders = names_of(source, call)
    for other in context.sources():
        for read in other.nodes(cst.Attribute):
            if read.attr.value not in ("dataset", "collate_fn"):
                continue
            base, above, taking = (
                other.name(read.value).rpartition(".")[2],
                other.parent(read),
                other.taking(read),
            )
            measured = taking is not None and other.is_named(taking.func, "len")
            own = base in holders or "loader" in base.lower()
            deeper = isinstance(above, (cst.Attribute, cst.Subscript)) and base != "self"
            if not measured and (own or deeper):
                raise Refused(f"`{other.code(read)}` is read")


def _check_changes(
    context: Context, source: Source, call: cst.Call, data: cst.BaseExpression, loader: Loader
) -> None:
    """Raises Refused where something may change what samples are made of after the loader is made."""
    code, states = source.code(data), set(loader.dataset_names or ())
    root = _root(data)
    made_of = {name.value for name in _made_of(source, data)}
    owner = _dataset_class(context, loader)
    rebound = _rebound(context, loader, owner)
    sources = {one.path: one for one in context.sources()}
    if owner is not None and loader.dataset_file is not None:
        sources[loader.dataset_file] = context.source(loader.dataset_file)
    for other in sources.values():
        for node, target, method in _written(other):
            if (other is source and _comes_before(source, node, call)) or _in_making(context, other, node):
                continue
            base = _root(target)
            known = other is source and isinstance(base, cst.Name)
            inside = owner is not None and other.path == loader.dataset_file and other.inside(node, owner)
            own = inside or (known and other.code(base) == source.code(root))
            # Any tensor has `data`.
            held = _attributes(target) & (states if own else states - {"data"})
            in_place = not method or _changes_in_place(method)
            stored = bool(method) or base is not target or isinstance(node, cst.AugAssign)
            alias = known and other.code(base) in made_of and in_place and stored
            called = method and known and other.code(target) == code
            if called or alias or (held and in_place) or other.code(target) in rebound:
                raise Refused(f"`{other.code(target)}` may change what samples are")


def _made_of(source: Source, data: cst.BaseExpression) -> list[cst.Name]:
    """The names that the dataset was made of."""
    made = data if isinstance(data, cst.Call) else next(iter(source.assigned(source.code(data))), None)
    found = source.nodes(cst.Name, within=made) if isinstance(made, cst.Call) else []
    return [name for name in found if source.is_value(name)]


def _dataset_class(context: Context, loader: Loader) -> cst.ClassDef | None:
    if loader.dataset_file not in context.profile.sources or not loader.dataset_line:
        return None
    source = context.source(loader.dataset_file)
    functions = source.at(loader.dataset_line, cst.FunctionDef)
    return source.enclosing(functions[0], cst.ClassDef) if functions else None


def _rebound(context: Context, loader: Loader, owner: cst.ClassDef | None) -> set[str]:
    """Names that a ``global`` statement lets functions rebind, and that the dataset's class reads."""
    if owner is None or loader.dataset_file is None:
        return set()
    source = context.source(loader.dataset_file)
    read = {name.value for name in source.nodes(cst.Name, within=owner)}
    return read & {item.name.value for one in source.nodes(cst.Global) for item in one.names}


def _written(source: Source) -> Iterator[tuple[cst.CSTNode, cst.BaseExpression, str]]:
    """``(node, what it is given or called on, method)``: assignments (no method), and calls of methods."""
    for assign in source.nodes(cst.Assign):
        yield from ((assign, target.target, "") for target in assign.targets)
    yield from ((one, one.target, "") for one in source.nodes(cst.AugAssign))
    yield from ((one, one.target, "") for one in source.nodes(cst.AnnAssign))
    for call in source.nodes(cst.Call):
        if (held := receiver(call)) is not None:
            yield call, held, called_name(call)


def _changes_in_place(method: str) -> bool:
    return method in _CHANGING or (method.endswith("_") and not method.endswith("__"))


def _attributes(target: cst.BaseExpression) -> set[str]:
    """The attributes on the way to ``target``: ``d.x[0].y`` has x and y."""
    found = set()
    while isinstance(target, (cst.Attribute, cst.Subscript)):
        found |= {target.attr.value} if isinstance(target, cst.Attribute) else set()
        target = target.value
    return found


def _root(target: cst.BaseExpression) -> cst.BaseExpression:
    while isinstance(target, (cst.Attribute, cst.Subscript)):
        target = target.value
    return target


def _comes_before(source: Source, node: cst.CSTNode, call: cst.Call) -> bool:
    """Whether ``node`` runs before the loader is made: earlier in the same function."""
    function = source.enclosing(call, cst.FunctionDef)
    return source.enclosing(node, cst.FunctionDef) is function and source.line(node) <= source.line(call)


def _in_making(context: Context, source: Source, node: cst.CSTNode) -> bool:
    """Whether ``node`` runs as an object is made, or in ``__getitem__``, which the trial called again."""
    function = source.enclosing(node, cst.FunctionDef)
    if function is None:
        return False
    name = function.name.value
    if name in ("__init__", "__post_init__", "__getitem__", "__getitems__"):
        return True
    callers = [other.enclosing(call, cst.FunctionDef) for other, call in context.calls(name)]
    return bool(callers) and all(one is not None and one.name.value == "__init__" for one in callers)


def _without_workers(site: Site, source: Source, edits: Edits, call: cst.Call) -> None:
    """A loader without workers: their arguments get the values of one, each where the call writes it, else
    beside the unpacked dict that has it."""
    unpacked = {}
    for name, code in _WITHOUT_WORKERS.items():
        written, passed = source.argument(call, name, POSITIONS.get(name)), argument(site, name)
        if written is not None:
            if source.code(written.value) != code:
                edits.replace(written.value, code)
        elif passed is not None and passed.passed and str(passed.value) != code:
            unpacked[name] = code
    star = next((arg for arg in call.args if arg.star), None)
    if unpacked and star is None:
        raise Refused("the loader's arguments were not found")
    if unpacked and star is not None:
        entries = "".join(f', "{name}": {code}' for name, code in unpacked.items())
        edits.replace(star.value, f"{{**{source.code(star.value)}{entries}}}")
