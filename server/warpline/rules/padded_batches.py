"""Much of each batch is padding, and the step computes it like the rest.

## What it does

Reads what the embeddings of one step look up: batches of token numbers, in which one value fills the
beginning or the end of most rows; what recurrent layers read: series of numbers, which the same features fill
up to one length; and the masks that attention, sums over positions and losses read, which hide as much of
rows of different lengths. It finds the steps in which the lines that work on such a batch spend a
noticeable time on padding. Sequences that get longer from call to call end with what was generated, which
is no padding. It counts the padding of one step only and does not know the cost of a shorter
batch, so the gain is an upper bound. Of rows with a fixed length it counts the columns that all rows of the
batch fill up, as the longest row sets the width then; all padding where the Trainer groups rows by length,
which has an effect as soon as they have their own.

## Why is this slow

Layers compute every position of a batch, masked or not. If half of a batch is padding, it takes about twice
the time of a batch without padding. Attention takes even longer, because its cost grows with the square of
the length.

## Example

```python
#> steps step_ms=40
for ids, labels in loader:
    loss = criterion(model(ids), labels)
    #^ found; padding rows=32 columns=512 padded=9000 shared=200
    #^ cost step_ms=38 device_ms=38; op aten::mm device_ms=38 shapes=[[16384,768],[768,768]]
    loss.backward()
```

## Use instead

Pad each batch only to its own longest row (`pad_sequence` in a `collate_fn`, `padding="longest"`), and put
rows of similar length into one batch (a sampler that sorts by length, `group_by_length=True` of the Trainer).
Several short rows can also share one (packing).

## Example

Series of different lengths:

```python
#> steps step_ms=40
for series, lengths in batches:
    x = pad_sequence(series, batch_first=True)
    states, _ = rnn(x)
    #^ found; padding rows=32 columns=200 padded=4200 shared=0 series=true
    #^ cost step_ms=30 device_ms=30; op aten::mm count=200 device_ms=30 shapes=[[32,64],[64,192]]
    loss = criterion(head(states[range(32), lengths - 1]))
```

## Use instead

The same; or `pack_padded_sequence`, which computes no padding.

## Example

Texts of random lengths share a batch:

```python
#> steps step_ms=40
class Plan:
    def __init__(self, sizes, rows):
        self.rows = rows
        self.order = numpy.random.default_rng(0).permutation(len(sizes))  #> found

    def __iter__(self):
        for at in range(0, len(self.order), self.rows):
            yield self.order[at : at + self.rows].tolist()

loader = DataLoader(texts, batch_sampler=Plan(texts.sizes, 32), collate_fn=stack, num_workers=4)
#^ site loader num_workers=4 with.batch_sampler=Plan
with torch.inference_mode():
    for ids, ends in loader:  #> use loader
        keep(model(ids, ends))
        #^ padding rows=32 columns=512 padded=9000 shared=0
        #^ cost step_ms=38 device_ms=38; op aten::mm device_ms=38 shapes=[[16384,768],[768,768]]
```

## Use instead

`self.order = numpy.argsort(sizes)`: rows of similar length share a batch. Where nothing is trained the order
does not matter.

## Fix safety

Unsafe: a function that fills rows up to a fixed length fills them up to the longest of the batch. Padding
that a mask hides changes no value but by rounding; dropout draws other numbers. The edit is offered where a
mask of the batch is seen, nothing is compiled, and nothing in the step counts on the length. Where such a
function is given the length, its calls pass the longest row's instead. The only such function is edited, too,
where it makes all batches before the steps, and nothing joins these. A tokenizer that does so before the
steps (`padding="max_length"`, perhaps by a flag of yours), or in a dataset's `__getitem__`, leaves it to the
collator that pads each batch; a sequence's labels have to be padded there as well. On a CPU, a line that
takes the rows from a table which is padded as a whole leaves out the columns that hold nothing but the
padding token.
What joins several batches later has to do so for rows of different lengths.

Where a collate function has both ways, and a value of the script's chooses one, the edit is that value.

Which rows share a batch is for the program to decide: rows that are sorted by length give other batches, so
the loss follows another path.

## References

- [pad_sequence](https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pad_sequence.html)
- [Padding and truncation](https://huggingface.co/docs/transformers/pad_truncation)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import libcst as cst

from warpline.model.change import Together
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Rule, Source, count
from warpline.rulekit.decoding import looked_up_growing
from warpline.rulekit.frameworks import grouped_by_length
from warpline.rulekit.graph import Graph, graph_of
from warpline.rulekit.graph.graph import COMPILED_CALL, MOVED
from warpline.rulekit.padded_later import by_choice, by_flag, by_no_word, padding_flag
from warpline.rulekit.padding import (
    filled_at,
    filled_before,
    filled_up_before,
    hides_classes,
    loaded_at,
    padded_at,
)
from warpline.rulekit.row_lengths import BY_HAND, COMPARED, by_word, to_longest_row
from warpline.rulekit.rows_in_order import SHARED
from warpline.rulekit.saving import leaving
from warpline.rulekit.used_columns import to_used_columns
from warpline.rulekit.visiting import visited_at
from warpline.rulekit.width_choice import width_choice
from warpline.syntax.edits import Refused
from warpline.wire.dataflow import Padding

#: Of the positions of a batch. Batches of rows sorted by length have less padding. Chosen, not fitted.
LEAST_SHARE = 0.25
_UNGROUPED = " Put rows of similar length into one batch, too."
_GROUPED = (
    " Rows are to be grouped by length, which has no effect on rows of one length: with the edit it has, and "
    "a step takes as long as its rows, so count whole epochs."
)
_SHARED = " In {shared} columns every row has padding."


class PaddedBatches(Rule):
    area = "data"

    def find(self, context: Context) -> Iterator[Draft]:
        flow = context.profile.facts.dataflow
        if not any(_share(one) >= LEAST_SHARE for one in flow.padding):
            return
        graph = graph_of(flow)
        batches = [
            one for one in flow.padding if not hides_classes(graph, one) and not _is_generated(context, one)
        ]
        worst = max(batches, key=_share, default=None)
        if worst is None or _share(worst) < LEAST_SHARE:
            return
        worked = _worked(context, graph, worst)
        if worst.series and 0 <= worst.site < len(flow.sites):  # its operators see one column at a time
            worked[flow.sites[worst.site].place] = 1.0
        costs = context.costs(worked)
        spent = sum(cost.step_ms * worked[cost.place] for cost in costs) * _share(worst)
        site = flow.sites[worst.site] if 0 <= worst.site < len(flow.sites) else None
        if not context.matters(spent) or site is None or not site.line:
            return
        hottest = max(costs, key=lambda cost: cost.step_ms * worked[cost.place])
        fixed = _fixed(context, graph, worst)
        # The longest row of the batch sets the width then, and an order by length has to do the rest.
        grouped = grouped_by_length(context)
        less = _share(worst) if grouped else worst.shared / worst.columns
        fix = _fix(context, graph, worst, fixed) if context.matters(spent * less / _share(worst)) else None
        less = _share(worst) if fix is None else less
        ordered = fix is not None and _is_ragged(worst)
        # An edit is made where the step reads the batch. An order alone is no place where all rows are too
        # long.
        told = fix is None and worst.shared > 0
        before = filled_up_before(context, worst.columns) if told else None
        yield context.draft(
            fixed or before or _place(context, worst) or site.place,
            "{padded} of the {all} positions of a batch are padding. Their share of the lines that work on "
            "the batch is {spent} a step ({share})."
            + (_SHARED if worst.shared else "")
            + ((_GROUPED if grouped else _UNGROUPED) if ordered else ""),
            {
                "padded": count("padding tokens", worst.padded),
                "all": count("tokens of the batch", worst.rows * worst.columns),
                **({"shared": count(SHARED, worst.shared)} if worst.shared else {}),
                **context.spent("padding", spent),
            },
            cause=hottest.place,
            cost_ms=spent,
            saving_ms=spent * less / _share(worst),
            change=Together(
                tuple(leaving(context, one.place, 1 - worked[one.place] * less) for one in costs)
            ),
            fixes=[_by_hand(worst, (fixed or before) is not None) if fix is None else lambda: fix],
        )


def _share(found: Padding) -> float:
    return found.padded / (found.rows * found.columns)


def _is_generated(context: Context, found: Padding) -> bool:
    """Whether the batch is sequences to which the program adds what it generates: the same token again and
    again, perhaps, which fills nothing up."""
    sites = context.profile.facts.dataflow.sites
    if found.mask or found.series or found.leading or not 0 <= found.site < len(sites):
        return False
    return looked_up_growing(context, sites[found.site].place, found)


def _is_ragged(found: Padding) -> bool:
    """Whether most of the padding is behind rows that are shorter than the longest of their batch: only an
    order by length helps there."""
    return 2 * found.shared * found.rows <= found.padded


def _worked(context: Context, graph: Graph, found: Padding) -> dict[tuple[str, int], float]:
    """Lines with operators on the batch: its rows and columns are the first dimensions of a tensor, in any
    order and perhaps with heads between them, or one dimension. The columns may be one less, as those that
    are predicted from the others. With the share, 0 to 1, of what a line's operators read and write: a model
    of pictures that also gets a text has few such operators. The lines of compiled code have the share of all
    of its calls."""
    lengths = (found.columns, found.columns - 1)
    flat, pairs = {found.rows * one for one in lengths}, [{found.rows, one} for one in lengths]
    whole: Counter[tuple[str, int]] = Counter()
    mine: Counter[tuple[str, int]] = Counter()
    compiled = {
        (file, line) for kernel in context.profile.facts.compiled_kernels for file, line, _ in kernel.lines
    }
    for node in graph.nodes:
        shapes = [graph.shape(value) for value in (*node.inputs, *node.outputs)]
        place, size = graph.place(node), sum(math.prod(shape) for shape in shapes)
        on_batch = size * any(
            not flat.isdisjoint(shape[:2]) or any(both <= set(shape[:3]) for both in pairs)
            for shape in shapes
        )
        for line in compiled if node.name == COMPILED_CALL else (place,):
            if line is not None:
                whole[line] += size
                mine[line] += on_batch
    return {place: mine[place] / whole[place] for place in mine if mine[place]}


def _fixed(context: Context, graph: Graph, found: Padding) -> tuple[str, int] | None:
    """Where batches are filled up to a fixed length: a call that does, a collate function or dataset, or a
    function that made them before the steps; the flag of the script's that has it so."""
    flagged = padding_flag(context)
    if flagged is not None:
        return flagged[2].place
    chosen = width_choice(context, found.columns)
    if chosen is not None:
        return chosen[1].place
    asked = next(_asked(context), None)
    if asked is not None:
        return asked[0].place(asked[1])
    return filled_at(context, found.columns) or _filled_before(context, graph, found)


