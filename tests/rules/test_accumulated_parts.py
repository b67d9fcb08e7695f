"""Gradients of several batches that an update adds up: fewer and larger ones, where that is the same."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.diagnosis.diagnose import diagnose
from warpline.model.change import Replace, Scale, Together
from warpline.model.report import Predicted
from warpline.rulekit import Context
from warpline.rulekit.accumulating import parts_of
from warpline.text.edits import apply

TRAIN = """\
        #^ cost step_ms=24 device_ms=4 idle_ms=20 cpu_ms=24 launches=2000 calls={calls}
        #^ op aten::mm shapes=[[{seen},64],[64,64]]
        {divided}
        loss.backward()  #> cost step_ms=14 device_ms=2 idle_ms=12 cpu_ms=14 launches=1000 calls={calls}
    optimizer.step()  #> cost step_ms=2 device_ms=1 idle_ms=1 cpu_ms=2 launches=10 calls=1
    {more}
"""
CONSTANTS = """\
#> steps step_ms=40 device_busy_percent=20; memory peak_bytes={peak}
import torch
import torch.nn.functional as F

ROWS = 8
PARTS = 4
batches = zip(inputs.split(ROWS), labels.split(ROWS))
for update in range(1000):
    for _ in range(PARTS):
        x, y = next(batches)
        loss = {loss}
"""
FACTS = {
    "peak": 4_000_000_000, "calls": 4, "seen": 8, "loss": "F.cross_entropy(model(x), y)",
    "divided": "loss = loss / PARTS", "more": "pass", "update": "pass", "before": "pass",
}  # fmt: skip


def edited(code: str, train: str = TRAIN, **facts: object) -> str | None:
    """The script with the edit, its annotations left out; None where nothing is offered."""
    example = read_example((code + train).format(**FACTS | facts))
    context = Context(example.profile, texts(example))
    if parts_of(context) is None:
        return None
    found = [one for one in diagnose(example.profile, texts(example)).findings if one.rule == "small-batch"]
    return apply(example.text, found[0].fixes[0].edits) if found and found[0].fixes else None


@pytest.mark.parametrize(
    "more",
    [
        "pass",
        "print(f'{{loss.item() * PARTS:.3f}}', PARTS, ROWS)",
        "seen = ROWS * PARTS * update",
        "rate(update, len(inputs) // (ROWS * PARTS))",
        "total /= PARTS",
    ],
)
def test_as_many_samples_in_fewer_batches(more: str) -> None:
    made = edited(CONSTANTS, more=more)
    assert made is not None
    assert "ROWS = 32\n" in made
    assert "PARTS = 1\n" in made


@pytest.mark.parametrize(
    "facts",
    [
        {"divided": "pass"},  # the gradients would be smaller
        {"divided": "loss = loss / 4"},  # another number, which would stay
        {"loss": "F.cross_entropy(model(x), y, reduction='sum')"},  # it grows with the batch
        {"loss": "(model(x) - y).square().sum()"},
        {"calls": 8},  # another loop's turns are counted
        {"calls": 1},
        {"seen": 16},  # the batches have another size
        {"peak": 100_000_000_000},  # twice the rows do not fit
        {"more": "width = ROWS + 1"},
        {"more": "schedule(ROWS)"},
        {"more": "schedule(PARTS)"},
        {"more": "noise = torch.randn(PARTS, 3)"},
        {"more": "other = torch.randn(ROWS, 3)"},
        {"more": "rate = 0.1 * PARTS"},
        {"more": "for block in range(PARTS): grow(block)"},
    ],
)
def test_what_would_change_is_left_alone(facts: dict[str, object]) -> None:
    assert edited(CONSTANTS, **facts) is None


def test_as_few_as_memory_holds() -> None:
    small = edited(CONSTANTS, peak=50_000_000_000)
    assert small is not None
    assert "ROWS = 16\n" in small
    assert "PARTS = 2\n" in small
    code = CONSTANTS.replace("PARTS = 4", "PARTS = 64")
    large = edited(code, calls=64)  # all that is in use at the peak may grow
    assert large is not None
    assert "PARTS = 4\n" in large
    assert "ROWS = 128\n" in large
    weights = code.replace("peak_bytes={peak}", "peak_bytes={peak} allocated_bytes=3000000000")
    grown = edited(weights, calls=64)  # the weights do not
    assert grown is not None
    assert "PARTS = 1\n" in grown
    assert "ROWS = 512\n" in grown
    assert (
        edited(
            CONSTANTS,
            TRAIN.replace("idle_ms=20", "idle_ms=0")
            .replace("idle_ms=12", "idle_ms=0")
            .replace("device_ms=4", "device_ms=24")
            .replace("device_ms=2", "device_ms=14"),
        )
        is None
    )


def test_the_hosts_work_is_done_once_and_the_optimizer_as_before() -> None:
    example = read_example((CONSTANTS + TRAIN).format(**FACTS))
    diagnosis = diagnose(example.profile, texts(example))
    (mine,) = [one for one in diagnosis.findings if one.rule == "small-batch"]
    change = diagnosis.changes[mine.id]
    assert isinstance(change, Together)
    scaled = {one.places[0][1]: (one.device, one.host) for one in change.changes if isinstance(one, Scale)}
    assert scaled == {10: (1.0, 0.25), 12: (1.0, 0.25)}


FIELDS = """\
#> steps step_ms=40 device_busy_percent=20; memory peak_bytes={peak}
from dataclasses import dataclass
import torch
import torch.nn.functional as F

