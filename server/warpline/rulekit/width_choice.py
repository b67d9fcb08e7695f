"""The script's own choice between rows that are filled up to one length, and up to the longest of a batch."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from warpline.rulekit.choice import Choice, of_test
from warpline.rulekit.context import Context
from warpline.rulekit.flags import conditions
from warpline.rulekit.padding import functions_at, is_fixed, widths
from warpline.syntax.source import Source
from warpline.wire.sites import Loader, facts_of

#: The file, the function that makes batches, and the width of one length in it.
Fixed = tuple[Source, cst.FunctionDef, cst.BaseExpression]


def width_choice(context: Context, columns: int) -> tuple[cst.FunctionDef, Choice] | None:
    """The function that makes batches, and the value for which it fills rows up to ``columns``. None where it
    has no other way, or where it is not known what sets the value."""
    for source, function, width in either_width(context, columns):
        for test, holds in conditions(source, width):
            choice = of_test(context, source, test, not holds)
            if choice is not None:
                return function, choice
    return None


def either_width(context: Context, columns: int) -> Iterator[Fixed]:
    """What makes the batches of a step's loaders as wide as ``columns``, and has another way, by the
    rows."""
    for site in context.sites(Loader.KIND):
        loader = facts_of(Loader, site)
        places = ((loader.collate_file, loader.collate_line), (loader.dataset_file, loader.dataset_line))
        for source, function in functions_at(context, places if site.uses else ()):
            fixed = {
                one: is_fixed(context, source, function, one, columns) for one in widths(source, function)
            }
            if len(set(fixed.values())) > 1:
                yield from ((source, function, one) for one in fixed if fixed[one])
