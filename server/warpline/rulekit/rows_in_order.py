"""Whether a framework can put rows of similar length into a batch, and whether that would help."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from warpline.rulekit.context import Context
from warpline.rulekit.draft import Draft
from warpline.rulekit.kept_statements import last_name
from warpline.syntax.source import Source

SHARED = "columns of padding"  # the evidence for columns in which every row has padding
#: Batches are padded to the longest row, or to the next multiple of this: `pad_to_multiple_of`, as
#: transformers advises for tensor cores.
MULTIPLE = 8
#: What a framework measures the length of, in rows that are dicts.
TOKENS = "input_ids"


def gains_by_order(context: Context, draft: Draft) -> bool:
    """Whether batches are as wide as their longest row, so that an order by length makes them narrower, and
    the framework can tell how long a row is."""
    shared = next((one.value for one in draft.evidence if one.metric == SHARED), 0)
    return shared < MULTIPLE and all(_reads_tokens(source, node) for source, node in _own_collators(context))


def _own_collators(context: Context) -> Iterator[tuple[Source, cst.CSTNode]]:
    """The script's own functions and classes that make a framework's batches of rows."""
    for source, call in context.calls():
        given = source.argument(call, "data_collator")
        if given is None:
            continue
        values = [given.value, *source.assigned(last_name(given.value))]
        yield from ((source, one) for one in values if isinstance(one, cst.Lambda))
        names = {last_name(one.func if isinstance(one, cst.Call) else one) for one in values}
        for other in context.sources():
            functions = [one for name in names for one in other.functions(name)]
            yield from ((other, one) for one in functions)
        yield from (each for name in names if name for each in context.classes(name))


def _reads_tokens(source: Source, collator: cst.CSTNode) -> bool:
    """Whether it takes the tokens of a row by their name, as from a dict."""
    parts = source.nodes(cst.Subscript, within=collator)
    indices = [one.slice[0].slice for one in parts if not isinstance(source.parent(one), cst.AssignTarget)]
    words = [one.value for one in indices if isinstance(one, cst.Index)]
    calls = source.nodes(cst.Call, within=collator)
    words += [call.args[0].value for call in calls if call.args and last_name(call.func) in ("get", "pop")]
    return any(source.literal(one) == TOKENS for one in words)