@dataclass
class Plan:
    rows: int = 8
    parts: int = 4

class Deeds:
    def parts(self, rows):
        while True:
            yield from zip(self.inputs.split(rows), self.wanted.split(rows))

plan = Plan()
parts = Deeds().parts(plan.rows)
for update in range(1000):
    for _ in range(plan.parts):
        x, y = next(parts)
        loss = {loss}
"""


def test_fields_and_a_generator() -> None:
    made = edited(FIELDS, divided="loss = loss / plan.parts")
    assert made is not None
    assert "rows: int = 32\n    parts: int = 1\n" in made
    assert edited(FIELDS.replace("Plan()", "Plan(rows=8)"), divided="loss = loss / plan.parts") is None
    other = FIELDS.replace("plan = Plan()", "plan = Plan()\nothers = Deeds().parts(3)")
    assert edited(other, divided="loss = loss / plan.parts") is None


OBJECT = """\
#> steps step_ms=40 device_busy_percent=20; memory peak_bytes={peak}
import torch
import torch.nn.functional as F

class Course:
    def __init__(self, deeds, parts=4):
        {given}

    def train(self, batch):
        for x, y in zip(batch[0].chunk(self.parts), batch[1].chunk(self.parts)):
            loss = {loss}
"""


@pytest.mark.parametrize(
    ("given", "edits"),
    [
        ("self.parts = parts; self.deeds = deeds", True),
        ("self.deeds, self.parts = deeds, parts", True),
        ("self.parts, self.deeds = deeds, parts", False),
        ("self.deeds, self.parts = deeds, parts; self.shown = [parts, deeds]", False),
    ],
)
def test_defaults_of_a_constructor_that_names_several_at_once(given: str, edits: bool) -> None:
    inner = "".join(f"    {line}\n" for line in TRAIN.splitlines()) + "\nCourse(deeds).train(batch)\n"
    made = edited(OBJECT.replace("{given}", given), inner, divided="loss = loss / self.parts")
    assert (made is not None and "parts=1" in made) is edits


LOADER = """\
#> steps step_ms=40 device_busy_percent=20; memory peak_bytes={peak}; manifest argv='{argv}'
import argparse
import torch.nn.functional as F
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--accumulate", type=int, default=4)
args = parser.parse_args()
batches = iter(DataLoader(deeds, batch_size=args.batch))  #> site loader batch_size=8 num_workers=0
for update in range(1000):
    for _ in range(args.accumulate):
        x, y = next(batches)  #> use loader; cost cpu_ms=0.1 calls=4
        loss = {loss}
