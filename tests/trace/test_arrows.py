"""torch's numbers of threads, from the arrows between forward and backward operators."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from warpline.trace import foreign

BIG = 1 << 70


def read(folder: Path, number: Any) -> dict[int, int]:
    """Thread 11 makes a node on torch's thread 1, and thread 12 one on its thread 2; their backward operators
    run on thread 13. ``number``: what each arrow has as its number."""

    def op(name: str, thread: int, at: int, forward: int = 0) -> dict[str, Any]:
        return {
            "ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": thread, "ts": at, "dur": 5,
            "args": {"Sequence number": at % 100, "Fwd thread id": forward},
        }  # fmt: skip

    def arrow(phase: str, which: int, thread: int, at: int) -> dict[str, Any]:
        return {
            "ph": phase, "cat": "fwdbwd", "name": "fwdbwd", "id": number(which), "pid": 1, "tid": thread,
            "ts": at,
        }  # fmt: skip

    events = [
        op("aten::mul", 11, 10), op("aten::mul", 12, 20),
        op("MulBackward0", 13, 110, 1), op("MulBackward0", 13, 120, 2),
        arrow("s", 1, 11, 10), arrow("f", 1, 13, 110), arrow("s", 2, 12, 20), arrow("f", 2, 13, 120),
        arrow("f", 3, 13, 120), arrow("s", 0, 11, 10),
    ]  # fmt: skip
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    found = foreign.read(path, 1)
    return {torch: found.threads[index] for torch, index in found.forward_threads.items()}


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(lambda which: which, id="numbers"),
        pytest.param(lambda which: f"0x{which:x}", id="text"),
        pytest.param(lambda which: BIG + which, id="too large for a column"),
        pytest.param(lambda which: which if which != 1 else "one", id="mixed"),
    ],
)
def test_each_thread_is_found_whatever_the_numbers_are(tmp_path: Path, number: Any) -> None:
    assert read(tmp_path, number) == {1: 11, 2: 12}


def test_of_several_arrows_with_one_number_the_last_one_counts(tmp_path: Path) -> None:
    assert read(tmp_path, lambda which: min(which, 1)) == {1: 12, 2: 12}
