"""Whether there is memory for two."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from warpline.capture import room

MIB = 2**20
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 8 GiB free, and no container."""
    (tmp_path / "meminfo").write_text("MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n")
    monkeypatch.setattr(room, "SYSTEM", tmp_path / "meminfo")
    monkeypatch.setattr(room, "CONTAINER", tmp_path)
    return tmp_path


def holding(monkeypatch: pytest.MonkeyPatch, mib: int) -> None:
    monkeypatch.setattr(room, "held", lambda group: mib * MIB)


@linux
def test_what_a_group_holds_is_its_own_memory() -> None:
    before = room.held(os.getpgid(0))
    block = bytearray(os.urandom(MIB)) * 200
    assert room.held(os.getpgid(0)) - before > 100 * MIB
    assert len(block) == 200 * MIB


def test_a_quarter_more_has_to_be_free(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holding(monkeypatch, 6000)
    assert room.for_another(1)
    holding(monkeypatch, 7000)
    assert not room.for_another(1)


def test_a_container_may_hold_less_than_the_machine(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (machine / "memory.max").write_text(f"{4096 * MIB}\n")
    (machine / "memory.current").write_text(f"{3072 * MIB}\n")
    (machine / "memory.stat").write_text(f"anon {2048 * MIB}\ninactive_file {1024 * MIB}\n")
    holding(monkeypatch, 1600)
    assert room.for_another(1)  # the page cache would go
    holding(monkeypatch, 1700)
    assert not room.for_another(1)


def test_what_is_not_known_is_no_hindrance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "SYSTEM", tmp_path / "nothing")
    monkeypatch.setattr(room, "CONTAINER", tmp_path)
    assert room.for_another(os.getpgid(0))
    assert room.for_another(None)