"""


def test_options_and_a_loader() -> None:
    made = edited(LOADER, divided="loss /= args.accumulate", argv="[]")
    assert made is not None
    assert '"--batch", type=int, default=32' in made
    assert '"--accumulate", type=int, default=1' in made
    assert edited(LOADER, divided="loss /= args.accumulate", argv='["--batch","8"]') is None


DRAWN = """\
#> steps step_ms=40 device_busy_percent=20; memory peak_bytes={peak}; manifest argv='{argv}'
import torch
import torch.nn.functional as F

gradient_accumulation_steps = 2 * 2  # for larger batches
batch_size = 8
block_size = 16
exec(open("configurator.py").read())
if ddp:
    assert gradient_accumulation_steps % world == 0  #> skipped
    gradient_accumulation_steps //= world  #> skipped
tokens = gradient_accumulation_steps * world * batch_size * block_size

def get_batch(split):
    ix = torch.randint(len(data) - block_size, (batch_size,))  #> cost function=get_batch cpu_ms=0.1
    return torch.stack([data[i:i + block_size] for i in ix])
    #^ cost function=get_batch cpu_ms=0.2 device_ms=0.1 copy_ms=0.1

x, y = get_batch("train")
for update in range(1000):
    for micro_step in range(gradient_accumulation_steps):
        if ddp:
            model.require_sync = micro_step == gradient_accumulation_steps - 1  #> skipped
        x, y = get_batch("train")
        #^ cost cpu_ms=0.1 launches=1 calls=4 called='[["/example/train.py","get_batch"]]'
        loss = {loss}
"""


def test_settings_of_a_module_and_a_batch_that_a_function_draws() -> None:
    divided = "loss = loss / gradient_accumulation_steps"
    made = edited(DRAWN, divided=divided, argv="[]")
    assert made is not None
    assert "\ngradient_accumulation_steps = 1  # for" in made
    assert "\nbatch_size = 32\n" in made
    for word in ("--batch_size=8", "config/train_char.py"):  # they may give the number another value
        assert edited(DRAWN, divided=divided, argv=f'["{word}"]') is None
    assert edited(DRAWN, divided=divided, argv='["--compile=False"]') is not None
    example = read_example((DRAWN + TRAIN).format(**FACTS | {"divided": divided, "argv": "[]"}))
    parts = parts_of(Context(example.profile, texts(example)))
    assert parts is not None
    # What draws a batch takes longer for a larger one.
    assert sorted(cost.line for cost in parts.lines) == [23, 25]


def test_pieces_of_one_batch() -> None:
    code = CONSTANTS.replace("for _ in range(PARTS)", "for x, y in batch.chunk(PARTS)")
    code = code.replace("        x, y = next(batches)\n", "").replace("ROWS = 8\n", "").replace("ROWS", "8")
    made = edited(code)
    assert made is not None
    assert "PARTS = 1\n" in made
    named = code.replace("for x, y in batch.chunk", "parts = batch.chunk").replace("(PARTS):", "(PARTS)")
    named = named.replace("        loss =", "    for x in parts:\n        loss =")
    for divided in ("loss = loss / PARTS", "loss = loss / len(parts)"):
        made = edited(named, divided=divided)
        assert made is not None
        assert "PARTS = 1\n" in made
    beside = named.replace("for x in parts", "for x, noise in zip(parts, noises)")
    assert edited(beside) is None
    assert edited(named, divided="kept.append(loss / PARTS + parts[0])") is None


def test_numbers_by_a_condition() -> None:
    code = CONSTANTS.replace("PARTS = 4", "PARTS = 4 if full else 2").replace(
        "ROWS = 8", "ROWS = 3 if quick else 8"
    )
    made = edited(code)
    assert made is not None
    assert "PARTS = 1 if full else 2\n" in made
    assert "ROWS = 3 if quick else 32\n" in made
    assert edited(code.replace("PARTS = 4 if full else 2", "PARTS = 4 if full else 4")) is None


COUNTED = """\
#> steps step_ms=40 device_busy_percent=20; memory peak_bytes={peak}
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

