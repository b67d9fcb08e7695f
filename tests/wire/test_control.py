"""What the server writes to the control file is what the runner reads."""

from __future__ import annotations

import shutil
from pathlib import Path

from warpline.capture.control import path_of, write_control
from warpline.capture.runner.control import read, same_for_all_ranks
from warpline.wire.control import Purpose, Windows
from warpline.wire.run import Request


def test_the_runner_reads_what_was_written(tmp_path: Path) -> None:
    request = Request(
        target="/a/train.py",
        argv=("--lr", "1"),
        launcher=("torchrun",),
        environment={"A": "b"},
        include=("/c",),
    )
    written = write_control(
        request,
        tmp_path,
        Purpose.TIME,
        windows=Windows(timed=7, sliced=True, whole_ns=(5, 6)),
        seed=3,
        overlay={"/a/train.py": "pass\n"},
        notes=("said",),
        turn="/turn",
        turn_s=2.5,
    )
    try:
        assert read(str(path_of(written))) == written
    finally:
        shutil.rmtree(Path(written.pipe).parent)


def test_ranks_have_windows_of_one_length() -> None:
    assert same_for_all_ranks(Windows()) == Windows(warmup=10, timed=20, sampled=20)
    assert same_for_all_ranks(Windows(warmup=0, timed=3)) == Windows(warmup=0, timed=3, sampled=20)
