"""Tables of events by category -> linked columns of the trace."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from warpline.trace import nest
from warpline.trace.columns import (
    COMMUNICATION,
    COPY,
    KERNEL,
    OP,
    RUNTIME,
    SET,
    Host,
    Ints,
    Kernels,
    LaunchShape,
    Marks,
    Memory,
    Signature,
    take,
)
from warpline.trace.contradictions import last_launches
from warpline.trace.events import (
    ARROWS,
    DEVICE_CATEGORIES,
    MARKS,
    MEMORY,
    NO_SIGNATURE,
    RUNTIME_CATEGORIES,
    Interned,
    Tables,
    joined,
    renumbered,
    spans,
)
from warpline.trace.names import Names

DEVICE_KINDS = (KERNEL, COPY, SET)  # of DEVICE_CATEGORIES
COLLECTIVE_PREFIXES = ("nccl", "rccl", "ncclDevKernel", "ncclKernel")


def host(
    tables: Tables, base_ns: int, names: Interned, threads: Interned
) -> tuple[Host, tuple[Signature, ...]]:
    """Operators and runtime calls as one sorted table, and the distinct signatures of operators."""
    ops = tables["cpu_op"]
    all_of_them = [ops, *(tables[category] for category in RUNTIME_CATEGORIES)]
    start, end = spans(all_of_them, base_ns)
    thread = renumbered(all_of_them, "tid", threads)
    name = renumbered(all_of_them, "name", names)
    kind = np.where(np.arange(len(start)) < len(ops), OP, RUNTIME).astype(np.int64)
    table = Interned([NO_SIGNATURE])
    signature = np.zeros(len(start), np.int64)
    signature[: len(ops)] = table.whole(ops.numbered("signature"))
    by = nest.order(thread, start, end)
    start, end, thread = start[by], end[by], thread[by]
    depth, parent = nest.depth_and_parent(thread, start, end)

    def pick(field: str) -> Ints:
        chosen: Ints = joined(all_of_them, field)[by]
        return chosen

    columns = Host(
        start, end, thread, name[by], kind[by], pick("sequence"), pick("forward_thread"),
        pick("correlation"), signature[by], parent, depth,
    )  # fmt: skip
    return columns, tuple(_signature(*key.split(b"\0")) for key in table.index)


def _parsed(raw: bytes) -> list[Any]:
    try:
        value = msgspec.json.decode(raw) if raw else []
    except msgspec.DecodeError:
        return []
    return value if isinstance(value, list) else []


def _signature(dims: bytes, types: bytes, strides: bytes, values: bytes) -> Signature:
    def sizes(raw: bytes) -> tuple[tuple[int, ...], ...]:
        return tuple(_ints(item) for item in _parsed(raw))

    def words(raw: bytes) -> tuple[str, ...]:
        return tuple(map(str, _parsed(raw)))

    return Signature(sizes(dims), words(types), sizes(strides), words(values))


def _ints(item: Any) -> tuple[int, ...]:
    """The sizes of one tensor. Those of a tensor list are nested one level deeper and are flattened."""
    if not isinstance(item, list):
        return ()
    flat = [part for entry in item for part in (entry if isinstance(entry, list) else [entry])]
    return tuple(part for part in flat if isinstance(part, int))


def kernels(
    tables: Tables, base_ns: int, names: Interned, host_columns: Host
) -> tuple[Kernels, tuple[LaunchShape, ...]]:
    """All device work as one sorted table, and the distinct launch shapes."""
    all_of_them = [tables[category] for category in DEVICE_CATEGORIES]
    start, end = spans(all_of_them, base_ns)
    by = np.argsort(start, kind="stable")
    name = renumbered(all_of_them, "name", names)
    listed = Names(names.index)
    collective = listed.mask(*COLLECTIVE_PREFIXES)[name]
    kind = np.repeat(DEVICE_KINDS, [len(table) for table in all_of_them])
    kind = np.where((kind == KERNEL) & collective, COMMUNICATION, kind).astype(np.int64)
    launch = last_launches(joined(all_of_them, "correlation"), start, host_columns)
    graph_calls = listed.mask("cudaGraphLaunch", "cuGraphLaunch")
    from_graph = graph_calls[take(host_columns.name, launch)]
    shapes = Interned([(b"", b"", None, None, None)])
    shape = renumbered(all_of_them, "shape", shapes)
    columns = Kernels(
        start[by], end[by], name[by], kind[by], joined(all_of_them, "device")[by],
        joined(all_of_them, "stream")[by], launch[by],
        (from_graph | (joined(all_of_them, "graph_node") > 0))[by], shape[by],
        joined(all_of_them, "copied")[by],
    )  # fmt: skip
    return columns, tuple(_launch_shape(*key) for key in shapes.index)


def _launch_shape(grid: bytes, block: bytes, *rest: Any) -> LaunchShape:
    def three(raw: bytes) -> tuple[int, int, int] | None:
        items = _ints(_parsed(raw))
        return (items[0], items[1], items[2]) if len(items) == 3 else None

    return LaunchShape(three(grid), three(block), *rest)


def marks(tables: Tables, base_ns: int, names: Interned, threads: Interned) -> Marks:
    """Named ranges, sorted by thread and start."""
    table = [tables[MARKS]]
    start, end = spans(table, base_ns)
    thread = renumbered(table, "tid", threads)
    by = nest.order(thread, start, end)
    return Marks(start[by], end[by], thread[by], renumbered(table, "name", names)[by])


def memory(tables: Tables, base_ns: int, threads: Interned) -> Memory:
    """Allocations and frees in order of time, in bytes."""
    table = tables[MEMORY]
    name, names = table.numbered("name")
    rows = np.flatnonzero(name == (names.index("[memory]") if "[memory]" in names else -1))
    start = spans([table], base_ns)[0][rows]
    by = np.argsort(start, kind="stable")
    number, values = table.numbered("tid")
    thread = threads.numbers((number[rows], values))

    def read(field: str) -> Ints:
        chosen: Ints = table.column(field)[rows][by]
        return chosen

    return Memory(
        start[by], thread[by], read("allocated"), read("address"), read("device_type") > 0,
        read("device_id"), read("total"),
    )  # fmt: skip


def forward_threads(tables: Tables, base_ns: int, host_columns: Host, threads: Interned) -> dict[int, int]:
    """torch's thread numbers -> threads, from the trace's arrows between forward and backward ops."""
    starts, ends = tables[f"{ARROWS}:s"], tables[f"{ARROWS}:f"]
    nodes = np.flatnonzero(host_columns.forward_thread > 0)
    if not len(starts) or not len(ends) or not len(nodes):
        return {}
    begun, ended = starts.column("id"), ends.column("id")
    by = np.argsort(begun, kind="stable")
    at = np.searchsorted(begun[by], ended, "right") - 1  # of several arrows with one number the last one
    known = begun[by[at]] == ended
    origin = renumbered([starts], "tid", threads)[by[at[known]]]
    time = spans([ends], base_ns)[0][known]
    nodes = nodes[np.argsort(host_columns.start_ns[nodes], kind="stable")]
    at = np.minimum(np.searchsorted(host_columns.start_ns[nodes], time), len(nodes) - 1)
    met = host_columns.start_ns[nodes][at] == time
    numbers, number = np.unique(host_columns.forward_thread[nodes][at][met], return_inverse=True)
    count = len(threads.index)
    pairs, counts = np.unique(number * count + origin[met], return_counts=True)
    best: dict[int, int] = {}
    for pair in pairs[np.argsort(counts, kind="stable")].tolist():
        best[int(numbers[pair // count])] = pair % count
    return best
