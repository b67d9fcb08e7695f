"""A TensorBoard log folder: scalars and texts that TensorBoard shows, and a trace for its profiler plugin.

Event files are written here and not by a library: they hold four kinds of message, and the libraries that
write them bring all of TensorFlow or torch. The formats: ``tensorflow/core/util/event.proto``,
``summary.proto``, and records as ``tensorflow/core/lib/io/record_writer.h`` describes them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

from warpline.export.tracks import Event
from warpline.model.problem import Problem
from warpline.model.report import Report
from warpline.trace.columns import Trace
from warpline.view import units
from warpline.view.text import printable

STEP = "ProfilerStep#"
_POLYNOMIAL = 0x82F63B78  # CRC-32C (Castagnoli), reflected
_MASK = 0xA282EAD8
_TOP = 20


def write(folder: Path, report: Report, timed_ns: Iterable[int], created_s: float) -> Path:
    """The event file of a run in ``folder``; its path. Raises Problem."""
    path = folder / f"events.out.tfevents.{int(created_s)}.warpline"
    records = [_event(created_s, 0, file_version="brain.Event:2")]
    for number, length in enumerate(timed_ns):
        records.append(_event(created_s, number, _scalar("warpline/step_ms", length / 1e6)))
    steps = report.steps
    values = {
        "warpline/mean_step_ms": steps.step_ms,
        "warpline/device_busy_percent": steps.device_busy_percent,
        "warpline/unattributed_ms": report.unattributed.step_ms,
    }
    records += [_event(created_s, 0, _scalar(tag, value)) for tag, value in values.items()]
    records += [_event(created_s, 0, _text(tag, said)) for tag, said in _texts(report).items()]
    try:
        path.write_bytes(b"".join(_record(record) for record in records))
    except OSError as error:
        raise Problem(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None
    return path


def steps(trace: Trace, base_ns: int, names: Iterable[str]) -> Iterable[Event]:
    """The captured steps as the plugin looks for them, where the trace does not mark them so already."""
    if any(name.startswith(STEP) for name in names):
        return
    thread = trace.threads[trace.main] if trace.threads else 0
    for number, (start, end) in enumerate(trace.manifest.captured):
        yield {
            "ph": "X", "cat": "user_annotation", "name": f"{STEP}{number}", "pid": thread, "tid": thread,
            "ts": (start - base_ns) / 1000, "dur": (end - start) / 1000, "args": {},
        }  # fmt: skip


def _texts(report: Report) -> dict[str, str]:
    """Markdown, as the text tab shows it."""
    rows = ["| step ms | device ms | line |", "|---|---|---|"]
    for line in report.lines[:_TOP]:
        place = _cell(f"{Path(line.file).name}:{line.line} {line.function}")
        rows.append(
            f"| {units.milliseconds(line.step_ms)} | {units.milliseconds(line.device_ms)} | {place} |"
        )
    found = [
        f"- **{one.rule}** at {_cell(f'{Path(one.file).name}:{one.line}')}: {_cell(one.message)}"
        for one in report.findings
    ]
    return {
        "warpline/lines": "\n".join(rows),
        "warpline/findings": "\n".join(found) or "No findings.",
        "warpline/notes": "\n".join(f"- {_cell(note)}" for note in report.notes) or "No notes.",
    }


def _cell(text: str) -> str:
    return printable(text).replace("|", "\\|").replace("<", "&lt;")


def _event(wall_s: float, step: int, summary: bytes = b"", file_version: str = "") -> bytes:
    made = b"\x09" + struct.pack("<d", wall_s) + b"\x10" + _varint(step)  # wall_time = 1, step = 2
    if file_version:
        return made + _bytes(3, file_version.encode())
    return made + _bytes(5, _bytes(1, summary))  # summary = 5, its value = 1


def _scalar(tag: str, value: float) -> bytes:
    return _bytes(1, tag.encode()) + b"\x15" + struct.pack("<f", value)  # simple_value = 2


def _text(tag: str, said: str) -> bytes:
    """A string tensor of one element, and the plugin that shows it."""
    tensor = (
        b"\x08\x07" + _bytes(2, _bytes(2, b"\x08\x01")) + _bytes(8, said.encode())
    )  # DT_STRING, shape [1]
    return _bytes(1, tag.encode()) + _bytes(9, _bytes(1, _bytes(1, b"text"))) + _bytes(8, tensor)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", _masked(length)) + data + struct.pack("<I", _masked(data))


def _table() -> tuple[int, ...]:
    found = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        found.append(value)
    return tuple(found)


_CRC = _table()


def _masked(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF
