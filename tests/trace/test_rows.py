"""Compiled code reads most of a trace: what it accepts is exactly what msgspec makes of the same text."""

from __future__ import annotations

import io
import json
import random
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import pytest
import wasmtime

from tests.trace.test_pieces import same
from tools import rows_wasm
from warpline import trace
from warpline.trace import decode, ranges, rows
from warpline.trace.decode import Event
from warpline.trace.events import Tables

#: An event of each kind that Kineto writes, and odd ones.
EVENTS = [
    '{"ph": "X", "cat": "cpu_op", "name": "aten::conv2d", "pid": 7, "tid": 7,\n "ts": '
    '4455912164559.366, "dur": 136.934,\n "args": {\n "External id": 2,"Sequence number": 7856, "Fwd '
    'thread id": 0, "Record function id": 0, "Concrete Inputs": ["", "[1, 1]", "0", "True"], "Input '
    'type": ["float", "ScalarList", "Scalar", ""], "Input Strides": [[128, 1], [], [], []], "Input '
    'Dims": [[64, 128], [], [[1, 2], [3]], []], "Ev Idx": 1, "Call stack": "a.py(1): f;b.py(2): g"\n '
    '}\n }',
    '{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 8, "ts": '
    '1700000000123456.789, "dur": 3, "args": {"Sequence number": 3, "Fwd thread id": 1, "Input '
    'Dims": [[-1.5e3, 0.25], null, true, {"a": [1, {"b": "c"}]}]}}',
    '{"ph": "X", "cat": "kernel", "name": "void gemm<float>(\\"x\\", \\u00e9\\\\)", "pid": 0, "tid": '
    '7, "ts": 4455912164967.808, "dur": 0.704, "args": {"queued": 0, "device": 1, "context": 1, '
    '"stream": 7, "correlation": 61, "registers per thread": 16, "shared memory": 49152, "blocks per '
    'SM": 0.015152, "grid": [2, 1, 1], "block": [64, 1, 1], "est. achieved occupancy %": 9.5, "graph '
    'node id": 5}}',
    '{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": "stream 7", "ts": '
    '5.25, "dur": 1.5, "args": {"stream": "0x0", "bytes": 4096, "registers per thread": null, "est. '
    'achieved occupancy %": null}}',
    '{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": 6, '
    '"dur": 2, "args": {"cbid": 211, "correlation": 61}}',
    '{"ph": "X", "cat": "cuda_driver", "name": "cuLaunchKernel", "ts": 7.5, "args": {"correlation": '
    '-1}}',
    '{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 7, "tid": 7, "ts": '
    '8.125, "args": {"Total Reserved": 1, "Total Allocated": 3193784320, "Bytes": -65536, "Device '
    'Id": 0, "Device Type": 1, "Addr": 140286947361280, "finished": false}}',
    '{"ph": "s", "id": 12, "pid": 7, "tid": 7, "ts": 9.5, "cat": "fwdbwd", "name": "fwdbwd"}',
    '{"ph": "f", "id": 12, "pid": 7, "tid": 8, "ts": 10, "cat": "fwdbwd", "name": "fwdbwd", "bp": '
    '"e"}',
    '{"ph": "f", "id": "12", "pid": 0, "tid": 7, "ts": 9, "cat": "ac2g", "name": "ac2g", "bp": "e"}',
    '{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 7, "tid": 7, "ts": 1, '
    '"dur": 99}',
    '{"ph": "X", "cat": "python_function", "name": "C:\\\\tmp\\\\model.py(3): for\\u0077ard", "pid": '
    '7, "tid": 7, "ts": 1e3, "dur": 9, "args": {"Python parent id": null, "Python id": 3}}',
    '{"ph": "X", "cat": "python_function", "name": "gr\xf6\xdfe.py(3): forward", "pid": 7, "tid": 7, '
    '"ts": 1, "dur": 9}',
    '{"name": "process_name", "ph": "M", "ts": 0.0, "pid": 7, "tid": 0, "args": {"name": "python", '
    '"labels": []}}',
    '{"ph": "X", "cat": "cpu_op", "name": "late", "pid": 7, "tid": 7, "ts": 5e15, "dur": 1}',
    '{"ph": "X", "cat": "cpu_op", "name": "late", "pid": 7, "tid": 7, "ts": 5000000000000000, "dur": '
    '1}',
    '{"ph": "X", "cat": "cpu_op", "name": "back", "pid": 7, "tid": 7, "ts": 5.5, "dur": -1}',
    '{"ph": "B", "cat": "kernel", "name": "no span"}',
    '{}',
]  # fmt: skip
#: What else may stand in the place of a value.
VALUES = [
    '0', '-1', '-0', '01', '1.5', '1.', '.5', '1e3', '-2.5E-3', '9007199254740993', '123456789012345678',
    '1234567890123456789', '12345678901234567890', '9223372036854775808', '4455912164559.3661', '0.1',
    '0.30000000000000004', '1700000000123456.7', '9007199254740993.125', '1e400', 'NaN', 'Infinity', 'null',
    'true', 'false', '[]', '{}', '""', '"X"', '"7"', '"\\n"', '"\\x"', '"\\ud800"', '"\\u12"', '"\x01"',
    '"cpu_op"', '"Operator"', '"fwdbwd"', '[1, 2', '[1,,2]', '[1 2]', '{"a": 1,}', '[[[[[1]]]]]',
    '[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]', '{"stream": 1}',
    '{"correlation": 1.5}', '{"grid": [1]}', '{"bytes": "1"}', '"\udcff"', '"\udcc3\udca9"',
    '{"Call stack": "\udcff"}', '{"a": "\udcff"}', '["\udcff"]', '{"\udcff": 1}', '{"stream": "\udcff"}',
    '"\\ud83d\\ude00"',
]  # fmt: skip
LOST: Any = {"errors": "surrogateescape"}  # how bytes that are no text are written here
_VALUE = re.compile(r'(?<=: )(?:"(?:[^"\\]|\\.)*"|-?[0-9.e]+|null|true|false|\[[^{}]*?\](?=[,}]))')


