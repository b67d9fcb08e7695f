"""A matrix product has a dimension that does not fit the tensor cores.

## What it does

Finds costly half-precision products in which a dimension is not a multiple of eight, and names the next
multiple. The finding is at the line that sets the size of a layer (a vocabulary size, a number of classes),
and the fix rounds it up there: where random data is drawn below the same constant, at the field or entry that
passes it on to the layers; where layers get a number and multiples of it, as those of an MLP with a gate do,
at the statement that makes that number, if what takes them apart again is `chunk`. There is no fix where the
size is not the layers' alone: where data, or a tensor that an operator makes (the bins of a spectrogram), has
to agree with it. Where the size is read off that data (`data.shape[1]`), the finding is at the layer. Of
layers that `transformers` makes, it is at the model's configuration: where the script writes `vocab_size`, or
leaves it at its default (50257 for `GPT2Config`).

Products in float32 do not mind. Those with a size that a layer is known to get are told all the same, with
what padding saves once they run in half precision, if `fp32-matmul` proposes that.

## Why is this slow

Tensor cores load eight half-precision numbers at a time from aligned addresses. If a row has another
length, all rows but the first are misaligned, and a slower kernel with narrower loads runs.

## Example

```python
import torch

VOCABULARY = 50257  #> found
head = torch.nn.Linear(768, VOCABULARY, bias=False)
for x in loader:
    logits = head(x)  #> cost device_ms=20
    #^ op aten::mm device_ms=15 shapes=[[8192,768],[768,50257]] dtypes=c10::BFloat16,c10::BFloat16
    #^ node aten.mm.default args=[%8,%9] shape=[8192,50257]
    #> tensor %8 shape=[8192,768]; tensor %9 shape=[768,50257] parameter=true
```

## Use instead

```python
import torch

VOCABULARY = 50304
head = torch.nn.Linear(768, VOCABULARY, bias=False)
for x in loader:
    logits = head(x)
```

## Fix safety

Unsafe: the padded layer has more parameters, so older checkpoints no longer fit. A softmax over the
padded scores includes the new entries unless they are masked. A model from a configuration begins with other
random weights. No edit is offered where the weights of a checkpoint are loaded.

## References

- [Matrix multiplication background: tensor core requirements](https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html#requirements-tc)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial

import libcst as cst

from warpline.model import costs
from warpline.model.change import PadProducts
from warpline.model.profile import LineCost, Op
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, Source, count
from warpline.rulekit.configured import Configured, configured, decided_elsewhere, padding
from warpline.rulekit.frameworks import in_library
from warpline.rulekit.holders import by_hand, in_text_at, literal_at
from warpline.rulekit.library_attention import fusible_scores, touches
from warpline.rulekit.saving import Spent, less_device_time
from warpline.rulekit.widths import Width, tied_alone, tied_width, width
from warpline.wire.births import Holder
from warpline.wire.precision import HALF, Precision
from warpline.wire.run import Site
from warpline.wire.sites import Framework, Module, facts_of

#: Calls that draw numbers below a limit: beside a larger layer they may go on as they are.
_DRAWING = ("randint", "randint_like", "randrange", "integers", "random_")

_PIECE = 8  # numbers of two bytes in one load of a tensor core
_PADDED = 64  # what the largest tiles divide by
_SINGLE = ("float",)
_FEATURES = ("in_features", "out_features")  # a layer's arguments, the sizes of its weight


class MisalignedMatmul(Rule):
    area = "precision"
    needs = ("kernels", "tensor cores")

    def find(self, context: Context) -> Iterator[Draft]:
        yield from _found(context, HALF)
        if not context.autocast:  # what stays in float32 there is meant to
            yield from _found(context, _SINGLE, "bf16" if context.device.bf16 else "fp16")


def _found(context: Context, dtypes: Collection[str], later: Precision | None = None) -> Iterator[Draft]:
    """Products in these dtypes. ``later``: what they have to be in before their sizes matter; then only sizes
    that layers are known to get are told."""
    at: dict[tuple[tuple[str, int], int], Spent] = {}
    held: dict[tuple[tuple[str, int], int], tuple[Site, Holder] | None] = {}
    given: dict[tuple[tuple[str, int], int], Configured | None] = {}
    wide: dict[tuple[tuple[str, int], int], tuple[Width | None, int]] = {}
    scores = fusible_scores(context)
    for cost in context.profile.lines:
        # A fused attention has none of the products that make and read its scores.
        gone = scores.get(cost.place, ())
        by_size = _by_size((op for op in cost.ops if not any(touches(op, one) for one in gone)), dtypes)
        if by_size:
            size = max(by_size, key=lambda size: by_size[size])
            layer = _layer(context, cost, size, dtypes)
            library = configured(context, cost.place, size) if layer is None else None
            if library is not None and library.holder is not None:
                layer = library.site, library.holder
            if later is not None and layer is None and library is None:
                continue
            own = _width(context, layer[1], size) if layer is not None and library is None else None
            spent_ms = sum(by_size.get(one, 0.0) for one in (own.sizes if own is not None else (size,)))
            key = _place(context, cost, size, layer[1] if layer is not None else library), size
            if own is not None:
                key = own.source.place(own.made), own.number
            at.setdefault(key, Spent((), lambda _: 0.0))[cost] = min(spent_ms, cost.step_ms)
            if at[key].hottest is cost:
                held[key], given[key], wide[key] = layer, library, (own, size)
    for (place, number), spent in at.items():
        whole = spent.total
        if not context.matters(whole):
            continue
        hottest = spent.hottest
        own, size = wide[place, number]
        piece = _PADDED if number > _PADDED else _PIECE
        padded = -(-number // piece) * piece * (size // number)
        saving = (1 - costs.value("misaligned")) * whole
        site, holder = held[place, number] or (None, None)
        library = given[place, number]
        fix: Callable[[], Fix] | str = partial(_fix, context, hottest, size, padded, own or library or holder)
        if site is not None and holder is not None and library is None and _reads_it(context, holder):
            # Where data has the size too, the line that reads it off cannot change it: the layers can,
            # together with the data.
            reason = tied_alone(context, size, holder)
            place = site.place if reason else place
            fix = f"{reason}: pad it, and the layers with it" if reason else fix
        yield context.draft(
            place,
            "Matrix products with a dimension of {size} take {spent} ({share}"
            + (", in float32" if later is not None else "")
            + "). {size} is not a multiple of {piece}; {padded} would fit the tensor cores"
            + ("." if later is None else " in half precision.")
            + _whose(library),
            {
                "size": count("size", size, "elements"),
                "piece": count("elements a tensor core loads at a time", _PIECE, "elements"),
                **context.spent("misaligned products", whole),
                "padded": count("padded size", padded, "elements"),
            },
            cause=hottest.place,
            cost_ms=whole,
            saving_ms=saving,
            change=spent.tried(
                "padded", str(size), str(padded), otherwise=less_device_time(spent, saving, assumed=True)
            )
            if later is None
            else spent.tried(
                *("padded", str(size), str(padded), later),
                otherwise=PadProducts(size, later, costs.value("misaligned"), spent.places, assumed=True),
            ),
            fixes=[fix],
        )


def _by_size(ops: Iterable[Op], dtypes: Collection[str]) -> dict[int, float]:
    """Device time by the size that does not fit."""
    found: dict[int, float] = {}
    for op in ops:
        for size in _odd_sizes(op, dtypes):
            found[size] = found.get(size, 0.0) + op.device_ms
    return found


def _matrices(op: Op) -> tuple[tuple[int, ...], ...]:
    """Sizes of the two matrices that a product multiplies."""
    if op.name not in ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm") or not op.dtypes:
        return ()
    shapes = op.shapes[1:3] if op.name in ("aten::addmm", "aten::baddbmm") else op.shapes[:2]
    return tuple(shape[-2:] for shape in shapes if len(shape) >= 2)


def _odd_sizes(op: Op, dtypes: Collection[str]) -> set[int]:
    """Row lengths of the two matrices: they decide how rows are aligned."""
    sizes = {size for matrix in _matrices(op) for size in matrix}
    return (
        {size for size in sizes if size % _PIECE and size > 1}
        if op.dtypes[:1] and op.dtypes[0] in dtypes
        else set()
    )


def _layer(
    context: Context, cost: LineCost, size: int, dtypes: Collection[str]
) -> tuple[Site, Holder] | None:
    """The layer that was made with the size, and who holds it: one with a weight that is multiplied here,
    else the first module with that size. None where there is none, or the run does not say who holds it."""
    weights = {
        frozenset(matrix) for op in cost.ops if size in _odd_sizes(op, dtypes) for matrix in _matrices(op)
    }
    found: tuple[Site, Holder] | None = None
    for site in context.sites("module"):
        given = [one for one in site.arguments if one.passed and isinstance(one.value, int)]
        holder = next((one.holder for one in given if one.value == size and one.holder is not None), None)
        if holder is not None and {one.value for one in given if one.name in _FEATURES} in weights:
            return site, holder
        table = facts_of(Module, site)
        if table.num_embeddings and frozenset((table.num_embeddings, table.embedding_dim)) not in weights:
            continue  # only looked up: a longer table changes no product
        if found is None and holder is not None:
            found = site, holder
    return found


def _width(context: Context, holder: Holder, size: int) -> Width | None:
    """The number that the layers have multiples of, if it is not read off something."""
    found = width(context, holder, size)
    return found if found is not None and not _is_read_off(found.source, found.made) else None


def _reads_it(context: Context, holder: Holder) -> bool:
    """Whether the size is only read there, off something that has it: ``len(bins)``, ``data.shape[1]``."""
    source = context.source(holder.file)
    return _is_read_off(source, _computed(source, holder))


def _is_read_off(source: Source, node: cst.BaseExpression | None) -> bool:
    if isinstance(node, cst.Call):
        return source.is_named(node.func, "len", "size", "numel")
    return (
        isinstance(node, cst.Subscript)
        and isinstance(node.value, cst.Attribute)
        and node.value.attr.value == "shape"
    )


def _computed(source: Source, holder: Holder) -> cst.BaseExpression | None:
    """The largest expression that begins where ``holder`` is computed; None where it is not."""
    if holder.kind != "computed":
        return None
    starting = [
        node
        for node in source.at(holder.line, cst.Call, cst.Subscript, cst.BinaryOperation)
        if source.span(node)[0] == (holder.line, holder.column)
    ]
    return max(starting, key=lambda node: source.span(node)[1], default=None)


def _literals(context: Context, cost: LineCost, size: int) -> tuple[Source | None, list[cst.Integer]]:
    """Where the number stands, in the file of the line, in the script, then in the modules' files."""
    modules = [site.file for site in context.sites("module")]
    if in_library(cost):  # none of these layers is made here
        return None, []
    for file in dict.fromkeys([cost.file, context.profile.manifest.script, *modules]):
        source = context.source(file)
        found = [
            node
            for node in source.nodes(cst.Integer)
            if node.evaluated_value == size and not draws(source, node)
        ]
        if found:
            return source, found
    return None, []


