"""Exports of Nsight Systems: a small one built after the published schema, and any real ones that are named.

``WARPLINE_NSYS_EXPORTS`` may name a folder of real exports; none is kept here. Every total is checked against
SQL over the same file.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import warpline
from warpline import pipeline
from warpline.model.problem import Problem
from warpline.model.profile import Kernel, Profile
from warpline.trace import foreign, nsys

PID, TID, WORKER = 4100, 4100, 4177
GLOBAL = PID << 24
MAIN, BACKWARD = GLOBAL | TID, GLOBAL | WORKER
EPOCH = 1_790_857_026_000_000_000
US = 1000

#: From "SQLite Export Schema Reference", Nsight Systems 2025; columns that nothing reads are left out.
SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, totalMemory INTEGER,
    smCount INTEGER, computeMajor INTEGER, computeMinor INTEGER);
CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL,
    eventClass INTEGER NOT NULL,
    globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL,
    callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL,
    deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, registersPerThread INTEGER NOT NULL,
    gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL,
    blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,
    dynamicSharedMemory INTEGER NOT NULL, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL,
    deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER NOT NULL, end INTEGER NOT NULL,
    deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    value INTEGER NOT NULL, bytes INTEGER NOT NULL);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT,
    globalTid INTEGER, textId INTEGER, domainId INTEGER);
CREATE TABLE CUDA_CALLCHAINS (id INTEGER NOT NULL, symbol INTEGER, module INTEGER, unresolved INTEGER,
    originalIP INTEGER, stackDepth INTEGER NOT NULL);
"""
STRINGS = {
    1: "cudaLaunchKernel_v7000", 2: "cudaMemcpyAsync_v3020", 3: "void gemm<float>(float*)", 4: "gemm",
    5: "void relu<float>(float*)", 6: "relu", 7: "/home/ada/train.py", 8: "forward:31",
    9: "/usr/lib/libcuda.so",
    10: "step 1", 11: "cuLaunchKernel",
}  # fmt: skip


class Export:
    """Two steps of 1,000 us. Each copies a batch, runs a gemm of 200 us and a relu of 50 us (own stream)."""

    def __init__(self, path: Path, *, lines: bool = False, chains: bool = False) -> None:
        self.path, self.chains = path, chains
        self.connection = sqlite3.connect(path)
        self.connection.executescript(SCHEMA)
        self.add("StringIds", *STRINGS.items())
        self.add("TARGET_INFO_SESSION_START_TIME", (EPOCH, "", ""))
        self.add("TARGET_INFO_GPU", (0, 0, "NVIDIA H100 80GB HBM3", 80 << 30, 132, 9, 0))
        self.add("ENUM_CUDA_MEM_KIND", (0, "", "Pageable"), (2, "", "Device"))
        self.add("CUDA_CALLCHAINS", (1, 4, 9, None, 0, 0), (1, 8, 7, None, 0, 1))
        for step in range(2):
            at = step * 1000
            name = ("step 0", None) if step == 0 else (None, 10)
            self.range(at, at + 1000, *name)
            self.range(
                at + 100, at + 200, f"aten::addmm, seq = {step}, op_id = 7, sizes = [[8], [64, 8], [8, 8]]"
            )
            self.range(at + 20, at + 90, "load")
            if lines:
                self.range(at + 10, at + 95, "<module> train.py:30", kind=60)
                self.range(at + 95, at + 250, "Net.forward train.py:31", kind=60)
            launched = self.call(at + 30, 2)
            self.add("CUPTI_ACTIVITY_KIND_MEMCPY", (*self.on(at + 60, 30, 7, launched), 4096, 1, 0, 2))
            launched = self.call(at + 110, 1)
            self.add(
                "CUPTI_ACTIVITY_KIND_KERNEL",
                (*self.on(at + 150, 200, 7, launched), 3, 4, 64, 8, 4, 1, 128, 1, 1, 16, 1024, 0),
            )
            launched = self.call(at + 210, 11)
            self.add(
                "CUPTI_ACTIVITY_KIND_KERNEL",
                (*self.on(at + 300, 50, 13, launched), 5, 6, 32, 1, 1, 1, 256, 1, 1, 0, 0, 0),
            )
        self.connection.commit()

    def add(self, table: str, *rows: tuple[Any, ...]) -> None:
        self.connection.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * len(rows[0]))})", rows)

    def range(
        self, start: int, end: int, text: str | None, number: int | None = None, kind: int = 59
    ) -> None:
        self.add("NVTX_EVENTS", (start * US, end * US, kind, text, MAIN, number, 0))

    def call(self, start: int, name: int) -> int:
        (number,) = self.connection.execute("SELECT 1 + count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME").fetchone()
        chain = 1 if self.chains else None
        self.add(
            "CUPTI_ACTIVITY_KIND_RUNTIME", (start * US, (start + 5) * US, 0, MAIN, number, name, 0, chain)
        )
        return int(number)

    def on(self, start: int, length: int, stream: int, launched: int) -> tuple[int, ...]:
        return (start * US, (start + length) * US, 0, 1, stream, launched, GLOBAL)


