"""Typed events -> linked columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
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
)
from warpline.trace.decode import Chrome, Event

RUNTIME_CATEGORIES = frozenset({"cuda_runtime", "cuda_driver", "privateuse1_runtime", "xpu_runtime"})
DEVICE_CATEGORIES = {"kernel": KERNEL, "gpu_memcpy": COPY, "gpu_memset": SET}
COLLECTIVE_PREFIXES = ("nccl", "rccl", "ncclDevKernel", "ncclKernel")
#: Ops whose cost depends on scalar arguments, so these belong to the signature.
OPS_WITH_VALUES = ("aten::convolution", "aten::_convolution", "aten::conv", "aten::_scaled_dot_product")


class Interned:
    """Values numbered in the order in which they were first met."""

    def __init__(self, first: Iterable[Any] = ()) -> None:
        self.index: dict[Any, int] = {value: at for at, value in enumerate(first)}

    def all(self, values: Sequence[Any]) -> Ints:
        for value in dict.fromkeys(values):
            self.index.setdefault(value, len(self.index))
        return np.fromiter(map(self.index.__getitem__, values), np.int64, len(values))


def column(events: Sequence[Any], field: str, kind: Any = np.int64) -> Any:
    return np.fromiter(map(attrgetter(field), events), kind, len(events))


def spans(events: Sequence[Event], base_ns: int) -> tuple[Ints, Ints]:
    """Start and end in ns of unix time; the trace has microseconds with three decimals."""
    start = np.rint(column(events, "ts", np.float64) * 1000).astype(np.int64) + base_ns
    return start, start + np.rint(column(events, "dur", np.float64) * 1000).astype(np.int64)


def by_category(chrome: Chrome) -> dict[str, list[Event]]:
    """Events of each category; complete spans, memory instants and flow arrows only."""
    categories, phases = Interned(), Interned()
    category = categories.all(list(map(attrgetter("cat"), chrome.events)))
    phase = phases.all(list(map(attrgetter("ph"), chrome.events)))
    key = category * len(phases.index) + phase
    rows = np.argsort(key, kind="stable")
    key = key[rows]
    out: dict[str, list[Event]] = {}
    for name, at in categories.index.items():
        for letter, of_letter in phases.index.items():
            if letter == "X" or name in ("cpu_instant_event", "fwdbwd"):
                wanted = at * len(phases.index) + of_letter
                low, high = np.searchsorted(key, [wanted, wanted + 1]).tolist()
                group = f"{name}:{letter}" if name == "fwdbwd" else name
                chosen = map(chrome.events.__getitem__, rows[low:high].tolist())
                out.setdefault(group, []).extend(chosen)
    return out


def host(
    ops: list[Event], calls: list[Event], base_ns: int, names: Interned, threads: Interned
) -> tuple[Host, tuple[Signature, ...]]:
    events = ops + calls
    arguments = list(map(attrgetter("args"), events))
    start, end = spans(events, base_ns)
    thread = threads.all(column(events, "tid", object).tolist())
    name = names.all(list(map(attrgetter("name"), events)))
    signature, signatures = _signatures(arguments, name, names)
    by = nest.order(thread, start, end)
    kind = np.concatenate([np.full(len(ops), OP), np.full(len(calls), RUNTIME)]).astype(np.int64)
    start, end, thread = start[by], end[by], thread[by]
    depth, parent = nest.depth_and_parent(thread, start, end)

    def pick(field: str) -> Ints:
        chosen: Ints = column(arguments, field)[by]
        return chosen

    columns = Host(
        start, end, thread, name[by], kind[by], pick("sequence"), pick("forward_thread"),
        pick("correlation"), signature[by], parent, depth,
    )  # fmt: skip
    return columns, signatures


def _signatures(arguments: list[Any], name: Ints, names: Interned) -> tuple[Ints, tuple[Signature, ...]]:
    def raw(field: str) -> list[bytes]:
        return list(map(bytes, map(attrgetter(field), arguments)))

    listed = list(names.index)
    matters = np.array([text.startswith(OPS_WITH_VALUES) for text in listed] or [False])[name]
    values = raw("values") if matters.any() else []
    shown = [values[at] if keep else b"" for at, keep in enumerate(matters.tolist())] if values else None
    empty = (b"", b"", b"", b"")
    keys = list(zip(raw("dims"), raw("types"), raw("strides"), shown or [b""] * len(arguments), strict=True))
    table = Interned([empty])
    return table.all(keys), tuple(_signature(*key) for key in table.index)


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
    """One tensor's sizes; a tensor list's are written one level deeper and come out flat."""
    if not isinstance(item, list):
        return ()
    flat = [part for entry in item for part in (entry if isinstance(entry, list) else [entry])]
    return tuple(part for part in flat if isinstance(part, int))


def kernels(
    groups: dict[str, list[Event]], base_ns: int, names: Interned, host_columns: Host
) -> tuple[Kernels, tuple[LaunchShape, ...]]:
    events = [event for category in DEVICE_CATEGORIES for event in groups.get(category, ())]
    arguments = list(map(attrgetter("args"), events))
    start, end = spans(events, base_ns)
    by = np.argsort(start, kind="stable")
    name = names.all(list(map(attrgetter("name"), events)))
    listed = list(names.index)
    collective = np.array([text.startswith(COLLECTIVE_PREFIXES) for text in listed] or [False])[name]
    kind = np.repeat(
        list(DEVICE_CATEGORIES.values()), [len(groups.get(category, ())) for category in DEVICE_CATEGORIES]
    )
    kind = np.where((kind == KERNEL) & collective, COMMUNICATION, kind).astype(np.int64)
    launch = _launches(column(arguments, "correlation"), host_columns)
    graph_calls = np.array(
        [text.startswith(("cudaGraphLaunch", "cuGraphLaunch")) for text in listed] or [False]
    )
    from_graph = (launch >= 0) & graph_calls[host_columns.name[launch]] if len(host_columns) else launch >= 0
    shape, shapes = _launch_shapes(arguments)
    columns = Kernels(
        start[by], end[by], name[by], kind[by], column(arguments, "device")[by],
        column(arguments, "stream")[by], launch[by],
        (from_graph | (column(arguments, "graph_node") > 0))[by], shape[by],
        column(arguments, "copied")[by],
    )  # fmt: skip
    return columns, shapes


def _launches(correlation: Ints, host_columns: Host) -> Ints:
    calls = np.flatnonzero((host_columns.kind == RUNTIME) & (host_columns.correlation >= 0))
    calls = calls[np.argsort(host_columns.correlation[calls], kind="stable")]
    if not len(calls):
        return np.full(len(correlation), -1, np.int64)
    known = host_columns.correlation[calls]
    at = np.minimum(np.searchsorted(known, correlation), len(calls) - 1)
    return np.where(known[at] == correlation, calls[at], -1)


def _launch_shapes(arguments: list[Any]) -> tuple[Ints, tuple[LaunchShape, ...]]:
    fields = ("registers", "shared", "occupancy")
    keys = list(
        zip(
            map(bytes, map(attrgetter("grid"), arguments)),
            map(bytes, map(attrgetter("block"), arguments)),
            *(map(attrgetter(field), arguments) for field in fields),
            strict=True,
        )
    )
    table = Interned([(b"", b"", None, None, None)])
    index = table.all(keys)

    def three(raw: bytes) -> tuple[int, int, int] | None:
        items = _ints(_parsed(raw))
        return (items[0], items[1], items[2]) if len(items) == 3 else None

    return index, tuple(LaunchShape(three(grid), three(block), *rest) for grid, block, *rest in table.index)


def marks(events: list[Event], base_ns: int, names: Interned, threads: Interned) -> Marks:
    start, end = spans(events, base_ns)
    thread = threads.all(column(events, "tid", object).tolist())
    by = nest.order(thread, start, end)
    return Marks(start[by], end[by], thread[by], names.all(list(map(attrgetter("name"), events)))[by])


def memory(events: list[Event], base_ns: int, threads: Interned) -> Memory:
    events = [event for event in events if event.name == "[memory]"]
    arguments = list(map(attrgetter("args"), events))
    start, _ = spans(events, base_ns)
    by = np.argsort(start, kind="stable")
    thread = threads.all(column(events, "tid", object).tolist())
    read: Callable[[str], Ints] = lambda field: column(arguments, field)[by]  # noqa: E731
    return Memory(
        start[by], thread[by], read("allocated"), read("address"), read("device_type") > 0,
        read("device_id"), read("total"),
    )  # fmt: skip


def forward_threads(
    groups: dict[str, list[Event]], base_ns: int, host_columns: Host, threads: Interned
) -> dict[int, int]:
    """torch's own thread numbers -> threads, by the arrows it draws from forward to backward ops."""
    starts, ends = groups.get("fwdbwd:s", []), groups.get("fwdbwd:f", [])
    nodes = np.flatnonzero(host_columns.forward_thread > 0)
    if not starts or not ends or not len(nodes):
        return {}
    known = dict(zip(map(attrgetter("id"), starts), map(attrgetter("tid"), starts), strict=True))
    ends = [event for event in ends if event.id in known]
    time, _ = spans(ends, base_ns)
    origin = threads.all([known[event.id] for event in ends])
    nodes = nodes[np.argsort(host_columns.start_ns[nodes], kind="stable")]
    at = np.minimum(np.searchsorted(host_columns.start_ns[nodes], time), len(nodes) - 1)
    met = host_columns.start_ns[nodes][at] == time
    pairs, counts = np.unique(
        np.stack([host_columns.forward_thread[nodes][at][met], origin[met]]), axis=1, return_counts=True
    )
    best: dict[int, int] = {}
    for column_at in np.argsort(counts, kind="stable").tolist():
        best[int(pairs[0, column_at])] = int(pairs[1, column_at])
    return best
