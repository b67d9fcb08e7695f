"""What is read of a trace while it grows comes out as from the whole one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.trace.test_pieces import same
from tests.trace.test_ranges import Here
from warpline import trace
from warpline.capture.runner.windows.appended import append, events_end
from warpline.trace import ahead as module
from warpline.trace import ranges
from warpline.trace.ahead import Ahead
from warpline.trace.scan import EVENT_ENDS

PARTS = 4
BETWEEN = b"\n  },\n"


@pytest.fixture(scope="module")
def run(recorded: Callable[[str], Path]) -> Path:
    return recorded("bert_inference")


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ahead]:
    monkeypatch.setattr(module, "Reader", Here)
    monkeypatch.setattr(module, "cores", lambda: 2)
    with Ahead() as found:
        yield found


def recordings(data: bytes) -> list[bytes]:
    """The trace as several ones that follow each other."""
    begin = data.index(b"[", data.index(b'"traceEvents"')) + 1
    end = data.rindex(b"]")
    cuts = [data.index(BETWEEN, begin + (end - begin) * at // PARTS) + 4 for at in range(1, PARTS)]
    begins, ends = [begin, *(cut + 1 for cut in cuts)], [*cuts, end]
    return [data[:begin] + data[since:until] + data[end:] for since, until in zip(begins, ends, strict=True)]


def grown(run: Path, folder: Path) -> tuple[Path, list[bytes]]:
    """A copy of the run without its trace, and the recordings of that."""
    parts = recordings((run / "trace.json").read_bytes())
    copy = folder / "run"
    shutil.copytree(run, copy)
    (copy / "trace.json").unlink()
    return copy, parts


def written(path: Path, part: bytes, at: int) -> None:
    if not at:
        path.write_bytes(part)
        return
    more = path.with_suffix(".more")
    more.write_bytes(part)
    append(str(path), str(more), 0, 0)


def test_a_trace_that_grows(run: Path, tmp_path: Path, ahead: Ahead) -> None:
    copy, parts = grown(run, tmp_path)
    path = copy / "trace.json"
    for at, part in enumerate(parts):
        ahead.heard(path, events_end(str(path)) if at else 0)
        written(path, part, at)
    assert len(EVENT_ENDS.findall(path.read_bytes())) > 100
    found = ahead.tables(path)
    assert found is not None, "it was read ahead"
    expected = trace.read(copy, 1)

    class Known(Ahead):
        def tables(self, _: Path) -> object:  # type: ignore[override]
            return found

    assert same(trace.read(copy, ahead=Known()), expected)


def test_the_last_recording_was_lost(run: Path, tmp_path: Path, ahead: Ahead) -> None:
    copy, parts = grown(run, tmp_path)
    path = copy / "trace.json"
    for at, part in enumerate(parts[:2]):
        ahead.heard(path, events_end(str(path)) if at else 0)
        written(path, part, at)
    ahead.heard(path, events_end(str(path)))
    assert ahead.tables(path) is not None
    assert same(trace.read(copy, ahead=ahead), trace.read(copy, 1))


def test_a_capture_that_begins_again(run: Path, tmp_path: Path, ahead: Ahead) -> None:
    """What was read of the first one does not count."""
    copy, parts = grown(run, tmp_path)
    path = copy / "trace.json"
    for at, part in enumerate((parts[3], parts[2])):
        ahead.heard(path, events_end(str(path)) if at else 0)
        written(path, part, at)
    for at, part in enumerate(parts):
        ahead.heard(path, events_end(str(path)) if at else 0)
        if ahead._last is not None:
            ahead._last.result()
        written(path, part, at)
    assert same(trace.read(copy, ahead=ahead), trace.read(copy, 1))


def test_another_trace_in_its_place_is_read_as_a_whole(run: Path, tmp_path: Path, ahead: Ahead) -> None:
    copy, parts = grown(run, tmp_path)
    path = copy / "trace.json"
    for at, part in enumerate(parts[:2]):
        ahead.heard(path, events_end(str(path)) if at else 0)
        written(path, part, at)
    ahead.heard(path, events_end(str(path)))
    assert ahead._last is not None
    ahead._last.result()
    path.write_bytes(b'{"other": 1,' + b"".join(recordings((run / "trace.json").read_bytes())[:1])[1:])
    assert ahead.tables(path) is None
    assert len(trace.read(copy, ahead=ahead).host) > 10


def test_a_malformed_event_is_left_to_the_whole_reading(run: Path, tmp_path: Path, ahead: Ahead) -> None:
    copy, parts = grown(run, tmp_path)
    path = copy / "trace.json"
    half = parts[1].index(BETWEEN, len(parts[1]) // 2) + 6
    parts[1] = parts[1][:half] + b'  {\n    "ph": "X", "ts": "never"\n  },\n' + parts[1][half:]
    for at, part in enumerate(parts):
        ahead.heard(path, events_end(str(path)) if at else 0)
        written(path, part, at)
    assert ahead.tables(path) is None
    notes = trace.read(copy, ahead=ahead).notes
    assert any("1 malformed event" in note for note in notes)


def test_nothing_was_heard(run: Path, ahead: Ahead) -> None:
    assert ahead.tables(run / "trace.json") is None


def test_one_core_is_the_scripts(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "cores", lambda: 1)
    with Ahead() as one:
        one.heard(run / "trace.json", 0)
        assert one.tables(run / "trace.json") is None


@pytest.mark.process
def test_a_process(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "cores", lambda: 2)
    copy, parts = grown(run, tmp_path)
    path = copy / "trace.json"
    with Ahead() as found:
        for at, part in enumerate(parts):
            found.heard(path, events_end(str(path)) if at else 0)
            written(path, part, at)
        (reader,) = found._readers or [None]
        assert same(trace.read(copy, ahead=found), trace.read(copy, 1))
    assert reader is None or reader.process.poll() is not None
    assert path.stat().st_size < ranges.SMALLEST, "no other process reads so little"