ACCUMULATE = 4
loader = DataLoader(deeds, batch_size=8)  #> site loader batch_size=8 num_workers=0
{before}
for epoch in range(9):
    for i, (x, y) in enumerate(loader):  #> use loader; cost cpu_ms=0.1 calls=4
        loss = {loss} / ACCUMULATE
        #^ cost step_ms=24 device_ms=4 idle_ms=20 cpu_ms=24 launches=2000 calls={calls}
        #^ op aten::mm shapes=[[{seen},64],[64,64]]
        loss.backward()  #> cost step_ms=14 device_ms=2 idle_ms=12 cpu_ms=14 launches=1000 calls={calls}
        if (i + 1) % ACCUMULATE == 0 or i + 1 == len(loader):
            optimizer.step()  #> cost step_ms=2 device_ms=1 idle_ms=1 cpu_ms=2 launches=10 calls=1
            {update}
        {more}
"""


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({}, True),
        ({"update": "scheduler.step()"}, True),
        ({"more": "if i % 50 == 0: print(i, loss)"}, True),
        ({"before": "scheduler = Cosine(optimizer, 9 * len(loader) // ACCUMULATE)"}, True),
        ({"more": "total += loss.item() / len(loader)"}, True),
        ({"more": "if i % 50 == 0: print(total / 50); total = 0.0"}, True),
        ({"before": "batches = len(loader)", "more": "total += loss.item() / batches"}, True),
        ({"before": "batches = len(loader)", "more": "warm_up(optimizer, i, batches)"}, False),
        ({"more": "if i % 50 == 0: print(i); i = 0"}, False),
        ({"before": "scheduler = Cosine(optimizer, 9 * len(loader))"}, False),  # of so many updates
        ({"more": "scheduler.step()"}, False),  # once for each batch, of which there are fewer
        ({"more": "if i >= 500: break"}, False),
        ({"more": "if i % 50 == 0: evaluate()"}, False),
        ({"more": "seen = i * 8"}, False),
    ],
)
def test_updates_that_a_condition_counts(facts: dict[str, str], found: bool) -> None:
    made = edited(COUNTED, "", **facts)
    if found:
        assert made is not None
        assert "ACCUMULATE = 1\n" in made
        assert "batch_size=32)" in made
    else:
        assert made is None


SETTINGS = """\
#> steps step_ms=40 device_busy_percent=20; memory peak_bytes={peak}
import torch
import torch.nn.functional as F
from torch.utils.data import BatchSampler, DataLoader, RandomSampler

class Settings:
    def __init__(self):
        self.rows = 8
        self.merged = 4
        self.lines = 50

settings = loaded("settings.py")
sampler = BatchSampler(RandomSampler(deeds), settings.rows, False)
loader = DataLoader(deeds, batch_sampler=sampler)  #> site loader num_workers=0
{before}
for i, (x, y) in enumerate(loader):  #> use loader; cost cpu_ms=0.1 calls=4
    loss = {loss} / settings.merged
    #^ cost step_ms=24 device_ms=4 idle_ms=20 cpu_ms=24 launches=2000 calls={calls}
    #^ op aten::mm shapes=[[{seen},64],[64,64]]
    loss.backward()  #> cost step_ms=14 device_ms=2 idle_ms=12 cpu_ms=14 launches=1000 calls={calls}
    if (i + 1) % settings.merged == 0:
        optimizer.step()  #> cost step_ms=2 device_ms=1 idle_ms=1 cpu_ms=2 launches=10 calls=1
        scheduler.step()