@pytest.fixture(scope="module")
def machine() -> rows.Machine:
    code = rows.compiled()
    assert code is not None, "wasmtime belongs to the environment"
    return rows.Machine(*code)


def by_msgspec(text: bytes) -> tuple[Tables, int] | None:
    tables = Tables()
    try:
        events = msgspec.json.decode(b"[" + text + b"]", type=list[Event])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    tables.take(events)
    return tables, len(events)


def content(tables: Tables) -> dict[str, Any]:
    """The events of each category, with the values instead of their numbers."""
    found: dict[str, Any] = {"left out": tables.left_out, "processes": tables.processes}
    for category, table in tables.of.items():
        if not len(table):
            continue
        found[category] = {"length": len(table)}
        for field, column in table.columns.items():
            numbers = column.whole()
            assert numbers.dtype == (np.float64 if field in ("ts", "dur") else np.int64)
            values = list(table.values[field].index) if field in table.values else None
            found[category][field] = [repr(values[at] if values else at) for at in numbers.tolist()]
    return found


def agree(text: bytes, machine: rows.Machine) -> bool:
    """Whether the code accepted ``text``. If it did, msgspec reads the same."""
    tables = Tables()
    taken = rows.Rows(tables, machine).take(text, len(text))
    expected = by_msgspec(text)
    if taken is None:
        assert not any(map(len, tables.of.values()))
        return False
    assert expected is not None, text
    assert taken == expected[1], text
    assert content(tables) == content(expected[0]), text
    return True


def test_events_of_each_kind(machine: rows.Machine) -> None:
    refused = [one for one in EVENTS if not agree(one.encode(), machine)]
    assert [one for one in refused if "1e3" not in one and "5e15" not in one] == []
    usual = [one for one in EVENTS if one not in refused]
    assert agree(",\n ".join(usual * 5).encode(), machine)
    compact = ",".join(json.dumps(json.loads(one), separators=(",", ":")) for one in usual)
    assert agree(compact.encode(), machine)
    assert agree(json.dumps([json.loads(one) for one in usual], indent=3)[1:-1].encode(), machine)
    assert agree(b" \n ", machine)


def test_odd_values_anywhere(machine: rows.Machine) -> None:
    accepted = 0
    for event in EVENTS:
        for met in _VALUE.finditer(event):
            for value in VALUES:
                accepted += agree((event[: met.start()] + value + event[met.end() :]).encode(**LOST), machine)
    assert accepted > 1000


def test_twice_the_same_key(machine: rows.Machine) -> None:
    """The last one counts."""
    for more in (
        '"ts": 1, "ts": 2, "name": "a", "name": "b", "tid": 1, "tid": 2, "args": {"grid": [1], "grid": [2]}',
        '"args": {"stream": 1, "stream": 2, "block": [1]}, "args": {"device": 1}',
        '"args": {"stream": 1, "stream": "0x0"}, "cat": "cpu_op"',
        '"id": 1, "id": 2, "ph": "s", "cat": "fwdbwd"',
    ):
        assert agree(f'{{"ph": "X", "cat": "kernel", {more}}}'.encode(), machine)


