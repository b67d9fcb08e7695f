"""The time that a thread was ready to run and had no processor."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from warpline.capture.runner.windows import queued


@pytest.mark.parametrize(
    ("texts", "nanoseconds"), [((b"5 100 2", b"9 250 3"), 150), ((b"", b""), None), ((b"5 100 2", b""), None)]
)
def test_the_time_without_a_processor_is_the_systems(
    texts: tuple[bytes, bytes], nanoseconds: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queued, "PATH", str(tmp_path / "schedstat"))
    (tmp_path / "schedstat").write_bytes(texts[0])
    waited = queued.Queued()
    (tmp_path / "schedstat").write_bytes(texts[1])
    assert waited.stop() == nanoseconds
    (tmp_path / "schedstat").write_bytes(b"9 999 9")
    assert waited.stop() == nanoseconds, "until the first call"
    waited = queued.Queued()
    waited.boundary()
    (tmp_path / "schedstat").write_bytes(b"9 9999 9")
    assert waited.stop() in (0, None), "what comes after the last step is not in it"
    waited = queued.Queued()
    waited.thread += 1
    assert waited.stop() is None, "another thread's"


def test_of_the_other_threads_the_one_that_waited_longest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queued, "THREADS", str(tmp_path))
    main = threading.get_native_id()

    def tell(waited: dict[int, int]) -> None:
        for thread, nanoseconds in waited.items():
            (tmp_path / str(thread)).mkdir(exist_ok=True)
            (tmp_path / str(thread) / "schedstat").write_text(f"5 {nanoseconds} 2")

    tell({main: 100, main + 1: 50, main + 2: 1000})
    watch = queued.CoreWatch()
    tell({main: 130, main + 1: 90, main + 2: 1010, main + 3: 5000})  # the last one is new
    found = watch.facts()
    assert (found.queued_ns, found.helper_queued_ns) == (30, 40)
    assert found.used_ns is not None and found.window_ns is not None
    assert found.used_ns >= 0
    assert found.window_ns > 0


def test_where_the_system_does_not_say_it_nothing_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queued, "THREADS", str(tmp_path / "none"))
    found = queued.CoreWatch().facts()
    assert (found.queued_ns, found.helper_queued_ns) == (None, None)
