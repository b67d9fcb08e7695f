"""A large trace is read in pieces; what comes out does not depend on where they end."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from warpline import trace
from warpline.trace import decode
from warpline.trace.columns import Trace
from warpline.trace.decode import Event
from warpline.trace.events import Tables

TABLES = ("host", "kernels", "marks", "memory", "records")
REST = ("names", "signatures", "launch_shapes", "threads", "main", "forward_threads", "window_ns", "notes")


def same(one: Trace, other: Trace) -> bool:
    for table in TABLES:
        ours, theirs = getattr(one, table), getattr(other, table)
        for field in dataclasses.fields(ours):
            if not np.array_equal(getattr(ours, field.name), getattr(theirs, field.name)):
                return False
    return all(getattr(one, field) == getattr(other, field) for field in REST)


@pytest.fixture(scope="module")
def run(recorded: Callable[[str], Path]) -> Path:
    return recorded("bert_inference")


@pytest.fixture(scope="module")
def whole(run: Path) -> Trace:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode, "PIECE", 1 << 30)
        return trace.read(run)


def with_trace(run: Path, data: bytes, folder: Path) -> Path:
    shutil.copytree(run, folder / "run")
    (folder / "run" / "trace.json").write_bytes(data)
    return folder / "run"


@pytest.mark.parametrize("size", [1500, 4001, 100_000])
def test_pieces_of_any_size(run: Path, whole: Trace, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    original = Tables.take

    def take(tables: Tables, events: list[Event]) -> None:
        taken.append(len(events))
        original(tables, events)

    monkeypatch.setattr(decode, "PIECE", size)
    monkeypatch.setattr(Tables, "take", take)
    assert same(trace.read(run), whole)
    assert len(taken) > 5


@pytest.mark.parametrize("indent", [None, 1, 2])
def test_other_layouts(
    run: Path, whole: Trace, indent: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decode, "PIECE", 4001)
    content = json.loads((run / "trace.json").read_bytes())
    assert same(trace.read(with_trace(run, json.dumps(content, indent=indent).encode(), tmp_path)), whole)


def test_a_malformed_event_in_the_middle_costs_only_itself(
    run: Path, whole: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decode, "PIECE", 4001)
    data = (run / "trace.json").read_bytes()
    half = data.index(b"\n  },\n", len(data) // 2) + 6
    bad = b'  {\n    "ph": "X", "ts": "never"\n  },\n'
    found = trace.read(with_trace(run, data[:half] + bad + data[half:], tmp_path))
    assert found.notes == ("1 malformed event of the trace was left out",)
    assert same(dataclasses.replace(found, notes=whole.notes), whole)
