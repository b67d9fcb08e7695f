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
#: One line has it all, in a loop of its own, which another one does nothing but run.
NESTED = """\
class Shapes:
    def __getitem__(self, index):
        near = []
        for one in self.rows[index]:  #:loop
            for other in self.rows[index]:
                near.append(abs(one - other) < 3)  #:hot
        return near
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


def findings(code: str, batch_ms: float, calls: float, loader: str = LOADER) -> list[int]:
    texts_of = code.split("\n")
    example = read_example("#> totals idle_ms=22; steps step_ms=40\n" + code + loader)
    lines = tuple(
        WorkerLine("/example/train.py", at, "f", batch_ms if "#:hot" in text else 1.0, calls)
        for at, text in enumerate(texts_of, 1)
        if "#:" in text
    )
    whole_ms = sum(line.batch_ms for line in lines) + 10
    facts = replace(example.profile.facts, workers=Workers(4, whole_ms, lines))
    result = diagnose(replace(example.profile, facts=facts), texts(example))
    return [one.line for one in result.findings if one.rule == "slow-sample-line"]


#: A library's dataset, whose code is not in the script: made twice, one of them in a branch that did not run.
IMAGES = """\
from torchvision import datasets
if args.dummy:
    data = datasets.FakeData(2048)  #> skipped
else:
    data = datasets.ImageFolder("pictures", crops)
loader = DataLoader(data, 64, num_workers=4)
#^ site loader num_workers=4 batches_per_epoch=400 wait_ms=21 rows_type=ImageFolder
valid = DataLoader(datasets.ImageFolder("others"), 64, num_workers=4)
#^ site loader as=valid num_workers=4 batches_per_epoch=4 wait_ms=2 rows_type=ImageFolder
for images, labels in loader:  #> cost cpu_ms=0.1 step_ms=0.1; use loader
    train(images, labels)  #> cost device_ms=18 idle_ms=21.9 step_ms=39.9
for images, labels in valid:  #> use valid
    pass
"""
FOLDER = "/lib/torchvision/folder.py"


def decoded(code: str, *spent: tuple[str, float]) -> list[tuple[int, str]]:
    """Findings where a worker's batch of 120 ms has such functions of the library's."""
    example = read_example("#> totals idle_ms=22; steps step_ms=40\n" + code)
    lines = tuple(
        WorkerLine(FOLDER, at, name, batch_ms / 2, 64, "return image.convert(mode)")
        for at, (name, batch_ms) in enumerate(spent)
        for _ in range(2)
    )
    facts = replace(example.profile.facts, workers=Workers(4, 120, lines))
    result = diagnose(replace(example.profile, facts=facts), texts(example))
    return [(one.line, one.message) for one in result.findings if one.rule == "slow-sample-line"]


def test_a_library_s_function_is_told_where_its_dataset_is_made() -> None:
    ((line, message),) = decoded(IMAGES, ("pil_loader", 80), ("resize", 30))
    assert line == 5
    assert "`pil_loader`, which the dataset made here calls 64 times a batch, takes 80.0 ms" in message
    assert not decoded(IMAGES, ("pil_loader", 50), ("resize", 50))


def test_of_two_kinds_of_datasets_it_is_unknown_whose_lines_they_are() -> None:
    code = IMAGES.replace("wait_ms=2 rows_type=ImageFolder", "wait_ms=2 rows_type=CIFAR10")
    assert not decoded(code, ("pil_loader", 80), ("resize", 30))


#: Without workers the library's lines are below the one that iterates: those of a sample, and of the loader.
HERE = """\
from torchvision import datasets
data = datasets.ImageFolder("pictures", crops)
loader = DataLoader(data, 64)  #> site loader num_workers=0 batch_size=64 batches_per_epoch=400
for images, labels in loader:  #> cost cpu_ms=90 loader_ms=90 idle_ms=90 step_ms=90 calls=1; use loader
    #^ inside file=/lib/torchvision/folder.py function=pil_loader line=9 step_ms=60 calls=64
    #^ inside file=/lib/accelerate/loader.py function=batches line=9 step_ms=10 calls=1
    train(images, labels)  #> cost device_ms=18 step_ms=18
