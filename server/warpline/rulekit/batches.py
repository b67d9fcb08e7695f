"""The batches that the steps take, where their size is written, and the edit that doubles it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.accumulating import accumulated_every
from warpline.rulekit.changing import Changes
from warpline.rulekit.context import Context
from warpline.rulekit.drawn import drawn
from warpline.rulekit.framework_settings import ACCUMULATES, accumulating_half
from warpline.rulekit.holders import holder
from warpline.rulekit.loaders import change_loader, edit_site, loader_call, setting, whence
from warpline.rulekit.number_reads import is_whole, whole
from warpline.rulekit.origins import origin
from warpline.rulekit.queues import rows_of, taken
from warpline.rulekit.slicing import Slices, generating, loops_over_rows, sizes_from_elsewhere, sliced
from warpline.rulekit.training import TrainingStep, training_steps
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source
from warpline.wire.run import Site
from warpline.wire.sites import Loader, facts_of

#: So many times the samples.
FACTOR = 2
#: What to do by hand with rows that a model gets one by one, and with prompts.
_ROWS = "take several rows in each turn"
_PROMPTS = (
    "give `generate` several prompts at once: tokenizer(prompts, padding=True, return_tensors='pt'), with "
    "padding_side='left' where the model has no encoder, and its attention_mask"
)


class Batch(NamedTuple):
    place: tuple[str, int]  # where its size is written
    what: tuple[str, int, str]  # that number, as evidence
    whence: str
    fix: Callable[[], Fix]
    how: str = "{size} samples per batch"
    epoch: int | None = None  # batches in one


def batches(context: Context) -> Iterator[Batch]:
    """Batches that the steps take, of a loader, sliced in a loop, off a queue or at random."""
    for site in context.sites("loader"):
        loader = facts_of(Loader, site)
        size = loader.batch_size
        if isinstance(size, int) and loader.batches_per_epoch != 1 and context.costs(site.uses):
            place, what = edit_site(context, site, "batch_size"), ("batch size", size, "samples")
            yield Batch(
                place,
                what,
                whence(context, site, "batch_size"),
                partial(doubled, context, site, size),
                epoch=loader.batches_per_epoch,
            )
    for found in (*sliced(context), *taken(context), *drawn(context)):
        fix = partial(_sliced, context, found)
        words = f" Its value is {found.size.words}." if found.size.kind != "literal" else ""
        if found.parts:
            how = "the data in {size} parts"
            yield Batch(found.size.place, ("batches", found.number, "parts"), words, fix, how)
        else:
            words += " A batch has several draws of so many." if found.draws > 1 else ""
            rows = found.number * found.draws
            yield Batch(found.size.place, ("batch size", rows, "samples"), words, fix)
    yield from _of_rows(context)


def _of_rows(context: Context) -> Iterator[Batch]:
    """Batches whose size is not in the text, and rows that training takes one by one: as many as all layers
    have."""
    rows = rows_of(context)
    if len(rows) != 1 or any(site.uses for site in context.sites("loader")):
        return
    (number,) = rows
    what = ("batch size", number, "samples")
    for size in sizes_from_elsewhere(context):
        yield Batch(
            size.place,
            what,
            f" It is {size.words}.",
            partial(_by_hand, "change it where its value is written"),
        )
    if number == 1:
        by_hand = partial(_by_hand, _PROMPTS if generating(context) else _ROWS)
        for source, loop in loops_over_rows(context):
            yield Batch(source.place(loop), what, "", by_hand)


def _by_hand(what: str) -> Fix:
    raise Refused(what)


def _sliced(context: Context, found: Slices) -> Fix:
    if found.parts and found.number % FACTOR:
        raise Refused("the number of parts is odd")
    number = str(found.number // FACTOR if found.parts else found.number * FACTOR)
    changes = Changes(context)
    changes.at_origin(found.size, "the batch size", number)
    for node in found.again:
        changes.of(found.source).replace(node, number)
    return changes.of(found.size.source).fix("Double the batch", "unsafe")


def doubled(context: Context, site: Site, size: int) -> Fix:
    """The edit that doubles a loader's batch. Raises Refused."""
    present = setting(context, site, "batch_size")
    if present is not None and present.editable and present.source.literal(present.node) != size:
        raise Refused("the batch size was changed since the run")
    others = half_as_many(context)
    title = "Double the batch" + (ACCUMULATES if others else "")
    if present is not None and not present.editable and not others and holder(site, "batch_size") is None:
        return _at_the_call(context, site, title)
    return change_loader(context, site, title, others=others, batch_size=str(size * FACTOR))


def half_as_many(context: Context) -> list[Edits]:
    """The edits by which an update adds up the gradients of half as many batches; [] if it adds up none.
    Raises Refused."""
    step = next((found for found in training_steps(context) if found.loop is not None), None)
    accumulation = _accumulation(context, step) if step is not None else None
    if accumulation is None:
        return accumulating_half(context)
    source, node, number = accumulation
    if number % FACTOR:
        raise Refused("the number of accumulated batches is odd")
    return [Edits(source).replace(node, str(number // FACTOR))]


def _at_the_call(context: Context, site: Site, title: str) -> Fix:
    """``DataLoader(data, BATCH)`` -> ``DataLoader(data, 2 * BATCH)``, for a name with several values that
    nothing else reads."""
    source, call = loader_call(context, site)
    passed = source.argument(call, "batch_size", 1)
    if passed is None or not isinstance(passed.value, cst.Name):
        raise Refused("no value was found for the batch size")
    name = passed.value.value
    if len(source.reads(name, source.module)) != 1:
        raise Refused(f"`{name}` is used elsewhere too, and no single value was found for it")
    return Edits(source).replace(passed.value, f"{FACTOR} * {name}").fix(title, "unsafe")


def _accumulation(context: Context, step: TrainingStep) -> tuple[Source, cst.BaseExpression, int] | None:
    """N of ``if (i + 1) % N == 0: optimizer.step()``, if there is only one such number."""
    every = accumulated_every(step)
    if every is None:
        return None
    found = origin(context, step.source, every, ends=is_whole)
    number = whole(context, found)
    if number is None or found.node is every:
        raise Refused("the number of accumulated batches was not found")
    return found.source, found.node, number