def _place(
    context: Context, cost: LineCost, size: int, holder: Holder | Configured | None
) -> tuple[str, int]:
    if isinstance(holder, Configured):
        return holder.place
    if holder is not None and context.source(holder.file).text:
        own = passed_on(context, holder)
        return own[0].place(own[1]) if own is not None else holder.place
    source, found = _literals(context, cost, size)
    return source.place(found[0]) if source is not None and len(found) == 1 else cost.place


def _whose(library: Configured | None) -> str:
    if library is None or not library.default:
        return ""
    return f" The size is `{library.name}` of `{facts_of(Framework, library.site).type}`, at its default."


def _fix(
    context: Context, cost: LineCost, size: int, padded: int, known: Holder | Configured | Width | None
) -> Fix:
    if isinstance(known, Width):
        if reason := tied_width(context, known):
            raise Refused(reason)
        code = known.source.code(known.made)
        code = code if isinstance(known.made, (cst.Call, cst.Integer)) else f"({code})"
        text = _rounded(code, known.number)
        return Edits(known.source).replace(known.made, text).fix("Pad the size", "unsafe")
    library, holder = (known, known.holder) if isinstance(known, Configured) else (None, known)
    if library is not None and (reason := decided_elsewhere(context, library)):
        raise Refused(reason)
    if reason := tied_alone(context, size, holder):
        raise Refused(reason)
    node: cst.BaseExpression
    if library is not None and holder is None:
        return padding(context, library, padded)
    if holder is not None:
        source, node, text = _held(context, holder, size, padded, longer=library is not None)
    else:
        found, literals = _literals(context, cost, size)
        if found is None:
            raise Refused("the size is not a number in the source")
        if len(literals) > 1:
            raise Refused("the number occurs in several places, and not all of them may mean this size")
        source, node, text = found, literals[0], str(padded)
    return Edits(source).replace(node, text).fix("Pad the size", "unsafe")


