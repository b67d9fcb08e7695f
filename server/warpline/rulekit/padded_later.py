"""A tokenizer that fills all rows up to one length before the steps, where a collator pads each batch."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.choice import Choice
from warpline.rulekit.context import Context
from warpline.rulekit.double_settings import given_elsewhere
from warpline.rulekit.doubles import MAKERS
from warpline.rulekit.flags import decided, turned
from warpline.rulekit.graph import Graph
from warpline.rulekit.holders import argument
from warpline.rulekit.origins import Origin, assigned_values, overridden
from warpline.rulekit.row_lengths import BY_HAND, TITLE, hides_padding, is_compiled, is_counted_on
from warpline.rulekit.width_choice import either_width
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, is_method
from warpline.wire.dataflow import Padding
from warpline.wire.sites import Loader, facts_of

_WORD = "max_length"
#: What else a tokenizer may get: rows as they are, or as long as the longest that it gets with them.
_OTHERS = (False, True, "longest", "do_not_pad")
#: What pads the rows of one batch: collators of transformers, and functions.
_COLLATORS = (
    "DataCollatorWithPadding", "DataCollatorForLanguageModeling", "DataCollatorForWholeWordMask",
    "DataCollatorForSeq2Seq", "DataCollatorForTokenClassification", "DataCollatorForMultipleChoice",
    "pad_sequence",
)  # fmt: skip
#: A Trainer that has one of these, and no collator, makes a collator that pads.
_TOKENIZER = ("processing_class", "tokenizer")


def padding_flag(context: Context) -> tuple[Source, cst.Call, Origin] | None:
    """The call with ``padding="max_length" if args.pad else False``, and the flag that has it so. None where
    several flags do, or something else may give the flag its value."""
    found = {flag.place: (source, call, flag) for source, call, flag in _flags(context)}
    (only,) = found.values() if len(found) == 1 else (None,)
    if only is None or overridden(context, only[2]) is not None or given_elsewhere(context, only[2]):
        return None
    return only


def _flags(context: Context) -> Iterator[tuple[Source, cst.Call, Origin]]:
    for source, call in context.calls():
        given = source.argument(call, "padding")
        if given is None or context.reached.node(source, call) is False:
            continue
        value = given.value
        values = [(source, value)]
        if isinstance(value, (cst.Name, cst.Attribute)):
            values = assigned_values(context, source, value)
        for where, one in values:
            branches = [one.body, one.orelse] if isinstance(one, cst.IfExp) else [one]
            words = [(where.literal(each), each) for each in branches]
            if any(word not in (_WORD, *_OTHERS) for word, _ in words):
                break
            for word, node in words:
                switches = decided(context, where, node) if word == _WORD else ()
                yield from ((source, call, each.flag) for each in switches if each.on)


def by_flag(context: Context, graph: Graph, found: Padding, call: cst.Call, flag: Origin) -> Fix:
    """The flag's other value: rows keep their own length until a batch is made of them. Raises Refused where
    nothing is seen that pads a batch then, and as ``to_longest_row`` does."""
    _check(context, graph, found, call)
    return turned(flag).fix(TITLE, "unsafe")


def by_choice(context: Context, graph: Graph, found: Padding, maker: cst.FunctionDef, choice: Choice) -> Fix:
    """The value with which ``maker`` fills rows up to the longest of a batch: the script knows both ways.
    Raises Refused where code is compiled, something counts on the length, or the command line chooses."""
    if is_compiled(context) or is_counted_on(context, graph, maker, found):
        raise Refused(BY_HAND)
    return choice.fix(TITLE)


def by_no_word(
    context: Context, graph: Graph, found: Padding, source: Source, call: cst.Call, word: cst.BaseExpression
) -> Fix:
    """``padding="max_length"`` -> ``padding=False``, where the call makes rows before the steps, or in a
    dataset whose loader has a collator that pads. Raises Refused as above, and where they may have labels,
    which most collators do not pad, or become a tensor."""
    _check(context, graph, found, call)
    owner = source.enclosing(call, cst.ClassDef) or source.scope(call)
    words = (source.literal(one) for one in source.nodes(cst.SimpleString, within=owner))
    joined = any(source.is_named(one.func, *MAKERS) for one in source.nodes(cst.Call, within=owner))
    tensors = source.argument(call, "return_tensors") is not None
    in_step = context.cost(*source.place(call)) is not None and not _is_collated(context, source, call)
    if in_step or tensors or joined or "labels" in words:
        raise Refused(BY_HAND)
    return Edits(source).replace(word, "False").fix(TITLE, "unsafe")


def _is_collated(context: Context, source: Source, call: cst.Call) -> bool:
    """Whether the call makes a row of a loader's dataset, in its ``__getitem__``, and all loaders with that
    dataset have a collator that pads."""
    function = source.scope(call)
    place = source.place(function) if isinstance(function, cst.FunctionDef) else None
    sites = [
        site
        for site in context.sites("loader")
        if (facts_of(Loader, site).rows_file, facts_of(Loader, site).rows_line) == place
    ]
    collators = [argument(site, "collate_fn") for site in sites]
    return bool(collators) and all(one is not None and one.value in _COLLATORS for one in collators)


def _check(context: Context, graph: Graph, found: Padding, call: cst.Call) -> None:
    pads = (_pads(*each) and context.reached.node(*each) is not False for each in context.calls())
    if not any(pads) and next(either_width(context, found.columns), None) is None:
        raise Refused(BY_HAND)
    if not hides_padding(context, graph, found) or is_counted_on(context, graph, call, found):
        raise Refused(BY_HAND)


def _pads(source: Source, call: cst.Call) -> bool:
    """Whether a call pads the rows of one batch, or makes what does."""
    if source.is_named(call.func, *_COLLATORS):
        return True
    if is_method(call, "pad"):  # a tokenizer's
        return not source.name(call.func).startswith("torch.")
    trains = source.name(call.func).endswith("Trainer") and source.argument(call, "data_collator") is None
    return trains and any(source.argument(call, name) is not None for name in _TOKENIZER)
