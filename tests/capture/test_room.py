"""Whether there is memory for two."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from warpline.capture import room
from warpline.capture.runner.device.kind import Host
from warpline.wire import memory

MIB = 2**20
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 8 GiB free, and no container."""
    (tmp_path / "meminfo").write_text("MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n")
    (tmp_path / "groups").write_text("0::/jobs/one\n")
    monkeypatch.setattr(memory, "SYSTEM", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "groups")
    monkeypatch.setattr(memory, "MOUNT", tmp_path)
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


@pytest.mark.parametrize("folder", ["", "jobs", "jobs/one"])
def test_the_least_that_a_group_around_it_leaves(machine: Path, folder: str) -> None:
    (group := machine / folder).mkdir(parents=True, exist_ok=True)
    assert memory.free_bytes() == 8192 * MIB
    (group / "memory.max").write_text(f"{512 * MIB}\n")
    (group / "memory.current").write_text(f"{500 * MIB}\n")
    assert memory.free_bytes() == 12 * MIB  # without a `memory.stat`


@pytest.mark.parametrize("text", ["", "\n", "no such thing\n", "0::/gone\n"])
def test_groups_that_say_nothing_take_nothing(machine: Path, text: str) -> None:
    (machine / "groups").write_text(text)
    assert memory.free_bytes() == 8192 * MIB


def test_groups_of_the_first_version_have_other_files(machine: Path) -> None:
    (machine / "groups").write_text("9:cpu,memory:/batch\n0::/\n")
    (group := machine / "memory" / "batch").mkdir(parents=True)
    (group / "memory.limit_in_bytes").write_text(f"{4096 * MIB}\n")
    (group / "memory.usage_in_bytes").write_text(f"{3072 * MIB}\n")
    (group / "memory.stat").write_text(f"inactive_file 1\ntotal_inactive_file {1024 * MIB}\n")
    (machine / "memory" / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    (machine / "memory" / "memory.usage_in_bytes").write_text(f"{3072 * MIB}\n")
    assert memory.free_bytes() == 2048 * MIB


def test_what_the_process_gave_back_is_not_free_at_its_peak(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(ModuleType("torch"))
    monkeypatch.setattr(host, "peak_bytes", lambda: 3000 * MIB)
    monkeypatch.setattr(host, "allocated_bytes", lambda: 1000 * MIB)
    assert host.memory() == {"free_bytes": 6192 * MIB}
    (machine / "meminfo").unlink()
    assert host.memory() == {}


def test_what_is_not_known_is_no_hindrance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "SYSTEM", tmp_path / "nothing")
    assert room.for_another(os.getpgid(0))
    assert room.for_another(None)