def kernels_of(profile: Profile) -> list[Kernel]:
    return [*profile.unattributed_kernels, *(kernel for line in profile.lines for kernel in line.kernels)]


def totals(profile: Profile, kinds: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    """Name -> (time in ms, launches) over the whole export."""
    steps = profile.steps.captured
    found: dict[str, tuple[float, float]] = {}
    for kernel in kernels_of(profile):
        if kernel.kind in kinds:
            ms, count = found.get(kernel.name, (0.0, 0.0))
            found[kernel.name] = (ms + kernel.device_ms * steps, count + kernel.count * steps)
    return found


def by_sql(path: Path) -> dict[str, tuple[float, float]]:
    with sqlite3.connect(path) as connection:
        rows = connection.execute(
            "SELECT value, sum(k.end - k.start) / 1e6, count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k "
            "JOIN StringIds ON id = demangledName GROUP BY value"
        )
        return {name: (ms, count) for name, ms, count in rows}


def imported(path: Path, folder: Path) -> Profile:
    ((run, _),) = pipeline.import_trace(path, folder=folder / "runs")
    return pipeline.profile_of(run)


def same(ours: dict[str, tuple[float, float]], theirs: dict[str, tuple[float, float]]) -> None:
    assert ours.keys() == theirs.keys()
    for name, (ms, count) in theirs.items():
        assert ours[name] == (pytest.approx(ms, rel=1e-9), pytest.approx(count)), name


def test_totals_are_those_of_sql(tmp_path: Path) -> None:
    path = tmp_path / "report.sqlite"
    Export(path)
    profile = imported(path, tmp_path)
    same(totals(profile, ("kernel", "communication")), by_sql(path))
    assert totals(profile, ("copy",)) == {"Memcpy HtoD (Pageable -> Device)": (pytest.approx(0.06), 2)}
    (gemm,) = (kernel for kernel in kernels_of(profile) if "gemm" in kernel.name)
    assert (gemm.grid, gemm.block, gemm.registers, gemm.shared_bytes) == ((8, 4, 1), (128, 1, 1), 64, 1040)
    device = profile.manifest.device
    assert (device.name, device.capability, device.multiprocessors) == ("NVIDIA H100 80GB HBM3", (9, 0), 132)


def test_steps_and_operators_come_from_nvtx(tmp_path: Path) -> None:
    Export(tmp_path / "report.sqlite")
    profile = imported(tmp_path / "report.sqlite", tmp_path)
    assert profile.steps.captured == 2
    assert profile.steps.step_ms == pytest.approx(1.0)
    assert profile.manifest.captured[0][0] == EPOCH
    (op,) = (op for op in profile.unattributed_ops if op.name == "aten::addmm")
    assert op.shapes == ((8,), (64, 8), (8, 8))
    assert op.device_ms == pytest.approx(0.2)
    assert [mark.name for mark in profile.marks if mark.name == "load"] == ["load"]
    assert any("the export has no Python lines" in note for note in profile.manifest.notes)


@pytest.mark.parametrize("lines", [True, False], ids=["ranges of ours", "backtraces"])
def test_kernels_are_led_to_lines_where_the_export_names_them(tmp_path: Path, lines: bool) -> None:
    Export(tmp_path / "report.sqlite", lines=lines, chains=not lines)
    profile = imported(tmp_path / "report.sqlite", tmp_path)
    hot = next(line for line in profile.lines if line.line == 31)
    assert Path(hot.file).name == "train.py"
    assert hot.device_ms == pytest.approx(0.25 if lines else 0.28)  # the backtrace is the same for the copy
    assert sum(line.step_ms for line in profile.lines) + profile.unattributed.step_ms == pytest.approx(1.0)
    same(totals(profile, ("kernel",)), by_sql(tmp_path / "report.sqlite"))


def test_processes_have_numbers_of_their_own(tmp_path: Path) -> None:
    """Two processes count their calls from 1; a kernel must not be led to the other's call."""
    export = Export(tmp_path / "report.sqlite")
    other = 4200 << 24
    export.connection.execute(
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME "
        "SELECT start, end, eventClass, ?, correlationId, nameId, 0, NULL FROM CUPTI_ACTIVITY_KIND_RUNTIME",
        (other | 4200,),
    )
    export.connection.execute(
        "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET "
        "SELECT start + 400000, end + 400000, 1, 1, 7, correlationId, ?, 0, 64 "
        "FROM CUPTI_ACTIVITY_KIND_MEMCPY",
        (other,),
    )
    export.connection.commit()
    found = nsys.read(tmp_path / "report.sqlite")
    assert found.processes == 2
    calls = [
        event["args"]["correlation"]
        for event in found.events
        if event["cat"] in ("cuda_runtime", "cuda_driver")
    ]
    assert len(set(calls)) == len(calls) == 12
    ((_, report),) = pipeline.import_trace(tmp_path / "report.sqlite", folder=tmp_path / "runs")
    assert any("2 processes" in note for note in report.notes)


def test_tables_and_columns_may_be_missing(tmp_path: Path) -> None:
    """An old or trimmed export: no device, no strings for a name, no copies, no calls."""
    path = tmp_path / "old.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        connection.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, shortName INT)")
        rows = [(0, 1_000_000, 1), (2_000_000, 2_500_000, 7), (1, None, 1)]
        connection.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?)", rows)
        connection.execute("INSERT INTO StringIds VALUES (1, 'gemm')")
    profile = imported(path, tmp_path)
    assert totals(profile, ("kernel",)) == {
        "gemm": (pytest.approx(1.0), 1),
        "unknown": (pytest.approx(0.5), 1),
    }
    assert profile.steps.step_ms == pytest.approx(2.5)


