"""A loss is written out op by op instead of as one fused call.

## What it does

Finds cross entropy (of smoothed labels, too), binary cross entropy, squared, absolute and smooth errors
written with logarithms, sums and means, when their lines take a measurable part of the step. The fix calls
the fused function.

A loss may take several statements of a function. Labels may be smoothed over all classes, or over all but the
right one: `label_smoothing` spreads a part over all, so a share `s` of the others is `s * n / (n - 1)` of all
`n`. Where a mask leaves out the rows of one label, the fix names that as `ignore_index` (a label with a name
only if the run compared with a number there); other masks and weights stay, and the fused call gives one
number for each row (`reduction="none"`).

If the operators of a step were recorded, a loss is recognized by what it computes, however it is written
(with weights, masks, smoothed targets). So are contrastive losses as the share of some exponentials in a sum,
wherever the positive ones come from. The finding is where the last number for each row is computed. If labels
are smoothed by settings of a class, the recorded step tells whether they add up to one. If a loss cannot be
edited, the finding says why.

## Why is this slow

A language model's scores have one number for every word of the vocabulary at every position. Each
separate operation reads and writes all of them, and autograd stores them.

## Example

```python
import torch
import torch.nn.functional as F


def loss_of(model, batch, target):
    logits = model(batch)  #> cost device_ms=20
    log_probs = torch.log(F.softmax(logits, dim=-1))  #> cost device_ms=6
    picked = log_probs.gather(1, target.unsqueeze(1)).squeeze(1)  #> cost device_ms=1
    return -picked.mean()  #> found; cost device_ms=1
```

## Use instead

```python
import torch
import torch.nn.functional as F


def loss_of(model, batch, target):
    logits = model(batch)
    return F.cross_entropy(logits, target)
```

## Example

```python
import torch

def bce(logits, labels):
    p = torch.sigmoid(logits)  #> cost device_ms=3
    return -(labels * torch.log(p) + (1 - labels) * torch.log(1 - p)).mean()  #> found; cost device_ms=9
```

## Use instead

```python
import torch

def bce(logits, labels):
    return torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
```

## Fix safety

Unsafe: the same value up to rounding (about 1e-6 of it in float32). The fused form stays finite where
the separate operations overflow or take the logarithm of zero. A constant of at most 1e-6 that prevents
that is dropped, also one with a name (`self.eps`) that was so small in the recorded step.

## References

- [Loss functions](https://docs.pytorch.org/docs/stable/nn.functional.html#loss-functions)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule
from warpline.rulekit.formulas.loss import Loss, loss
from warpline.rulekit.formulas.smoothing import EACH
from warpline.rulekit.graph import LOSS, by_hand, graph_of, matched, without_formulas
from warpline.rulekit.graph.errors import TOLERANCE
from warpline.rulekit.graph.loss import sum_of_classes
from warpline.rulekit.guards import guards
from warpline.rulekit.terms import Formula, Term, atom, formulas
from warpline.rulekit.written_out import written_out

_METRIC = "hand-written loss"
_REST = "; the fused call reads its input once."


class HandWrittenLoss(Rule):
    area = "fusion"

    def find(self, context: Context) -> Iterator[Draft]:
        named = partial(guards, context)
        told = list(formulas(context, loss, named=named))
        unsure = {one.flow.function for one in told if not _is_number(context, one)}
        told = [one for one in told if one.flow.function not in unsure]
        told += [one for one in formulas(context, _without_names, named=named) if one.flow.function in unsure]
        told = [one for one in told if one.found.others is not EACH or _is_one_in_all(context, one)]
        for formula in told:
            if formula.found.call == "binary_cross_entropy" and not context.on_gpu:
                continue  # on a CPU it is no faster than what is written out
            what = (_METRIC, formula.found.kind, _REST)
            change = formula.replaced(formula.found.call, *formula.found.words)
            yield written_out(context, formula, _place(formula), what, change, [partial(_fix, formula)])
        for one in without_formulas(matched(context, LOSS), told):
            if one.match.name == "binary_cross_entropy" and not context.on_gpu:
                continue  # on a CPU it is no faster than what is written out
            what = (_METRIC, one.match.kind, _REST + by_hand(one))
            yield written_out(context, one, one.place, what, one.replaced(one.match.name, *one.match.words))


def _place(formula: Formula[Loss]) -> tuple[str, int]:
    """Where each row's loss is computed: a mask and a sum after that have little to do."""
    rows = formula.found.rows
    node, _ = formula.flow.evaluator.written.get(rows, (None, {})) if rows is not None else (None, {})
    source = formula.flow.source
    return source.place(source.statement(node) or node) if node is not None else formula.place