def test_more_names_and_lists_than_are_known_again(machine: rows.Machine) -> None:
    """The code knows names of fields, and lists, that it has read before: also where they begin alike, are as
    long as what it keeps, or too long, and where blanks are elsewhere."""
    chance = random.Random(1)
    colons, commas = (": ", ":", " : ", ":\n\t"), (", ", ",", ",\n    ", " ,")
    for _ in range(40):
        events = []
        for _ in range(100):
            fields = [
                f'"{name}"{chance.choice(colons)}{[[1] * chance.choice((1, 2, 75, 76, 77, 78, 79, 80)), at]}'
                for name in ("Input Dims", "Input type", "x" * chance.randrange(40))
                for at in chance.sample(range(3000), 2)
            ]
            fields.append(f'"Sequence number": {chance.randrange(10)}')
            chance.shuffle(fields)
            end = chance.choice(("}", "\n    }", "  } "))
            arguments = "{" + chance.choice(("", " ")) + chance.choice(commas).join(fields) + end
            events.append(
                f'{{"ph": "X", "cat": "cpu_op", "name": "mm"{chance.choice(commas)}"args": {arguments}}}'
            )
        assert agree(", ".join(events).encode(), machine)


@pytest.mark.parametrize("seed", range(20))
def test_damage_anywhere(seed: int, machine: rows.Machine) -> None:
    """Bytes are lost, doubled or replaced."""
    chance = random.Random(seed)
    whole = ",\n ".join(EVENTS).encode()
    for _ in range(100):
        text = bytearray(whole)
        for _ in range(chance.choice((1, 1, 1, 2, 5))):
            at, length = chance.randrange(len(text)), chance.choice((1, 1, 2, 9, 80))
            marks = [bytes([mark]) for mark in b'"\\,{}[] \0']
            value = chance.choice(VALUES).encode(**LOST)
            twice = bytes(text[at : at + length]) * 2
            text[at : at + length] = chance.choice([b"", twice, value, chance.randbytes(1), *marks])
        agree(bytes(text), machine)


def test_what_is_too_much_is_left_to_msgspec(machine: rows.Machine) -> None:
    many = b",".join([b'{"ph": "X", "cat": "cpu_op"}'] * ((1 << 16) + 1))
    assert not agree(many, machine)
    assert agree(many[: many.rindex(b",{")], machine)
    own = rows.Machine(*(rows.compiled() or ()))
    distinct = b",".join(b'{"ph": "X", "cat": "kernel", "name": "%d"}' % at for at in range(60_000))
    for at in range(3):
        assert agree(distinct.replace(b'"name": "', b'"name": "%d,' % at), own) == (at < 2)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "PIECE", 4001)
    monkeypatch.setattr(rows, "PIECE", 8001)
    monkeypatch.setattr(rows, "SMALLEST", 1)
    monkeypatch.setattr(ranges, "PART", 40_000)
    monkeypatch.setattr(ranges, "SMALLEST", 40_000)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    found: list[int | None] = []
    read = rows.Rows._read

    def noted(self: rows.Rows, end: int) -> int | None:
        found.append(read(self, end))
        return found[-1]

    monkeypatch.setattr(rows.Rows, "_read", noted)
    return found


def read_by_msgspec(run: Path, monkeypatch: pytest.MonkeyPatch) -> trace.Trace:
    with monkeypatch.context() as patched:
        patched.setattr(rows, "compiled", lambda: None)
        return trace.read(run, 1)


