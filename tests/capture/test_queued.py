"""The time that a thread was ready to run and had no processor."""

from __future__ import annotations

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
    waited.thread += 1
    assert waited.stop() is None, "another thread's"