def _held(
    context: Context, holder: Holder, size: int, padded: int, longer: bool
) -> tuple[Source, cst.BaseExpression, str]:
    """The expression that holds the size, and what to write for it; ``longer``: also where it is read off
    something, which may have less. Raises Refused."""
    own = passed_on(context, holder)
    if own is not None:
        return *own, _rounded(own[1].value, size)
    source = context.source(holder.file)
    widest = _computed(source, holder)
    if isinstance(widest, (cst.Call, cst.BinaryOperation)) and (longer or not _reads_it(context, holder)):
        code = source.code(widest)
        return source, widest, _rounded(code if isinstance(widest, cst.Call) else f"({code})", size)
    if holder.kind == "text":
        return in_text_at(context, holder, size, str(padded))
    if reason := by_hand(holder, holder.name or "the size"):
        raise Refused(reason)
    return *literal_at(context, holder, size), str(padded)


def _rounded(code: str, size: int) -> str:
    piece = _PADDED if size > _PADDED else _PIECE
    return f"-(-{code} // {piece}) * {piece}"


def passed_on(context: Context, holder: Holder) -> tuple[Source, cst.Name] | None:
    """The one read of the variable ``holder`` that passes it on under a name of its own: to a class's field
    (``words: int = TOKENS``), a parameter's default, an entry. None where there is none or several, where
    nothing else reads the variable, and where anything else does but what draws random data: a size that has
    to agree with a layer's must change with it.
    """
    source = context.source(holder.file)
    if holder.kind != "variable" or not holder.name:
        return None
    reads = source.reads(holder.name, source.module)
    given = [one for one in reads if _is_passed_on(source, one)]
    others = [one for one in reads if one not in given]
    single = len(given) == 1 and others and all(draws(source, one) for one in others)
    return (source, given[0]) if single else None


def _is_passed_on(source: Source, read: cst.Name) -> bool:
    """Whether ``read`` is all of a value that gets a name there."""
    parent = source.parent(read)
    if isinstance(parent, cst.Arg) and parent.keyword is not None:
        call = source.taking(read)
        return call is not None and source.is_named(call.func, "dict", "SimpleNamespace", "Namespace")
    return (
        (isinstance(parent, cst.AnnAssign) and parent.value is read)
        or (isinstance(parent, cst.Param) and parent.default is read)
        or (isinstance(parent, cst.DictElement) and parent.value is read)
    )


def draws(source: Source, read: cst.BaseExpression) -> bool:
    """Whether ``read`` is an argument of a call that draws numbers."""
    call = source.taking(read)
    return call is not None and source.is_named(call.func, *_DRAWING)
