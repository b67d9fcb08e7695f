"""What other processes took of the device while kernels of this one were running.

Processes share a GPU by turns of about 2 ms. A kernel that loses its turn is recorded as running until it
has ended, for up to twice as long and more. The same kernel of another captured step, which was not
interrupted, tells how long it takes by itself: they hardly differ otherwise (half a percent on an H100).

This is used only where the record contradicts itself: where the device is busy for longer in a captured step
than a whole step takes while nothing is recorded. Kernels whose work depends on the data differ as well.
"""

from __future__ import annotations

import numpy as np

from warpline.attribution import device
from warpline.trace.columns import Floats, Ints, Trace, take


def own_share(trace: Trace, window: tuple[int, int], step_ns: float) -> Floats:
    """The share of each kernel's recorded time that it has in a step of ``step_ns``. It is 1, unless the
    device is busy for longer than that in a captured step. ``window``: all captured steps, in ns.

    What a kernel takes longer than the same one of another step is like time in which the device is idle:
    both shrink in proportion until they and the kernels' own time make ``step_ns``.
    """
    kernels, steps = trace.kernels, trace.steps
    begin, until = device.busy(kernels, window)
    busy_ns = float((until - begin).sum()) / steps
    if busy_ns <= step_ns or steps < 2:
        return np.ones(len(kernels))
    begin, until, kernel = device.owners(kernels, window)
    path_ns = np.bincount(kernel, weights=until - begin, minlength=len(kernels)) / steps
    taken = _longer(trace) / np.maximum(kernels.end_ns - kernels.start_ns, 1)
    own_ns = busy_ns - float((path_ns * taken).sum())
    rest_ns = (window[1] - window[0]) / steps - own_ns
    shrunk: Floats = 1 - taken * (1 - max(0.0, step_ns - own_ns) / max(1.0, rest_ns))
    return shrunk


def _longer(trace: Trace) -> Ints:
    """Nanoseconds by which each kernel exceeds the shortest of those at its place in all captured steps: with
    its name and launch shape, and as many of these before it in its step. 0 where the steps launch different
    numbers of them."""
    kernels = trace.kernels
    length = kernels.end_ns - kernels.start_ns
    launched = take(trace.host.start_ns, kernels.launch, missing=0)
    starts = np.array([begin for begin, _ in trace.manifest.captured], np.int64)
    step = np.searchsorted(starts, launched, "right") - 1
    rows = np.flatnonzero((kernels.launch >= 0) & (step >= 0) & (launched < trace.window_ns[1]))
    longer = np.zeros(len(kernels), np.int64)
    if not len(rows):
        return longer
    columns = (kernels.name, kernels.shape, kernels.bytes, kernels.device_stream)
    _, same = np.unique(np.stack([column[rows] for column in columns]), axis=1, return_inverse=True)
    same = same.reshape(-1)
    counts = np.zeros((int(same.max()) + 1, trace.steps), np.int64)
    np.add.at(counts, (same, step[rows]), 1)
    alike = (counts == counts[:, :1]).all(axis=1)
    by = np.lexsort((kernels.start_ns[rows], launched[rows], step[rows], same))
    by = by[alike[same[by]]]
    for kind in np.split(by, np.flatnonzero(np.diff(same[by])) + 1) if len(by) else ():
        of_step = length[rows[kind]].reshape(trace.steps, -1)
        longer[rows[kind]] = (of_step - of_step.min(axis=0)).reshape(-1)
    return longer
