"""Reads the questions and answers one after the other until the time is over."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Set, TextIO

import torch

from ....wire.probing import (
    COMPILED,
    NOT_COMPILING,
    Answer,
    Question,
    QuestionBatch,
    batch_from_json,
    builds,
)
from ..device import kinds
from ..device.alone import MOST_S, Alone
from . import agreement, clock, compiled
from .kinds import KINDS, Pair

#: Seconds to wait for a profile on the same GPU before the server hears of this process again: within the 30
#: that it gives the import of torch.
ALONE_S = 10.0
#: Calls of compiled code until the host's time is steady. In the first ones Python has not specialised the
#: code yet, and CUDA graphs are recorded: the host took 1.2 ms for the first one, and 0.5 ms from the 16th on
#: (torch 2.13, measured once); the first round of a graph took four times as long as the next ones (2.11).
SETTLING = 16
#: Seconds of readings of a whole network on a CPU, whose calls are long, instead of ``clock.MOST_S``. Chosen.
WHOLE_S = 4.0


def run() -> None:
    """Answers go to what was standard output; whatever else is printed goes to standard error."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    wanted = batch_from_json(json.load(sys.stdin))
    if wanted.threads:
        torch.set_num_threads(wanted.threads)
    torch.manual_seed(0)
    # Random weights let numbers vanish that a network's own keep, and a CPU is slow at what is nearly zero.
    torch.set_flush_denormal(True)
    alone = Alone()  # until this function ends, but not while something compiles: that takes a minute

    def wait(most_s: float = ALONE_S) -> bool:
        if wanted.device != "cuda":
            return True
        return alone.take(kinds.used(torch).identity(), min(most_s, ALONE_S))

    if wanted.device == "cuda":
        torch.zeros(1, device="cuda")
    began = turn(wait, out)
    done: Set[Question] = set()
    soon = began + wanted.seconds
    late = soon + wanted.compiling
    for question, latest in in_order(wanted, soon, late):
        if question in done or time.monotonic() >= latest:
            continue
        done.add(question)
        if question.kind == COMPILED:
            alone.let_go()
        ends = late if builds(question, wanted.device) else soon
        out.write(json.dumps(asdict(answer(question, wanted, ends, wait))) + "\n")
        out.flush()


def in_order(wanted: QuestionBatch, soon: float, late: float) -> Iterator[tuple[Question, float]]:
    """The questions, and when each has to begin at the latest; some come twice. Whatever compiles comes after
    all others: it is what may be ended before it has an answer. Then come those that cuDNN searches for, and
    that there was no time for before."""
    for one in wanted.questions:
        if one.kind != COMPILED:
            yield one, soon
    for kind in (True, False):
        for one in wanted.questions:
            if builds(one, wanted.device) and (one.kind == COMPILED) is kind:
                yield one, late


def turn(wait: Callable[[], bool], out: TextIO) -> float:
    """When the time for the questions begins: once no other profile has the device, or after ``MOST_S``. For
    the server it begins with the last line that this writes."""
    latest = time.monotonic() + MOST_S
    while True:
        free = wait()
        out.write("{}\n")
        out.flush()
        if free or time.monotonic() >= latest:
            return time.monotonic()


def answer(question: Question, wanted: QuestionBatch, ends: float, wait: Callable[[float], object]) -> Answer:
    """Time one replacement. What goes wrong, such as a lack of memory, is the answer's ``error`` in one
    line. ``wait``: waits for its turn on the device, at most the seconds it is given."""
    make = KINDS.get(question.kind)
    if make is None:
        return Answer(question, error="no such kind")
    try:
        pair = make(question, wanted.device)
        return timed(question, pair, wanted.device, ends, wait)
    except Exception as error:  # out of memory, a shape that the operator does not take, an older torch
        nothing = compiled.not_compiling(wanted.device) if question.kind == COMPILED else ""
        if nothing:
            return Answer(question, error="%s: %s" % (NOT_COMPILING, nothing))
        said = str(error) or "in %s" % traceback.extract_tb(error.__traceback__)[-1].name
        return Answer(question, error=("%s: %s" % (type(error).__name__, said)).splitlines()[0][:300])


def timed(
    question: Question, pair: Pair, device: str, ends: float, wait: Callable[[float], object]
) -> Answer:
    """The answer; see ``answer``."""
    difference = compiling_s = 0.0
    if pair.same:
        before, after = (pair.checked(work()) for work in (pair.before, pair.after))
        difference = agreement.difference(before, after, pair.tolerance)
    if difference > 1:
        return Answer(question, difference=difference, error="the results differ")
    if question.kind == COMPILED:
        began = time.monotonic()
        pair.after()  # compiles
        compiling_s = time.monotonic() - began
        wait(max(0.0, ends - time.monotonic()))
        for _ in range(SETTLING if device == "cuda" else 0):
            if time.monotonic() < ends:
                pair.after()
    # What is compiled finds its data in the caches if little else runs between two calls of it.
    period_ns = question.period_ns if question.kind == COMPILED else None
    most_s = WHOLE_S if question.kind == "channels_last" and device != "cuda" else clock.MOST_S
    before, after, ratios = clock.of_both(pair.before, pair.after, device, ends, period_ns, most_s)
    return Answer(question, before, after, ratios, difference, compiling_s=compiling_s)