def _filled_before(context: Context, graph: Graph, found: Padding) -> tuple[str, int] | None:
    """The only function that can be edited to fill such rows up to the longest, where the batch is from
    before the step."""
    batch = graph.origin(found.value, MOVED, COMPARED if found.mask else frozenset())
    loaders = any(site.uses for site in context.sites("loader"))
    if loaders or not found.shared or batch in graph.producer:
        return None
    places = filled_before(context, found.columns)
    editable = [one for one in places if _fix(context, graph, found, one) is not None]
    return editable[0] if len(editable) == 1 else None


def _asked(context: Context) -> Iterator[tuple[Source, cst.Call, cst.BaseExpression]]:
    """Calls with ``padding="max_length"``, and the word."""
    for source, call in context.calls():
        wanted = source.argument(call, "padding")
        if wanted is not None and source.literal(wanted.value) == "max_length":
            yield source, call, wanted.value


def _fix(context: Context, graph: Graph, found: Padding, fixed: tuple[str, int] | None) -> Fix | None:
    if not found.shared or (fixed is None and _is_ragged(found)):
        return None
    asked, flagged = list(_asked(context)), padding_flag(context)
    try:
        if flagged is not None:
            return by_flag(context, graph, found, *flagged[1:])
        chosen = width_choice(context, found.columns)
        if chosen is not None:
            return by_choice(context, graph, found, *chosen)
        if fixed is None:
            return to_used_columns(context, graph, found)
        if len(asked) == 1:
            return _by_word(context, graph, found, *asked[0])
        return to_longest_row(context, graph, found, fixed)
    except Refused:
        return None


