"""Serializes tables of events, to send them from the process that decoded them to its parent."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from warpline.trace.decode import Chrome
from warpline.trace.events import Column, Interned, Table, Tables


class _Table(msgspec.Struct, array_like=True):
    category: str
    length: int
    columns: dict[str, tuple[str, bytes]]  # type and numbers
    values: dict[str, list[Any]]  # by the columns that number them


class _Tables(msgspec.Struct, array_like=True):
    tables: list[_Table]
    left_out: int
    processes: list[Any]
    chrome: Chrome | None


def sent(tables: Tables, chrome: Chrome | None) -> bytes:
    """``tables`` as bytes. ``chrome``: the rest of the file, from the process that read its end."""
    found = [
        _Table(
            name,
            len(table),
            {
                field: _packed(column.whole(), field in table.values)
                for field, column in table.columns.items()
            },
            {field: list(values.index) for field, values in table.values.items()},
        )
        for name, table in tables.of.items()
    ]
    return msgspec.msgpack.encode(_Tables(found, tables.left_out, tables.processes, chrome))


def _packed(column: Any, numbered: bool) -> tuple[str, bytes]:
    """Type and bytes of a column. Numbers of values are small, so half the bytes are enough for them."""
    column = column.astype(np.int32) if numbered else column
    return column.dtype.str, column.tobytes()


def received(data: bytes) -> tuple[Tables, Chrome | None]:
    """The inverse of :func:`sent`."""
    found = msgspec.msgpack.decode(data, type=_Tables)
    tables = Tables()
    tables.left_out, tables.processes = found.left_out, found.processes
    for one in found.tables:
        table = tables.of.setdefault(one.category, Table(one.category))
        table.length = one.length
        for field, (kind, numbers) in one.columns.items():
            column = Column(np.dtype(kind).type)
            column.pieces.append(np.frombuffer(numbers, kind))
            table.columns[field] = column
        for field, values in one.values.items():
            # Tuples arrive as lists.
            table.values[field] = Interned(tuple(one) if isinstance(one, list) else one for one in values)
    return tables, found.chrome