"""


@pytest.mark.parametrize(("old", "new", "found"), [
    ("", "", [2]),
    ("step_ms=60 calls=64", "step_ms=40 calls=64", []),
    ("step_ms=60 calls=64", "step_ms=60 calls=1", []),  # of a batch: the loader's own, or a collate function
    ("step_ms=60 calls=64", "step_ms=60 calls=64 module=layers.*", []),  # the model's
    ("step_ms=90 calls=1; use", "step_ms=90 calls=0.02; use", [2]),  # its line began before these steps
])  # fmt: skip
def test_a_library_s_samples_in_the_training_process(old: str, new: str, found: list[int]) -> None:
    example = read_example(HERE.replace(old, new) if old else HERE)
    result = diagnose(example.profile, texts(example))
    assert [one.line for one in result.findings if one.rule == "slow-sample-line"] == found


def found(code: str, batch_ms: float, calls: float) -> int:
    (line,) = findings(code, batch_ms, calls)
    return line


def at(code: str, mark: str) -> int:
    return next(line for line, text in enumerate(code.split("\n"), 1) if mark in text)


@pytest.mark.parametrize("code", [LOOPED, BETWEEN, VECTORIZED, LONG_LOOP, NESTED])
def test_short_lines_are_changed_where_they_are_repeated(code: str) -> None:
    assert found(code, 100, 400_000) == at(code, "#:loop")


@pytest.mark.parametrize(
    ("code", "calls"),
    [
        (NESTED, 640),
        (LOOPED, 640),  # each takes long enough to be worth a look of its own
        (GENERATED, 400_000),  # the line has a loop of its own
        (ONCE, 400_000),
    ],
)
def test_else_where_they_are(code: str, calls: float) -> None:
    assert found(code, 100, calls) == at(code, "#:hot")


HELPED = """\
def marked(picture):
    found = 0
    for one in picture:  #:loop
        one = one * 5 + 3  #:hot
        found ^= one  #:hot
        found &= 4095  #:hot
    return found
def both(pair):
    return [marked(one) for one in pair]  #:between
class Shapes:
    def __getitem__(self, index):
        return both(self.pictures[index])  #:sample
