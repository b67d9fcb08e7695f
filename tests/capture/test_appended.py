"""The trace of a later recording behind that of an earlier one."""

from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import Any

import pytest

from warpline.capture.runner.windows import appended

HEAD = '{{\n  "schemaVersion": 1,\n{base}  "traceEvents": [\n'
BASE = '  "baseTimeNanoseconds": {base},\n'
LOGGED = '\n  ],\n  "WARNING": ["a [b]", "c"],\n  "traceName": "/a/trace.json"\n}'
#: Older versions of torch's Kineto, as of 2024.
OLDER = '\n  ],\n  "traceName": "/a/trace.json",\n  "displayTimeUnit": "ms",\n  "baseTimeNanoseconds": 7\n}'
TAIL = '\n  ],\n  "traceName": "/a [b]/trace.json"\n}'


def trace(path: Path, times: list[str], base: int = 7, tail: str = TAIL) -> str:
    events = ["  {\n    " + f'"name": "a \\"ts\\": 5", "ts": {at}, "dur": 2.5' + "\n  }" for at in times]
    head = HEAD.format(base="" if "baseTime" in tail else BASE.format(base=base))
    path.write_text(head + ",\n".join(events) + tail)
    return str(path)


@pytest.mark.parametrize("tail", [TAIL, "\n]}", LOGGED, OLDER])
@pytest.mark.parametrize("piece", [16, 1 << 22])
def test_events_follow_with_their_times_moved(
    piece: int, tail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appended, "_PIECE", piece)
    first = trace(tmp_path / "trace.json", ["1000.001", "1001.500"], tail=tail)
    later = trace(tmp_path / "more", ["9000.250", "9001"] * 20, tail=tail)
    size = Path(later).stat().st_size
    assert appended.append(first, later, 7000, 1) == size
    found: dict[str, Any] = json.loads(Path(first).read_text())
    assert [one["ts"] for one in found["traceEvents"]] == [1000.001, 1001.5, *[2000.25, 2001] * 20]
    assert {one["name"] for one in found["traceEvents"]} == {'a "ts": 5'}
    assert {one["dur"] for one in found["traceEvents"]} == {2.5}
    assert not Path(later).exists()


@pytest.mark.parametrize(("base", "tail"), [(8, TAIL), (7, ""), (7, "\n  ],"), (7, OLDER.replace("7", "8"))])
def test_what_torch_does_not_write_is_an_error(base: int, tail: str, tmp_path: Path) -> None:
    """A full disk cuts a trace."""
    first, later = trace(tmp_path / "trace.json", ["1.0"]), trace(tmp_path / "more", ["2.0"], base, tail)
    before = Path(first).read_text()
    with pytest.raises(OSError, match=r"torch.s traces|no end"):
        appended.append(first, later, 1, 1)
    assert Path(first).read_text() == before
    assert not Path(later).exists()


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    first = trace(tmp_path / "trace.json", ["1.0"] * 50)
    later = trace(tmp_path / "more", ["2.0"] * 5000)
    before = Path(first).read_text()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20_000, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            appended.append(first, later, 1, 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert Path(first).read_text() == before
    assert not Path(later).exists()


def test_arrows_of_two_recordings_are_not_the_same(tmp_path: Path) -> None:
    """torch numbers those of each from 1."""
    paths = [str(tmp_path / name) for name in ("trace.json", "more", "third")]
    for path in paths:
        events = [{"ph": phase, "id": 1, "ts": 5.0, "name": f"{Path(path).name}"} for phase in "sf"]
        Path(path).write_text(json.dumps({"traceEvents": events}))
    for part, path in enumerate(paths[1:], 1):
        appended.append(paths[0], path, 0, part)
    found = json.loads(Path(paths[0]).read_text())["traceEvents"]
    numbers = {(one["name"], one["id"]) for one in found}
    assert len(numbers) == len({number for _, number in numbers}) == 3