def _by_word(
    context: Context, graph: Graph, found: Padding, source: Source, call: cst.Call, word: cst.BaseExpression
) -> Fix:
    """The edit that fills rows no longer up to one length: those of a batch, else those that are made before
    the steps. Raises Refused."""
    try:
        return by_word(context, graph, found, source, call, word)
    except Refused:
        return by_no_word(context, graph, found, source, call, word)


def _place(context: Context, found: Padding) -> tuple[str, int] | None:
    """Where batches come from: the order that rows are taken in, the line that pads them to the longest, the
    line of the step that took the batch from padded rows, the loader."""
    graph = graph_of(context.profile.facts.dataflow)
    if _is_ragged(found):
        visited = visited_at(context, graph, found.rows)
        if visited is not None:
            return visited
        padded = padded_at(context, graph, found)
        if padded is not None:
            return padded
    loaded = loaded_at(context) if graph.origin(found.value, MOVED) not in graph.producer else None
    if loaded is not None:
        return loaded
    made = None if found.mask else graph.producer.get(graph.origin(found.value))
    place = graph.place(made) if made is not None else None
    if place is not None:
        return place
    loaders = [one for one in context.sites("loader") if one.uses]
    return loaders[0].place if len(loaders) == 1 else None


def _by_hand(found: Padding, fixed: bool) -> str:
    if not _is_ragged(found):
        return BY_HAND
    if fixed:  # an order alone would save nothing
        return (
            "pad each batch to its own longest row, and not to a fixed length, and put rows of similar "
            "length into one batch"
        )
    return "put rows of similar length into one batch, or several short rows into one"
