"""Names for what no module of the model calls: the optimizer's step, clipping, copies of the batch.

The names are paths of their own kind, with a slash: ``optimizer/AdamW.step``, ``gradients/clip_grad_norm_``,
``copy/to the device``, ``loader/DataLoader``. What has none of them is known by the library's function.
"""

from __future__ import annotations

import re

import numpy as np

from warpline.attribution.accounting import Account
from warpline.attribution.marks import LOADER_PREFIXES
from warpline.attribution.scene import Scene
from warpline.trace import nest
from warpline.trace.columns import COPY, Ints, Trace, take

#: torch's ranges around an optimizer's methods: "Optimizer.step#AdamW.step", "Optimizer.zero_grad#...".
_OPTIMIZER = "Optimizer."
#: torch has no range around clipping: the library's line that calls it says so, or the function around it.
_CLIPPING = re.compile(r"clip_grad(?:_norm_|_value_|\w*)")
#: Parts of the names that Kineto gives to copies.
_COPIES = {"HtoD": "copy/to the device", "DtoH": "copy/to the host"}
#: An entry is named for what takes more than this share of its time, so that there is one name at most.
MOST_OF = 0.5


def part_names(scene: Scene, accounted: Account, entry: Ints) -> dict[tuple[int, int], str]:
    """The name of (line number, ``entry``), where it has one. ``entry``: by row of ``Account.parts``."""
    parts = accounted.parts
    names, of_row = _by_row(scene, accounted)
    width, count = int(entry.max(initial=0)) + 1, len(names)
    key, at = np.unique((parts.line * width + entry) * count + of_row, return_inverse=True)
    spent = np.bincount(at, weights=parts.step_ms, minlength=len(key))
    place, of_place = np.unique(key // count, return_inverse=True)
    whole = np.bincount(of_place, weights=spent, minlength=len(place))
    most = (key % count > 0) & (spent > MOST_OF * whole[of_place])
    return {
        divmod(at, width): names[name] for at, name in zip(key[most] // count, key[most] % count, strict=True)
    }


def clipping(text: str) -> str:
    """The name of the clipping of gradients that a library's line does; empty if it does not."""
    found = _CLIPPING.search(text)
    return "gradients/" + found.group() if found else ""


def _by_row(scene: Scene, accounted: Account) -> tuple[list[str], Ints]:
    """Names, the first of them "" for none, and which one each row of the account has: the direction of the
    copy that it is, else the range that torch made below the library's line."""
    trace, parts = scene.trace, accounted.parts
    busy = parts.work >= 0
    work = parts.work[busy]
    event = trace.kernels.launch[work] if trace.on_gpu else work
    thread = np.full(len(busy), trace.main, np.int64)
    time = np.zeros(len(busy), np.int64)
    thread[busy] = take(trace.host.thread, event, missing=trace.main)
    time[busy] = take(trace.host.start_ns, event)
    time[~busy] = (accounted.idle.start_ns + accounted.idle.end_ns) // 2
    rows = np.flatnonzero(trace.names.mask(_OPTIMIZER, *LOADER_PREFIXES)[trace.marks.name])
    spans = (trace.marks.thread[rows], trace.marks.start_ns[rows], trace.marks.end_ns[rows])
    _, parent = nest.depth_and_parent(*spans)
    around = nest.covering(spans, parent, thread, time)
    around[_begun_ns(trace, parts.inside, thread, time) > take(spans[1], around)] = -1
    ranges = np.unique(trace.marks.name[rows])
    within = take(trace.marks.name[rows], around)
    names = ["", *_COPIES.values()]
    of_row: Ints = np.where(within >= 0, len(names) + np.searchsorted(ranges, within), 0)
    if trace.on_gpu:
        for number, direction in enumerate(_COPIES, 1):
            copies = (trace.kernels.kind == COPY) & trace.names.containing(direction)[trace.kernels.name]
            of_row[np.flatnonzero(busy)[copies[work]]] = number
    return [*names, *(_label(trace.names[name]) for name in ranges.tolist())], of_row


def _begun_ns(trace: Trace, location: Ints, thread: Ints, time: Ints) -> Ints:
    """When each library line last began on its thread, at or before ``time``; the end of time if it did not.
    A line that begins within a range of torch's is not around it: a closure's, a data set's."""
    of, threads = trace.inside, len(trace.threads)
    first = np.flatnonzero(~of.again)
    low = int(of.time_ns.min(initial=time.max(initial=0)))
    span = int(max(of.time_ns.max(initial=low), time.max(initial=low))) - low + 1
    begun = np.sort((of.location[first] * threads + of.thread[first]) * span + of.time_ns[first] - low)
    wanted = (location * threads + thread) * span + np.maximum(time - low, 0)
    last = take(begun, np.searchsorted(begun, wanted, "right") - 1)
    same = (last >= 0) & (last // span == wanted // span)
    return np.where(same, last % span + low, np.iinfo(np.int64).max)


def _label(name: str) -> str:
    return "optimizer/" + name.rpartition("#")[2] if name.startswith(_OPTIMIZER) else "loader/DataLoader"
