"""Traces of other ranks that cannot be read: the run is reported without them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kineto import KinetoRun
from warpline.trace.peers import peers
from warpline.wire.run import TRACE

BASE = b'"baseTimeNanoseconds": '


def odd_base(text: bytes) -> bytes:
    """Nanoseconds that no column holds."""
    return text.replace(BASE, BASE + b"9" * 40)


def odd_time(text: bytes) -> bytes:
    return text.replace(b'"ts": ', b'"ts": 1.2.')


@pytest.mark.parametrize("spoil", [lambda _: b"", odd_base, odd_time], ids=["empty", "base", "time"])
def test_a_rank_that_cannot_be_read_leaves_the_others_unknown(
    spoil: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    other = KinetoRun(tmp_path / "ranks" / "1", 1000)
    other.kernel(50, 100, launched=5, name="ncclDevKernel_AllReduce")
    other.write()
    assert len(peers(tmp_path)) == 1
    trace = tmp_path / "ranks" / "1" / TRACE
    spoilt = spoil(trace.read_bytes())
    assert spoilt != trace.read_bytes()
    trace.write_bytes(spoilt)
    assert peers(tmp_path) == ()
