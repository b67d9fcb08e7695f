"""Exports of Nsight Systems (``nsys export --type sqlite``) -> events as Kineto writes them.

The tables are those of NVIDIA's "SQLite Export Schema Reference". An export has only tables with rows, and
versions differ in their columns, so a missing table or column counts as empty. Only tables are read (a view
in a stranger's file could run forever), and the file is opened read-only.

NVTX ranges of PyTorch (``nsys profile --pytorch=autograd-nvtx``, ``emit_nvtx``) become operators, other
ranges become marks. Lines come from ``warpline profile --nvtx`` under nsys, which names each range by its
line, else from Python frames in the backtraces of CUDA calls.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpline.model.problem import Problem
from warpline.trace.exported import Event, Export
from warpline.trace.nsysrows import LINE, Database, device_facts

MAGIC = b"SQLite format 3\x00"
ENDINGS = (".sqlite", ".sqlite3", ".db")
CONVERT = dict.fromkeys(
    (".nsys-rep", ".qdrep", ".qdstrm"),
    "{path} is a report of Nsight Systems: convert it with `nsys export --type sqlite {path}`",
)
_STEP = re.compile(
    r"(?:ProfilerStep#|(?:train(?:ing)?[ _])?(?:step|iter(?:ation)?|batch)[ _#:=]*)\d*$", re.IGNORECASE
)
_OP = re.compile(r"(?P<name>[\w:<>~.]+), (?:seq = (?P<seq>\d+)|op_id = \d+)(?P<rest>.*)$", re.DOTALL)
_SIZES = re.compile(r"sizes = (\[.*\])")
_VERSION = re.compile(r"_v\d+(?:_ptsz|_ptds)?$")
#: Values of ``CUpti_ActivityMemcpyKind``, with Kineto's names.
_COPIES = {
    1: "HtoD",
    2: "DtoH",
    3: "HtoA",
    4: "AtoH",
    5: "AtoA",
    6: "AtoD",
    7: "DtoA",
    8: "DtoD",
    9: "HtoH",
    10: "PtoP",
}


@dataclass
class Found(Export):
    """An export while it is read."""

    step_name: str = ""
    processes: int = 0
    by_frames: bool = False  # lines come from backtraces


def is_export(path: Path) -> bool:
    """Whether ``path`` is a SQLite file at all."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read(path: Path) -> Export:
    """Read the export in ``path``. Raises Problem if the file is not an export, or is damaged."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.execute("PRAGMA trusted_schema = OFF")
            found = _read(Database(connection))
    except (sqlite3.Error, OverflowError) as error:
        raise Problem(f"{path} cannot be read as an nsys export: {error}") from None
    if not found.events:
        raise Problem(
            f"{path} has no CUDA activity: export a report made with `nsys profile --trace=cuda,nvtx`"
        )
    found.notes = _notes(found)
    return found


def _notes(export: Found) -> list[str]:
    """Notes for the report about its origin."""
    found = []
    if not export.lines:
        found.append(
            "the export has no Python lines: record them with `nsys profile --trace=cuda,nvtx "
            "warpline profile --nvtx`"
        )
    elif export.by_frames:
        found.append(
            "lines come from the Python backtraces of CUDA calls: code without CUDA calls has no line"
        )
    else:
        found.append("lines come from the NVTX ranges of `warpline profile --nvtx`")
    if export.steps:
        found.append(f"steps are the NVTX ranges called {export.step_name.strip(' _#:=')}")
    else:
        found.append("no NVTX range marks a step: the whole export counts as one step")
    if export.processes > 1:
        found.append(f"the export has {export.processes} processes: their times are added up")
    found.append("host times include the overhead of tracing")
    return found


def _read(database: Database) -> Found:
    found = Found()
    (start,) = next(database.rows("TARGET_INFO_SESSION_START_TIME", "utcEpochNs"), (0,))
    found.base_ns = start or 0
    kinds = ("KERNEL", "MEMCPY", "MEMSET", "RUNTIME")
    if not any(database.has(f"CUPTI_ACTIVITY_KIND_{kind}") for kind in kinds):
        return found
    found.devices = device_facts(database)
    processes: set[int] = set()
    found.events += _runtime(database, found)
    for event in (*_kernels(database), *_copies(database), *_sets(database)):
        processes.add(event["args"].pop("process"))
        found.events.append(event)
    found.processes = len(processes)
    _ranges(database, found)
    found.lines.sort()
    return found


def _event(category: str, name: str, span: tuple[int, int], where: tuple[int, int], args: Event) -> Event:
    """An event as in a Chrome trace, with times in microseconds; three decimals are nanoseconds."""
    start, end = span
    return {
        "ph": "X", "cat": category, "name": name, "pid": where[0], "tid": where[1],
        "ts": start / 1000, "dur": max(0, end - start) / 1000, "args": args,
    }  # fmt: skip


def _correlation(process: int | None, number: int | None) -> int:
    """A number that identifies a call across processes; -1 if it has none."""
    return -1 if number is None else ((process or 0) >> 24 & 0xFFFFFF) << 32 | (number & 0xFFFFFFFF)


def _runtime(database: Database, export: Found) -> Iterator[Event]:
    frames = database.frames()
    columns = ("start", "end", "globalTid", "correlationId", "nameId", "callchainId")
    for start, end, thread, number, name, chain in database.rows("CUPTI_ACTIVITY_KIND_RUNTIME", *columns):
        called = _VERSION.sub("", database.text(name))
        category = (
            "cuda_driver" if called.startswith("cu") and not called.startswith("cuda") else "cuda_runtime"
        )
        tid, pid = (thread or 0) & 0xFFFFFF, (thread or 0) >> 24 & 0xFFFFFF
        yield _event(
            category, called, (start, end), (pid, tid), {"correlation": _correlation(thread, number)}
        )
        if chain in frames:
            export.by_frames = True
            export.lines.append((start + export.base_ns, tid, frames[chain]))


def _on_device(row: dict[str, Any]) -> Event:
    return {
        "device": row["deviceId"] or 0,
        "stream": row["streamId"] or 0,
        "correlation": _correlation(row["globalPid"], row["correlationId"]),
        "graph node id": row["graphNodeId"] or 0,
        "process": row["globalPid"] or 0,
    }


_WHERE = ("start", "end", "deviceId", "streamId", "globalPid", "correlationId", "graphNodeId")
_SHAPE = (
    "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread", "staticSharedMemory",
    "dynamicSharedMemory",
)  # fmt: skip


def _kernels(database: Database) -> Iterator[Event]:
    for row in database.dicts("CUPTI_ACTIVITY_KIND_KERNEL", *_WHERE, *_SHAPE, "demangledName", "shortName"):
        args = _on_device(row)
        args["grid"] = [row[f"grid{axis}"] or 1 for axis in "XYZ"]
        args["block"] = [row[f"block{axis}"] or 1 for axis in "XYZ"]
        args["registers per thread"] = row["registersPerThread"]
        args["shared memory"] = (row["staticSharedMemory"] or 0) + (row["dynamicSharedMemory"] or 0)
        name = database.text(row["demangledName"] if row["demangledName"] is not None else row["shortName"])
        yield _event("kernel", name, (row["start"], row["end"]), (args["device"], args["stream"]), args)


def _copies(database: Database) -> Iterator[Event]:
    kinds = database.labels("ENUM_CUDA_MEM_KIND")
    for row in database.dicts(
        "CUPTI_ACTIVITY_KIND_MEMCPY", *_WHERE, "bytes", "copyKind", "srcKind", "dstKind"
    ):
        args = {**_on_device(row), "bytes": row["bytes"] or 0}
        ends = " -> ".join(kinds.get(row[end], "Unknown") for end in ("srcKind", "dstKind"))
        name = f"Memcpy {_COPIES.get(row['copyKind'], 'Unknown')} ({ends})"
        yield _event("gpu_memcpy", name, (row["start"], row["end"]), (args["device"], args["stream"]), args)


def _sets(database: Database) -> Iterator[Event]:
    for row in database.dicts("CUPTI_ACTIVITY_KIND_MEMSET", *_WHERE, "bytes"):
        args = {**_on_device(row), "bytes": row["bytes"] or 0}
        where = (args["device"], args["stream"])
        yield _event("gpu_memset", "Memset (Device)", (row["start"], row["end"]), where, args)


def _ranges(database: Database, export: Found) -> None:
    steps: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for start, end, thread, name in database.ranges():
        tid, pid = thread & 0xFFFFFF, thread >> 24 & 0xFFFFFF
        line, op = LINE.match(name), _OP.match(name)
        if line is not None:
            frame = f"{line['file']}({line['line']}): {line['function']}"
            export.lines += [(start + export.base_ns, tid, frame), (end + export.base_ns, tid, "")]
        elif op is not None:
            args: Event = {"Sequence number": int(op["seq"])} if op["seq"] else {}
            sizes = _SIZES.search(op["rest"])
            if sizes is not None:
                args["Input Dims"] = database.sizes(sizes[1])
            export.events.append(_event("cpu_op", op["name"], (start, end), (pid, tid), args))
        else:
            if _STEP.match(name):
                key = tid, re.sub(r"\d+$", "", name)
                steps.setdefault(key, []).append((start + export.base_ns, end + export.base_ns))
            export.events.append(_event("user_annotation", name, (start, end), (pid, tid), {}))
    if steps:  # if several names look like steps: those that cover the most time
        (_, export.step_name), spans = max(
            steps.items(), key=lambda item: sum(end - start for start, end in item[1])
        )
        export.steps = _apart(sorted(spans))


def _apart(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans that begin after the previous one has ended."""
    kept: list[tuple[int, int]] = []
    for start, end in spans:
        if end > start and (not kept or start >= kept[-1][1]):
            kept.append((start, end))
    return kept
