"""Packed files with ISA-L, and without it where a processor has none: each reads what the other wrote."""

from __future__ import annotations

import gzip
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from warpline import packed

DATA = b'{"ph": "X", "name": "aten::mm"},\n' * 5_000


@pytest.fixture(params=["isal", "zlib"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module as it is where ``isal`` is installed, and where it is not."""
    if request.param == "zlib":
        monkeypatch.setitem(sys.modules, "isal", None)
    spec = importlib.util.find_spec(packed.__name__)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert made._gzip.__name__ == {"isal": "isal.igzip", "zlib": "gzip"}[request.param]
    return made


def test_what_is_written_is_gzip(library: ModuleType, tmp_path: Path) -> None:
    with library.writing(tmp_path / "a.gz") as file:
        file.write(DATA)
    small = (tmp_path / "a.gz").read_bytes()
    assert len(small) < len(DATA) / 10
    assert gzip.decompress(small) == DATA
    assert packed.unpacked(small) == DATA


def test_what_others_wrote_is_read(library: ModuleType) -> None:
    small = gzip.compress(DATA)
    assert library.unpacked(small) == DATA
    stream, found, left = library.inflating(), [], small
    while left and not stream.eof:
        found.append(stream.decompress(left, 1000))
        left = stream.unconsumed_tail
    assert b"".join(found) == DATA


@pytest.mark.parametrize(
    "spoil", [lambda data: data[:-20], lambda data: data[:30] + b"\xff" * 30 + data[60:]]
)
def test_what_is_damaged_raises_one_of_the_errors(library: ModuleType, spoil: object) -> None:
    assert callable(spoil)
    with pytest.raises(library.ERRORS):
        library.unpacked(spoil(gzip.compress(DATA)))