"""


def test_settings_of_an_object_that_a_call_gives_and_a_sampler_of_batches() -> None:
    made = edited(SETTINGS, "")
    assert made is not None
    assert "self.rows = 32\n" in made
    assert "self.merged = 1\n" in made
    here = edited(SETTINGS, "", before="settings.merged = 4")  # in place of the first
    assert here is not None
    assert "settings.merged = 1\n" in here
    twice = "settings.merged = 2\nsettings.merged = 4"
    assert edited(SETTINGS, "", before=twice) is None


ACCELERATED = """\
#> steps step_ms=40 device_busy_percent=20; memory peak_bytes={peak}
from accelerate import Accelerator
from torch.utils.data import DataLoader

accelerator = Accelerator(gradient_accumulation_steps=4)
#^ site framework construction=accelerate.Accelerator with.gradient_accumulation_steps=4
loader = DataLoader(deeds, batch_size=8)  #> site loader batch_size=8 num_workers=0
for x, y in loader:  #> use loader; cost cpu_ms=0.1 calls=4
    with accelerator.accumulate(model):
        loss = {loss}
        #^ cost step_ms=24 device_ms=4 idle_ms=20 cpu_ms=24 launches=2000 calls={calls}
        #^ op aten::mm shapes=[[{seen},64],[64,64]]
        accelerator.backward(loss)
        #^ cost step_ms=14 device_ms=2 idle_ms=12 cpu_ms=14 launches=1000 calls={calls}
        optimizer.step()  #> cost step_ms=2 device_ms=1 idle_ms=1 cpu_ms=2 launches=10 calls={calls}
"""


def test_updates_that_accelerate_counts() -> None:
    made = edited(ACCELERATED, "")
    assert made is not None
    assert "Accelerator(gradient_accumulation_steps=1)" in made
    assert "batch_size=32)" in made
    assert edited(ACCELERATED, "", calls=1) is None  # a step is a batch
    example = read_example(ACCELERATED.format(**FACTS))
    parts = parts_of(Context(example.profile, texts(example)))
    assert parts is not None
    assert [cost.line for cost in parts.lines] == [8, 9]  # the optimizer's work is done as often


def test_short_kernels_gain_as_well() -> None:
    busy = TRAIN.replace("idle_ms=20", "idle_ms=0.5").replace("idle_ms=12", "idle_ms=0.5")
    busy = busy.replace("device_ms=4", "device_ms=23").replace("device_ms=2", "device_ms=13")
    assert edited(CONSTANTS, busy) is None
    kernel = "        #^ kernel ticks count={count} device_ms=20"
    for count, offered in ((8, False), (4000, True)):
        line, short = "        #^ op aten::mm", kernel.format(count=count)
        assert (edited(CONSTANTS, busy.replace(line, f"{short}\n{line}")) is not None) == offered


def test_on_a_cpu_larger_batches_are_tried() -> None:
    code = CONSTANTS.replace("steps step_ms=40", "device kind=cpu; steps step_ms=40")
    code = code.replace("peak_bytes={peak}", "peak_bytes={peak} free_bytes=90000000000")
    example = read_example((code + TRAIN).format(**FACTS))
    for after, lines in ((30.0, [4]), (39.0, [])):
        diagnosis = diagnose(
            example.profile,
            texts(example),
            predict=lambda profile, change, after=after: Predicted(after, 40 / after, "simulated"),
        )
        found = [one for one in diagnosis.findings if one.rule == "small-batch"]
        assert [one.line for one in found] == lines
        for one in found:
            change = diagnosis.changes[one.id]
            assert isinstance(change, Together)
            rows = [each for each in change.changes if isinstance(each, Replace)]
            assert [(each.by, each.options) for each in rows] == [("rows", ("4",))] * 2
            assert [each.host for each in change.changes if isinstance(each, Scale)] == [0.25, 0.25]
    assert edited(code.replace("90000000000", "4900000000")) is None  # it would not fit
