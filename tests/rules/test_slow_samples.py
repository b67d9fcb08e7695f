"""The line to change where a loop runs a short one too often."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import read_example, texts
from warpline.diagnosis.diagnose import diagnose
from warpline.wire.workers import WorkerLine, Workers

LOADER = """
loader = DataLoader(Shapes(), 64, num_workers=4)
#^ site loader num_workers=4 batches_per_epoch=400 wait_ms=21
for shapes, labels in loader:  #> cost cpu_ms=0.1 step_ms=0.1; use loader
    train(shapes, labels)  #> cost device_ms=18 idle_ms=21.9 step_ms=39.9
"""
GENERATED = """\
def inside(x, y, edges):
    return sum(edge(x, y) > 0 for edge in edges) % 2  #:hot
class Shapes:
    def __getitem__(self, index):
        return [inside(i % 96, i // 96, self.edges) for i in range(9216)]  #:loop
"""
LOOPED = """\
class Shapes:
    def __getitem__(self, index):
        found = []
        for word in self.text[index].split():
            found.append(self.hashed(word))  #:loop
        return found
    def hashed(self, word):
        return zlib.crc32(word.encode()) % 4096  #:hot
"""
BETWEEN = """\
def scaled(value):
    return (value - 3.0) / 7.0  #:hot
def cleaned(value):
    return scaled(value)  #:between
class Shapes:
    def __getitem__(self, index):
        return list(cleaned(value) for value in self.rows[index])  #:loop
"""
#: No line has half of the time.
VECTORIZED = """\
def compressed(value):
    size = math.log1p(abs(value))  #:hot
    sign = math.copysign(1.0, value)  #:hot
    return round(sign * size)  #:hot
class Shapes:
    def __getitem__(self, index):
        return np.vectorize(compressed)(self.waves[index])  #:loop
"""
LONG_LOOP = """\
class Shapes:
    def __getitem__(self, index):
        found = 0
        for one in self.rows[index]:  #:loop
            one = one * 31 + 7  #:hot
            found ^= one  #:hot
            found &= 65535  #:hot
        return found
"""
LONG_FUNCTION = """\
class Shapes:
    def __getitem__(self, index):
        rows = self.read(index)  #:hot
        rows = self.sorted(rows)  #:hot
        return self.padded(rows)  #:hot
"""
ONCE = """\
class Shapes:
    def __getitem__(self, index):
        return self.read(index)  #:loop
    def read(self, index):
        return parse(self.paths[index])  #:hot
"""


def findings(code: str, batch_ms: float, calls: float) -> list[int]:
    texts_of = code.split("\n")
    example = read_example("#> totals idle_ms=22; steps step_ms=40\n" + code + LOADER)
    lines = tuple(
        WorkerLine("/example/train.py", at, "f", batch_ms if "#:hot" in text else 1.0, calls)
        for at, text in enumerate(texts_of, 1)
        if "#:" in text
    )
    whole_ms = sum(line.batch_ms for line in lines) + 10
    facts = replace(example.profile.facts, workers=Workers(4, whole_ms, lines))
    result = diagnose(replace(example.profile, facts=facts), texts(example))
    return [one.line for one in result.findings if one.rule == "slow-sample-line"]


def found(code: str, batch_ms: float, calls: float) -> int:
    (line,) = findings(code, batch_ms, calls)
    return line


def at(code: str, mark: str) -> int:
    return next(line for line, text in enumerate(code.split("\n"), 1) if mark in text)


@pytest.mark.parametrize("code", [LOOPED, BETWEEN, VECTORIZED, LONG_LOOP])
def test_short_lines_are_changed_where_they_are_repeated(code: str) -> None:
    assert found(code, 100, 400_000) == at(code, "#:loop")


@pytest.mark.parametrize(
    ("code", "calls"),
    [
        (LOOPED, 640),  # each takes long enough to be worth a look of its own
        (GENERATED, 400_000),  # the line has a loop of its own
        (ONCE, 400_000),
    ],
)
def test_else_where_they_are(code: str, calls: float) -> None:
    assert found(code, 100, calls) == at(code, "#:hot")


def test_what_steps_wait_for_while_the_workers_keep_up_is_something_else() -> None:
    """The wait of 21 ms is at the beginning of the epochs, or for a machine that is busy."""
    assert findings(ONCE, 80, 64) == [at(ONCE, "#:hot")]
    assert not findings(ONCE, 50, 64)


def test_of_several_long_lines_none_is_the_slow_one() -> None:
    assert findings(LONG_FUNCTION, 30, 64) == []