def test_what_is_no_export_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "report.nsys-rep").write_bytes(b"\x00" * 64)
    (tmp_path / "broken.sqlite").write_bytes(nsys.MAGIC + b"\xff" * 2000)
    with sqlite3.connect(tmp_path / "other.sqlite") as connection:
        connection.execute("CREATE TABLE people (name TEXT)")
    with sqlite3.connect(tmp_path / "view.sqlite") as connection:
        endless = (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i start, i + 1 end FROM n"
        )
        connection.execute(f"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS {endless}")
    for name, said in {
        "report.nsys-rep": "nsys export --type sqlite",
        "broken.sqlite": "cannot be read as an nsys export",
        "other.sqlite": "has no CUDA activity",
        "view.sqlite": "has no CUDA activity",
    }.items():
        with pytest.raises(Problem, match=said) as problem:
            foreign.import_run(tmp_path / name, tmp_path / "runs/one")
        assert "\n" not in str(problem.value)
        assert not (tmp_path / "runs/one").exists()


def test_the_command_takes_a_file_and_a_folder(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    Export(tmp_path / "reports/report.sqlite", lines=True)
    for word in ("reports/report.sqlite", "reports"):
        done = warpline("import", word, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "train.py:31" in done.stdout
        assert "steps are the NVTX ranges called step" in done.stdout


def test_real_exports_that_are_named(tmp_path: Path) -> None:
    """Without ``WARPLINE_NSYS_EXPORTS`` the hand-made one stands for them."""
    folder = os.environ.get("WARPLINE_NSYS_EXPORTS")
    if folder is None:
        Export(tmp_path / "report.sqlite")
    for path in sorted(Path(folder or tmp_path).glob("*.sqlite")):
        same(totals(imported(path, tmp_path / path.stem), ("kernel", "communication")), by_sql(path))