@pytest.mark.parametrize("name", ["bert_inference", "cuda_graph", "compiled", "waits", "nccl"])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.usefixtures("small")
def test_runs(
    name: str,
    threads: int,
    recorded: Callable[[str], Path],
    taken: list[int | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = recorded(name)
    assert same(trace.read(run, threads), read_by_msgspec(run, monkeypatch))
    assert len(taken) > 10
    assert None not in taken


@pytest.mark.usefixtures("small")
def test_a_trace_that_was_begun(recorded: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read once, and another one, or the same one again, as if none had been begun."""
    path, other = recorded("bert_inference") / "trace.json", recorded("waits") / "trace.json"
    read, together = [], ranges.together

    def noted(path: Path, *rest: Any) -> Any:
        read.append((path, threading.current_thread() is threading.main_thread()))
        return together(path, *rest)

    monkeypatch.setattr(ranges, "together", noted)
    monkeypatch.setattr(ranges, "cores", lambda: 3)
    alone = [sizes(ranges.tables_of(one, 1)) for one in (path, other)]
    read.clear()
    with ranges.Pool() as pool:
        assert pool.begin(path)
        assert pool.begin(path)
        found = [sizes(ranges.tables_of(one, pool=pool)) for one in (other, path, path)]
    assert found == [alone[1], alone[0], alone[0]]
    assert sorted(read) == sorted([(path, False), (other, True), (path, True)])


def sizes(found: tuple[Tables, decode.Chrome, list[str]]) -> tuple[dict[str, int], int, list[str]]:
    tables, chrome, notes = found
    return {category: len(table) for category, table in tables.of.items()}, chrome.base_ns, notes


@pytest.mark.usefixtures("small")
def test_a_trace_that_was_begun_in_vain(
    recorded: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing waits for the rest of it."""

    def endless(*_: object) -> Iterator[tuple[Tables, None]]:
        while True:
            yield Tables(), None

    monkeypatch.setattr(ranges, "in_threads", endless)
    monkeypatch.setattr(ranges, "cores", lambda: 2)
    interval = sys.getswitchinterval()
    with ranges.Pool() as pool:
        assert pool.begin(recorded("bert_inference") / "trace.json")
    assert sys.getswitchinterval() == interval


def test_a_small_trace_is_not_begun(recorded: Callable[[str], Path]) -> None:
    with ranges.Pool() as pool:
        assert not pool.begin(recorded("bert_inference") / "trace.json")
        assert not pool.begin(Path("no such file"))


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.usefixtures("small")
def test_columns_are_fetched_once_or_in_between(
    full: bool, recorded: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several threads, msgspec decodes the last event of the file only."""
    run, decoded = recorded("bert_inference"), []
    expected = read_by_msgspec(run, monkeypatch)
    monkeypatch.setattr(rows.Machine, "full", property(lambda _: full))
    given = decode._Reading._given

    def noted(self: Any, events: list[Event]) -> None:
        decoded.extend(events)
        given(self, events)

    monkeypatch.setattr(decode._Reading, "_given", noted)
    assert same(trace.read(run, 3), expected)
    assert len(decoded) == 1


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.usefixtures("small")
def test_an_odd_event_in_the_middle(
    threads: int,
    recorded: Callable[[str], Path],
    taken: list[int | None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that msgspec reads as well as one that it does not, and one that is seen when columns are made."""
    run = tmp_path / "run"
    run.mkdir()
    for file in recorded("bert_inference").iterdir():
        if file.is_file():
            (run / file.name).write_bytes(file.read_bytes())
    data = (run / "trace.json").read_bytes()
    half = data.index(b"\n  },\n", len(data) // 2) + 6
    for odd in (
        b'"ph": "X", "ts": "never"',
        b'"ph": "X", "cat": "cpu_op", "ts": 5e12, "name": "odd"',
        b'"ph": "X", "cat": "cpu_op", "name": "odd", "tid": 1, "args": {"Call stack": "\xff"}',
    ):
        taken.clear()
        (run / "trace.json").write_bytes(data[:half] + b"  {\n    " + odd + b"\n  },\n" + data[half:])
        found = trace.read(run, threads)
        assert same(found, read_by_msgspec(run, monkeypatch))
        assert taken.count(None) < len(taken) // 2
        assert ("odd" in found.names) == (b"odd" in odd)
        assert any("malformed" in note for note in found.notes) == (b"never" in odd)


def test_a_fault_of_the_code() -> None:
    """It cannot reach more than its own memory, and msgspec decodes that text and all others."""

    class Faulty:
        text = memoryview(bytearray(9))

        def read(self, end: int) -> bool:
            raise wasmtime.Trap(f"out of bounds at {end}")

    found = rows.Rows(Tables(), cast(rows.Machine, Faulty()))
    assert found.take(b"{}", 2) is None
    assert not found.useful
    assert found.take(b"{}", 2) is None


def test_a_fault_after_a_text_was_read(machine: rows.Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of what a part's texts left in the machine is used."""
    event = b'{"ph": "X", "cat": "cpu_op", "name": "mm"}'
    reading, read = rows.Rows(Tables(), machine), machine.read
    answers = [lambda: read(len(event)), lambda: 1 / 0]

    def once_well(_: int) -> bool:
        try:
            return bool(answers.pop(0)())
        except ZeroDivisionError:
            raise wasmtime.Trap("out of bounds") from None

    monkeypatch.setattr(machine, "read", once_well)
    reading.piece = len(event) + 4
    assert (
        reading.pass_by(io.BufferedReader(io.BytesIO(b",\n ".join([event] * 3))), 3 * len(event) + 6, True)
        == 0
    )
    assert not any(map(len, reading.tables.of.values()))
    assert not answers
    assert not machine.rows.any()


def test_where_it_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wasmtime", None)
    rows.compiled.cache_clear()
    try:
        assert rows.compiled() is None
        assert rows.into(Tables()) is None
    finally:
        rows.compiled.cache_clear()


def test_the_code_is_made_of_its_source() -> None:
    """After a change of rows.c: python tools/rows_wasm.py."""
    made = rows_wasm.SOURCE.with_suffix(".wasm").read_bytes()
    assert made.endswith(rows_wasm.named(rows_wasm.checksum()))
