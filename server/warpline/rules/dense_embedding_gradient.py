"""An embedding's gradient covers all rows of its table, although a step reads only a few.

## What it does

Finds embeddings with at most a tenth of their rows read in a step, while the backward pass fills a
gradient of the table's size and the optimizer updates all of it; with up to a quarter of the rows, where a
trial with the step's sizes says that it gains. It reports nothing if the table has
another use (tied output weights), or if momentum or weight decay of its parameter group change all rows
anyway. Tables of one optimizer become sparse by one edit. With Adam, it reports only tables that are
nearly all that Adam updates and take a fifth of the step, because `SparseAdam` gives other results. The
finding stands where `sparse` gets its value: at the call, or at the constant, default or option that it
passes, also where the module is of a class of yours that takes it.

## Why is this slow

Filling the gradient and updating the table transfer the whole table several times, however small the
batch is. With `sparse=True`, the gradient has only the rows that were read, and the optimizer updates
only those. Measured gains of a whole step (look-up, loss, update) for 200,000 rows of 32 numbers on one
core: with SGD 1.6x if a tenth of the rows was read and 22x if a fiftieth was; with Adagrad 2.8x and
5.7x.

## Example

```python
import torch

class Ranker(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(1500000, 128)
        #^ found; site module type=Embedding num_embeddings=1500000 embedding_dim=128

    def forward(self, ids):
        return self.table(ids).sum((1, 2))
        #^ cost step_ms=4 device_ms=4 backward_ms=3
        #^ op aten::embedding shapes=[[1500000,128],[4096,16]] device_ms=0.5
        #^ op aten::embedding_dense_backward phase=backward shapes=[[4096,16,128],[4096,16]] device_ms=1
        #^ op aten::fill_ phase=backward shapes=[[1500000,128],[]] device_ms=2

model = Ranker()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
#^ site optimizer type=SGD elements=192000000 shapes=[[1,1500000,128]] with.momentum=0 with.weight_decay=0
for ids, clicked in loader:
    loss = loss_of(model(ids), clicked)  #> cost device_ms=1
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  #> use optimizer; cost step_ms=5 device_ms=5; op aten::_foreach_add_ device_ms=5
```

## Use instead

```python
import torch

class Ranker(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(1500000, 128, sparse=True)

    def forward(self, ids):
        return self.table(ids).sum((1, 2))

model = Ranker()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for ids, clicked in loader:
    loss = loss_of(model(ids), clicked)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Example

```python
import torch

class Pairs(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.people = torch.nn.Embedding(40000, 8)
        #^ found; site module type=Embedding num_embeddings=40000 embedding_dim=8
        self.films = torch.nn.Embedding(9000, 8)
        #^ site module type=Embedding num_embeddings=9000 embedding_dim=8

    def forward(self, person, film):
        people = self.people(person)
        #^ cost step_ms=2 device_ms=2 backward_ms=1; op aten::embedding shapes=[[40000,8],[512]] device_ms=0.5
        #^ op aten::embedding_dense_backward phase=backward shapes=[[512,8],[512]] device_ms=0.5
        #^ op aten::fill_ phase=backward shapes=[[40000,8],[]] device_ms=1
        films = self.films(film)
        #^ cost step_ms=4 device_ms=4 backward_ms=3; op aten::embedding shapes=[[9000,8],[512]] device_ms=1
        #^ op aten::embedding_dense_backward phase=backward shapes=[[512,8],[512]] device_ms=1
        #^ op aten::fill_ phase=backward shapes=[[9000,8],[]] device_ms=2
        return (people * films).sum(1)

model = Pairs()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
#^ site optimizer type=SGD elements=392000 shapes=[[1,40000,8],[1,9000,8]] with.momentum=0 with.weight_decay=0
for person, film, seen in loader:
    loss = loss_of(model(person, film), seen)  #> cost device_ms=1
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  #> use optimizer; cost step_ms=5 device_ms=5; op aten::_foreach_add_ device_ms=5
```

## Use instead

```python
import torch

class Pairs(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.people = torch.nn.Embedding(40000, 8, sparse=True)
        self.films = torch.nn.Embedding(9000, 8, sparse=True)

    def forward(self, person, film):
        people = self.people(person)
        films = self.films(film)
        return (people * films).sum(1)

model = Pairs()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for person, film, seen in loader:
    loss = loss_of(model(person, film), seen)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix safety

Unsafe: the gradients of a row that was read several times are summed in another order. (With SGD
without momentum and with Adagrad, rows that were not read do not change either way.) Code that uses
gradients may not accept sparse ones: no edit is offered with `clip_grad_norm_`, fused optimizers or
data parallel training, or where other embeddings take the same value and need dense ones.

## References

- [torch.nn.Embedding: sparse](https://docs.pytorch.org/docs/stable/generated/torch.nn.Embedding.html)
- [torch.optim.SparseAdam](https://docs.pytorch.org/docs/stable/generated/torch.optim.SparseAdam.html)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import libcst as cst

from warpline.model.change import Replace, Together
from warpline.model.costs import bound
from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, Source, count
from warpline.rulekit.changing import Changes
from warpline.rulekit.embeddings import (
    EMBEDDINGS,
    MOST_READ,
    TRIED,
    Table,
    class_name,
    holds_table,
    looked_up_in,
    share_of,
    tables,
)
from warpline.rulekit.graph import graph_around
from warpline.rulekit.holders import argument, holder, lacking, made_with, words
from warpline.rulekit.literals import is_switched_on
from warpline.rulekit.message import message, ms
from warpline.rulekit.optimizer_step import making_call
from warpline.rulekit.saving import leaving
from warpline.wire.run import Site
from warpline.wire.sites import Module, Optimizer, facts_of

#: Shares of the elements, and of the step in percent, from which on another optimizer for the table is
#: proposed: it changes the results, so it must gain much, in a model that is nearly all table.
MOST_OF_THE_MODEL, MUCH_OF_THE_STEP = bound("table-of-model"), bound("table-of-step")
_SAME_RESULT = ("SGD", "Adagrad")
_BY_MODULES = ("aten::embedding", "aten::_embedding_bag")
_OTHER_RESULT = ("Adam", "AdamW")
#: Functions that look rows up, and at which position they take ``sparse``.
_FUNCTIONS = {"torch.nn.functional.embedding": 6, "torch.nn.functional.embedding_bag": 7}


class DenseEmbeddingGradient(Rule):
    area = "fusion"

    def find(self, context: Context) -> Iterator[Draft]:
        by_edit: dict[tuple[tuple[str, int], bool], list[Draft]] = {}
        for draft, optimizer in self._drafts(context):
            place = optimizer.place if draft.fixes else draft.place
            by_edit.setdefault((place, draft.tried), []).append(draft)
        for drafts in by_edit.values():
            yield _of_all(drafts)

    def _drafts(self, context: Context) -> Iterator[tuple[Draft, Site]]:
        for looked_up in _together(context, tables(context)):
            table = looked_up[0]
            modules = max(1, len(_made(context, table)))
            read = sum(one.read for one in looked_up) / modules
            if read > table.most:
                continue
            for site in context.sites("optimizer"):
                drafts = list(_judged(context, looked_up, read, site))
                yield from ((draft, site) for draft in drafts)
                if drafts:
                    break


def _of_all(drafts: list[Draft]) -> Draft:
    """Tables of one optimizer, or with one and the same setting, become sparse by one edit."""
    most = max(drafts, key=lambda draft: draft.cost_ms or 0.0)
    if len(drafts) == 1:
        return most
    spent = sum(draft.cost_ms or 0.0 for draft in drafts)
    said = {"tables": count("tables", len(drafts), "tables"), "all": ms("all these tables", spent)}
    told = " The same setting is that of {tables} tables: {all} in all."
    if len({draft.place for draft in drafts}) > 1:
        told = " Its optimizer has {tables} such tables, which one edit makes sparse: {all} in all."
    edits = dict.fromkeys(edit for draft in drafts for fix in draft.fixes for edit in fix.edits)
    return replace(
        most,
        message=most.message + message(told, said),
        evidence=(*most.evidence, *said.values()),
        cost_ms=spent,
        saving_ms=sum(draft.saving_ms for draft in drafts),
        change=Together(tuple(draft.change for draft in drafts if draft.change is not None)),
        fixes=tuple(replace(fix, edits=tuple(edits)) for fix in most.fixes),
    )


def _together(context: Context, found: Iterable[Table]) -> Iterable[list[Table]]:
    """The lines that look rows up in modules of one size, which may be several lines for each module. Lines
    with tables that no module holds stay apart."""
    groups: dict[tuple[Any, ...], list[Table]] = {}
    for table in found:
        own = () if _made(context, table) else table.cost.place
        groups.setdefault((table.shape, table.by, own), []).append(table)
    return groups.values()


def _judged(context: Context, looked_up: list[Table], read: float, site: Site) -> Iterator[Draft]:
    """One for each module of the tables' size, among which the time is divided. ``read``: rows a step of each
    of them."""
    table = max(looked_up, key=lambda one: one.filled * one.cost.step_ms)
    optimizer = facts_of(Optimizer, site)
    kind = (optimizer.type or "").rpartition(".")[2]
    elements = optimizer.elements or 0
    held = any(tuple(shape[1:]) == table.shape for shape in optimizer.shapes or ())
    if not held or not elements:
        return
    if kind in _SAME_RESULT and _changes_all(context, site, optimizer, table.shape):
        return
    modules = _made(context, table)
    many = max(1, len(modules))
    steps = context.costs(site.uses)
    of_table = many * table.rows * table.columns / elements
    parts = dict.fromkeys(_freeing(context), min(1.0, of_table))
    parts |= {cost.place: _updating(cost, table, of_table) for cost in steps}
    for one in looked_up:
        parts[one.cost.place] = min(1.0, parts.get(one.cost.place, 0.0) + one.filled)
    costs = context.costs(parts)
    spent = sum(cost.step_ms * parts[cost.place] for cost in costs) / many
    many_read = read > MOST_READ * table.rows
    if kind in _OTHER_RESULT:
        if many_read or of_table < MOST_OF_THE_MODEL or context.share(spent) < MUCH_OF_THE_STEP:
            return
    elif kind not in _SAME_RESULT:
        return
    calls = max(1, round(sum(one.calls for one in looked_up) / many))
    saved = {at: part * (1 - read / table.rows) / many for at, part in parts.items()}
    # Where the sparse update was not tried, this is a bound.
    change = Together(tuple(leaving(context, at, 1 - share, apart=True) for at, share in saved.items()))
    asked = (kind, str(calls), str(round(read / calls)), str(table.rows), str(table.columns))
    shares = tuple(part / many for part in parts.values())
    found: list[Site | None] = [*modules]
    for made in found or [None]:
        yield context.draft(
            _written_at(context, made) if made is not None else table.cost.place,
            "A step reads at most {read} of the {rows} rows of this embedding, but computes a "
            "gradient for all rows and updates all of them, which takes {spent} ({share})."
            + (_words(made) if made is not None else ""),
            {
                "read": count("rows read", round(read), "rows"),
                "rows": count("rows of the table", table.rows, "rows"),
                **context.spent("gradient and update of the table", spent),
            },
            cause=max((cost.place for cost in costs), key=lambda at: _spent(context, parts, at)),
            cost_ms=spent,
            saving_ms=spent * (1 - read / table.rows),
            change=change if table.by != TRIED else Replace("embedding", tuple(parts), change, asked, shares),
            tried=many_read,
            fixes=[partial(_fix, context, table, made, site, kind)],
        )


#: What changes rows that were not read, by its value that does nothing; None is what is not an argument.
_NONE: dict[str, tuple[Any, ...]] = {"momentum": (0, None), "weight_decay": (0,)}


#: How parameter groups are added to an optimizer later than they are recorded.
_ADDED = re.compile(r"\.add_param_group\(")
#: How parameter groups are written. Each has its own momentum and weight decay, which older runs do not say.
_GROUPS = re.compile(r"""["']params["']|\bdict\(\s*params\s*=|\.add_param_group\(""")


def _changes_all(context: Context, site: Site, optimizer: Optimizer, shape: tuple[int, int]) -> bool:
    """Whether an update changes rows that no gradient reaches: by the settings of the groups that have a
    parameter of the table's size, where they were recorded."""
    if optimizer.settings is None or _ADDED.search("\n".join(context.profile.sources.values())):
        grouped = any(_GROUPS.search(text) for text in context.profile.sources.values())
        return grouped or any(_setting(site, name) not in _NONE[name] for name in _NONE)
    own = [
        group
        for group in optimizer.settings
        if any(tuple(one[1:]) == shape for one in group.get("shapes", ()))
    ]
    return not own or any(group.get(name) not in (*_NONE[name], None) for group in own for name in _NONE)


def _setting(site: Site, name: str) -> Any:
    found = argument(site, name)
    return found.value if found is not None else None


def _updating(cost: LineCost, table: Table, of_table: float) -> float:
    """Share of an optimizer's line that is the table's: by its own operators, else by its elements."""
    own = sum(op.device_ms for op in cost.ops if op.shapes and op.shapes[0] == table.shape)
    return share_of(own, cost) or min(1.0, of_table)


def _freeing(context: Context) -> list[tuple[str, int]]:
    """Lines that clear gradients. On a CPU that gives their memory back to the system, page by page; a device
    keeps it."""
    if context.on_gpu:
        return []
    return [
        cost.place
        for cost, source, _ in context.each_step
        if not cost.ops and source.calls(cost.line, "zero_grad")
    ]


def _spent(context: Context, parts: dict[tuple[str, int], float], place: tuple[str, int]) -> float:
    cost = context.cost(*place)
    return cost.step_ms * parts[place] if cost is not None else 0.0


def _made(context: Context, table: Table) -> list[Site]:
    """Where modules of that size were made, else the one place that made several with as many columns: there
    only the first one's rows are known."""
    own = [site for site in context.sites("module") if looked_up_in(table, site)]
    several = [
        site
        for site in context.sites("module")
        if _makes_several(site) and facts_of(Module, site).embedding_dim == table.columns
    ]
    return own or (several if len(several) == 1 and table.by in _BY_MODULES else [])


def _makes_several(site: Site) -> bool:
    module = facts_of(Module, site)
    return module.type in EMBEDDINGS and (module.count or 1) > 1


def _written_at(context: Context, made: Site) -> tuple[str, int]:
    """Where ``sparse`` is written, or is to be: the mapping that the call unpacks."""
    held, mapping = holder(made, "sparse"), _unpacked(context, made)
    if held is not None:
        return held.place
    return mapping[0].place(mapping[1]) if mapping is not None else made.place


def _words(made: Site) -> str:
    """What holds the value of ``sparse``, where that is not the call itself."""
    held = holder(made, "sparse")
    return f" What it passes for `sparse` is {words(held)}." if held is not None and words(held) else ""


def _unpacked(context: Context, made: Site) -> tuple[Source, cst.Dict | cst.Call] | None:
    call = _making(context, made)
    return lacking(context, made, call, "sparse") if call is not None else None


def _making(context: Context, made: Site) -> cst.Call | None:
    """The call that makes the module."""
    return context.source(made.file).call(made.line, *EMBEDDINGS, class_name(facts_of(Module, made)))


def _fix(context: Context, table: Table, made: Site | None, optimizer: Site, kind: str) -> Fix:
    if kind in _OTHER_RESULT:
        raise Refused(
            "pass `sparse=True` and use `torch.optim.SparseAdam` for it, and another optimizer "
            "for the other parameters; the moments of rows that a step does not read then do not "
            "change, so check the training result"
        )
    if facts_of(Optimizer, optimizer).fused or _is_fused_now(context, optimizer, kind):
        raise Refused(
            f"pass `sparse=True` and leave out `fused=True`: fused {kind} does not accept sparse gradients"
        )
    if context.sites("parallel") or context.sites("framework") or context.profile.manifest.world_size > 1:
        raise Refused("pass `sparse=True` if the code that reduces or clips gradients accepts sparse ones")
    if any("clip_grad" in text for text in context.profile.sources.values()):
        raise Refused("`clip_grad_norm_` does not accept sparse gradients: clip only the other parameters")
    if table.by not in _BY_MODULES:
        raise Refused("look the rows up with `F.embedding(ids, table, sparse=True)` instead of an index")
    source = context.source(made.file if made is not None else "")
    if made is None:
        return _in_call(context, table)
    call = _making(context, made)
    if call is None:
        raise Refused("pass `sparse=True` where the embedding is created")
    bag = source.is_named(call.func, "EmbeddingBag")  # it has no `padding_idx` before these
    _check_scale(source, call, 4 if bag else 5)
    _check_settings(made)
    _check_others(context, made)
    mapping = _unpacked(context, made)
    if mapping is not None:
        return _into_mapping(context, mapping)
    if argument(made, "sparse") is None and (source.argument(call, "sparse", 6) or source.unpacked(call)):
        raise Refused("`sparse` may be set elsewhere: set it by hand")
    changes = Changes(context)
    changes.recorded(made, source, call, "sparse", "True")
    return changes.fix("Use sparse gradients", "unsafe")


def _is_fused_now(context: Context, site: Site, kind: str) -> bool:
    """Whether another edit made the optimizer a fused one since the run."""
    source = context.source(site.file)
    call = making_call(source, site, kind)
    if call is None or source.unpacked(call):
        return is_switched_on(context.sources(), "fused")
    return source.passed(call, "fused") not in (False, None)


def _check_settings(made: Site) -> None:
    if _setting(made, "mode") == "max":
        raise Refused("`sparse=True` does not work with the mode `max`")
    if _setting(made, "scale_grad_by_freq"):
        raise Refused("`scale_grad_by_freq` needs dense gradients")


def _check_others(context: Context, made: Site) -> None:
    """Raise Refused where ``sparse`` of other embeddings is written at the same place, and one of them may be
    of an optimizer that takes no sparse gradients."""
    held = holder(made, "sparse")
    for site in context.sites("module"):
        module, several = facts_of(Module, site), _makes_several(site)
        with_it = several if site is made else held is not None and holder(site, "sparse") == held
        if module.num_embeddings is None or not with_it:
            continue
        _check_settings(site)
        shape = (module.num_embeddings, module.embedding_dim or 0)
        for other in context.sites("optimizer"):
            optimizer = facts_of(Optimizer, other)
            sizes = [(rows, columns) for _, rows, columns in filter(_is_matrix, optimizer.shapes or ())]
            same = class_name(optimizer) in _SAME_RESULT
            for size in sizes:
                has_it = size[1] == shape[1] if several else size == shape
                if has_it and not (same and not _changes_all(context, other, optimizer, size)):
                    raise Refused(
                        "other embeddings take the same setting: pass `sparse=True` to this one alone"
                    )


def _is_matrix(shape: Sequence[int]) -> bool:
    """Whether an entry of ``Optimizer.shapes``, ``(count, *shape)``, is about matrices."""
    return len(shape) == 3


def _check_scale(source: Source, call: cst.Call, position: int) -> None:
    if source.passed(call, "scale_grad_by_freq", position, False) is not False:
        raise Refused("`scale_grad_by_freq` needs dense gradients")


def _in_call(context: Context, table: Table) -> Fix:
    """``sparse=True`` for the function that looks the rows of a parameter up."""
    cost = table.cost
    source = context.source(cost.file)
    calls = [call for call in source.calls(cost.line) if source.name(call.func) in _FUNCTIONS]
    if len(calls) != 1:
        raise Refused("pass `sparse=True` where the rows are looked up")
    (call,) = calls
    _check_scale(source, call, 5)
    position = _FUNCTIONS[source.name(call.func)]
    if source.argument(call, "sparse", position) or source.unpacked(call):
        raise Refused("`sparse` may be set elsewhere: set it by hand")
    if position > 6 and source.passed(call, "mode", 6, "mean") not in ("sum", "mean"):
        raise Refused("`sparse=True` works with the modes `sum` and `mean` only")
    graph = graph_around(context.profile.facts.dataflow)
    read = [
        node.inputs[0]
        for node in (graph.at(cost.place) if graph is not None else ())
        if node.name in ("embedding", "_embedding_bag") and node.inputs
    ]
    if graph is None or not read or not graph.parameters.issuperset(read):
        raise Refused("pass `sparse=True` if nothing is done to the table before its rows are looked up")
    return Edits(source).set_argument(call, "sparse", "True").fix("Use sparse gradients", "unsafe")


def _into_mapping(context: Context, mapping: tuple[Source, cst.Dict | cst.Call]) -> Fix:
    """``sparse`` as one more entry, where only embeddings are made of the mapping."""
    where, display = mapping
    if any(not holds_table(one) for one in made_with(context, "module", display)):
        raise Refused("other modules take the same settings: pass `sparse=True` to this embedding alone")
    return Edits(where).set_entry(display, "sparse", "True").fix("Use sparse gradients", "unsafe")