"""
SAME = "rows_file=/example/train.py rows_line=11 sample_form=tensor"


@pytest.mark.parametrize(
    ("code", "facts", "line"),
    [
        (HELPED, SAME, "#:sample"),
        (HELPED, SAME.replace("sample_form=tensor", ""), "#:loop"),  # they differ, or are too large
        (HELPED, SAME.replace("11", "12"), "#:loop"),  # another class's
        (f"{HELPED}        both(self.more)  #:sample\n", SAME, "#:loop"),  # called twice
        (LOOPED, SAME.replace("11", "2"), "#:loop"),  # no helper
    ],
)
def test_what_a_helper_gives_again_in_each_epoch_is_kept_by_the_dataset(
    code: str, facts: str, line: str
) -> None:
    loader = LOADER.replace("wait_ms=21", f"wait_ms=21 {facts}")
    assert findings(code, 100, 400_000, loader) == [at(code, line)]


def test_what_steps_wait_for_while_the_workers_keep_up_is_something_else() -> None:
    """The wait of 21 ms is at the beginning of the epochs, or for a machine that is busy."""
    assert findings(ONCE, 80, 64) == [at(ONCE, "#:hot")]
    assert not findings(ONCE, 50, 64)


@pytest.mark.parametrize(("cores", "found"), [(2, True), (4, False), (16, False)])
def test_workers_that_keep_up_take_cores_from_the_step_where_these_are_few(cores: int, found: bool) -> None:
    loader = f"\n#> flags cpu_count={cores}{LOADER}"
    assert findings(ONCE, 50, 64, loader) == [at(ONCE, "#:hot")] * found


@pytest.mark.parametrize(
    ("batch_ms", "line_ms", "saved_ms"),
    [
        (
            164.0,
            120.0,
            21.0,
        ),  # four workers make a batch in 41 ms, and in 11 without the line: a step takes 19
        (164.0, 84.0, 21.0),  # in 20 ms
        (164.0, 82.4, 20.6),  # no longer quick enough
    ],
)
def test_the_wait_is_shorter_by_what_all_workers_save_of_a_batch(
    batch_ms: float, line_ms: float, saved_ms: float
) -> None:
    example = read_example("#> totals idle_ms=22; steps step_ms=40\n" + ONCE + LOADER)
    lines = (WorkerLine("/example/train.py", at(ONCE, "#:hot"), "read", line_ms, 64),)
    facts = replace(example.profile.facts, workers=Workers(4, batch_ms, lines))
    result = diagnose(replace(example.profile, facts=facts), texts(example))
    (one,) = [one for one in result.findings if one.rule == "slow-sample-line"]
    assert one.predicted is not None
    assert one.predicted.step_ms == pytest.approx(40 - saved_ms)


def test_a_turn_of_a_loop_may_be_longer_than_each_of_its_short_lines() -> None:
    assert findings(LONG_LOOP, 100, 14_000) == [at(LONG_LOOP, "#:loop")]  # three of 7 us each
    assert findings(LONG_LOOP, 100, 8_000) == []  # of 12 us: each is worth a look of its own


def test_of_several_long_lines_none_is_the_slow_one() -> None:
    assert findings(LONG_FUNCTION, 30, 64) == []


UNLOADED = """\
#> device kind=cpu; steps step_ms=40
def lots(scans, lot):
    while True:
        some = []
        for scan in random.sample(scans, lot):  #> cost step_ms=0.1 idle_ms=0.1 calls=9
            some.append(decoded(scan))  #> cost step_ms=25 idle_ms=25 calls={calls} launches={launches}
        yield torch.stack(some)  #> cost step_ms=1 idle_ms=1 launches=2 calls=1
for x in lots(scans, 8):  #> cost step_ms=0.1 idle_ms=0.1 calls=1
    loss = model(x).mean()
    #^ cost step_ms=13 device_ms=13 launches=90 calls=1; op aten::linear shapes=[[{rows},64],[64,64]]
"""


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({}, True),
        ({"calls": 16}, True),  # two pictures of each
        ({"calls": 1}, False),
        ({"calls": 9}, False),  # of something else
        ({"rows": 1}, False),
        ({"launches": 40}, False),  # operators: other rules look at these
    ],
)
def test_samples_without_a_loader(facts: dict[str, int], found: bool) -> None:
    example = read_example(UNLOADED.format(**{"calls": 8, "rows": 8, "launches": 0} | facts))
    result = diagnose(example.profile, texts(example))
    assert [one.line for one in result.findings if one.rule == "slow-sample-line"] == [5] * found


SPREAD = """\
class Shapes:
    def __getitem__(self, index):
        rows = self.read(index)  #:hot
        return np.array([  #:hot at first
            self.table[one]
            for one in rows  #:hot
        ])
"""


def test_lines_of_one_statement_are_one() -> None:
    assert findings(SPREAD, 30, 64) == [at(SPREAD, "at first")]


def test_no_batch_takes_longer_than_the_steps_that_wait_for_it() -> None:
    """The timed batches are also those of the start, when the processors had other work."""
    example = read_example("#> totals idle_ms=22; steps step_ms=40\n" + ONCE + LOADER)
    for line_ms, found in ((90.0, True), (70.0, False)):
        lines = (WorkerLine("/example/train.py", at(ONCE, "#:hot"), "read", line_ms, 64),)
        facts = replace(example.profile.facts, workers=Workers(4, 400.0, lines))
        result = diagnose(replace(example.profile, facts=facts), texts(example))
        assert any(one.rule == "slow-sample-line" for one in result.findings) == found