def _is_number(context: Context, formula: Formula[Loss]) -> bool:
    """Whether the label that a mask leaves out, if any, is a number, by its text or as the run shows."""
    ignored, source = formula.found.ignored, formula.flow.source
    if ignored is None or ignored.number is not None:
        return True
    node, _ = formula.flow.evaluator.written[ignored]
    named = source.nodes(type(node), within=formula.flow.function)
    read = {source.place(one) for one in named if source.code(one) == source.code(node)}
    graph = graph_of(context.profile.facts.dataflow)
    masks = [one for one in graph.nodes if one.name in ("eq", "ne") and graph.place(one) in read]
    return bool(masks) and all(type(one.argument(1, "other")) is int for one in masks)


def _is_one_in_all(context: Context, formula: Formula[Loss]) -> bool:
    """Whether the smoothed rows add up to one, as the run shows."""
    graph = graph_of(context.profile.facts.dataflow)
    made = [node for place in formula.places for node in graph.at(place) if node.name == "scatter"]
    return bool(made) and all(abs(sum_of_classes(graph, node) - 1) < TOLERANCE for node in made)


def _without_names(term: Term) -> Loss | None:
    """The loss that a term spells out, unless it would leave out a label that is no number in the text."""
    found = loss(term)
    named = found is not None and found.ignored is not None and found.ignored.number is None
    return None if named else found


def _fix(formula: Formula[Loss]) -> Fix:
    found, rewrite = formula.found, formula.rewrite
    arguments, options = [rewrite.spell(term) for term in found.arguments], list(found.options)
    if found.smoothing is not None:
        options.insert(0, f"label_smoothing={_smoothing(formula, found.smoothing)}")
    if found.ignored is not None:
        options.insert(0, f"ignore_index={rewrite.spell(found.ignored).removesuffix('.0')}")
    shape = ""
    if found.last and _rank(formula) > 2:  # the call wants the classes in dimension 1
        shape = f".view({atom(arguments[1])}.shape)" if found.apart else ""
        arguments = [f"{atom(arguments[0])}.flatten(0, -2)", f"{atom(arguments[1])}.flatten()"]
    edits = Edits(formula.flow.source)
    name = edits.add_import(f"torch.nn.functional.{found.call}", "import torch.nn.functional as F")
    rewrite.into(edits, rewrite.call(name, [*arguments, *options]) + shape)
    return edits.fix(f"Use F.{found.call}", "unsafe")


def _smoothing(formula: Formula[Loss], share: Term) -> str:
    """The code of what the call spreads over all classes: a share of the others is more in all."""
    spell, others = formula.rewrite.spell, formula.found.others
    if others is None:
        return spell(share)
    if others is EACH:
        classes = -1 if formula.found.last else 1
        return f"{spell(share)} * {atom(spell(formula.found.arguments[0]))}.shape[{classes}]"
    if share.number is not None and others.number is not None:
        return f"{share.number * others.number / (others.number - 1):.10g}"
    if others.op == "size" and others.value != (-1 if formula.found.last else 1) and _rank(formula) != 2:
        raise Refused("the number of classes is not surely that of the scores")
    part, number = (spell(one) if one.number is not None else atom(spell(one)) for one in (share, others))
    return f"{part} * {number} / ({number} - 1)"


def _rank(formula: Formula[Loss]) -> int:
    """The most dimensions of what a softmax, or the right class, there was taken of; 0 where that is not
    known."""
    ops = [op for op in formula.forward if op.shapes]
    taken = [op for op in ops if any(word in op.name for word in ("softmax", "logsumexp", "gather"))]
    return max((len(op.shapes[0]) for op in taken), default=0)
