"""Small batches where the CPU is the device: of steps that train only those that hardly compute."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.annotated import FILE, read_example, texts
from tests.conftest import warpline
from warpline import pipeline
from warpline.diagnosis.diagnose import diagnose
from warpline.model.change import Change, JoinedBatches, LargerBatch, Replace, Scale, Together
from warpline.model.report import Passes, Predicted, Tokens
from warpline.rulekit import Context, Refused
from warpline.rulekit.batches import doubled
from warpline.rulekit.more_rows import of_lines
from warpline.rules.small_batch import SmallBatch
from warpline.text.edits import apply
from warpline.wire.births import Argument, Holder

CODE = """\
#> device kind={device}; steps step_ms=20; memory peak_bytes={peak} free_bytes=8000000000
from torch.utils.data import DataLoader
loader = DataLoader(patients, batch_size=3)  #> site loader batch_size=3 num_workers=0
optimizer = Evolution(net)
for rows in loader:
    #^ use loader; cost step_ms=2 idle_ms=2 loader_ms=2 cpu_ms=2 launches=9
    risk = net(rows)
    #^ cost step_ms=14 device_ms=7 idle_ms=7 cpu_ms=14 launches=700 {more}
    kept.append(risk.sigmoid())  #> cost step_ms=4 device_ms=3 idle_ms=1 cpu_ms=4 launches=90
    optimizer.tell(risk)  #> {uses}
"""
CPU = {"device": "cpu", "peak": 1_000_000_000, "more": "", "uses": ""}


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({}, True),
        ({"more": "backward_ms=2"}, False),
        ({"uses": "site optimizer type=SGD; use optimizer; cost cpu_ms=0.1"}, False),
        ({"peak": 9_000_000_000}, False),  # twice that does not fit
        ({"device": "rocm"}, False),  # nothing says how much of it a kernel fills
        ({"device": "mps"}, False),
    ],
)
def test_of_steps_that_train_nothing(facts: dict[str, object], found: bool) -> None:
    example = read_example(CODE.format(**CPU | facts))
    diagnosis = diagnose(example.profile, texts(example))
    mine = [one for one in diagnosis.findings if one.rule == "small-batch"]
    assert [one.line for one in mine] == [2] * found
    if found:
        change = diagnosis.changes[mine[0].id]
        assert isinstance(change, Together)
        assert {one.value for one in mine[0].evidence if one.metric == "time between operators"} == {
            8.0,
            40.0,
        }
        assert [one.places[0][1] for one in change.changes if isinstance(one, Replace)] == [5, 6]
        assert change.changes[-1] == LargerBatch(2)


def test_work_that_is_all_operators_gains_nothing() -> None:
    code = CODE.format(**CPU).replace("device_ms=7 idle_ms=7", "device_ms=13.5 idle_ms=0.5")
    example = read_example(code)
    assert "small-batch" not in {one.rule for one in diagnose(example.profile, texts(example)).findings}


@pytest.mark.parametrize(("backward", "scaled"), [("", True), ("backward_ms=10", False)])
def test_the_line_of_a_framework_does_more_than_the_update(backward: str, scaled: bool) -> None:
    """An update takes as long for twice the samples. ``trainer.train()`` has the passes as well."""
    example = read_example(CODE.format(**CPU | {"uses": f"site optimizer; use optimizer; cost {backward}"}))
    context = Context(example.profile, texts(example))
    updates = [Scale(((FILE, 7),), device=0.5)] if scaled else []
    found = [one for one in of_lines(context, (), 3) if isinstance(one, Scale) and one.device != 1]
    assert found == updates


WIDE = """\
#> device kind=cpu; steps step_ms=20; memory peak_bytes=1000000000 free_bytes=8000000000
import torch
for at in range(0, len(stars), 6):
    found.append(model(stars[at : at + 6]))
    #^ cost step_ms={ms} device_ms={ms} calls=1
    #^ op aten::addmm shapes={shapes} device_ms={ms}
"""
LAYER = "[[900],[6,700],[700,900]]"


def found_at(code: str, after_ms: float) -> list[int]:
    """The lines, where each sample would take so many of the 20 ms that it takes now."""
    example = read_example(code)
    diagnosis = diagnose(
        example.profile,
        texts(example),
        predict=lambda profile, change: Predicted(after_ms, 20 / after_ms, "simulated"),
    )
    assert not [note for note in diagnosis.notes if "failed" in note]
    return [one.line for one in diagnosis.findings if one.rule == "small-batch"]


@pytest.mark.parametrize(
    ("ms", "shapes", "after_ms", "lines"),
    [
        (19, LAYER, 13.0, [2]),  # the layer reads its weights, which twice the rows would share
        (19, LAYER, 19.5, []),  # it does not wait for them
        (19, LAYER, 17.0, []),  # it mostly computes
        (1, LAYER, 13.0, []),  # hardly any of the step
        (19, "[[90],[6000,70],[70,90]]", 13.0, []),  # mostly rows
        (19, "[[6,70,80],[6,80,90]]", 13.0, []),  # each row has a matrix of its own
    ],
)
def test_products_that_mostly_read_weights(ms: float, shapes: str, after_ms: float, lines: list[int]) -> None:
    assert found_at(WIDE.format(ms=ms, shapes=shapes), after_ms) == lines


@pytest.mark.parametrize(("side", "lines"), [(2, [2]), (20, [])])
def test_convolutions_that_mostly_read_weights(side: int, lines: list[int]) -> None:
    shapes = f"[[6,300,{side},{side}],[400,300,3,3]]"
    code = WIDE.replace("addmm", "mkldnn_convolution").format(ms=19, shapes=shapes)
    assert found_at(code, 13.0) == lines


LEARNS = """\
#> device kind=cpu; steps step_ms=1
from torch.utils.data import DataLoader
loader = DataLoader(recipes, batch_size=6)  #> site loader batch_size=6 batches_per_epoch={batches}
for words in loader:  #> cost step_ms=0.1 cpu_ms=0.1 idle_ms=0.1 loader_ms=0.1 calls=1; use loader
    marks = {marks}  #> cost step_ms={ms} cpu_ms={ms} idle_ms={ms} launches=20 calls={calls}
    loss = net(marks).mean()  #> cost step_ms=0.2 device_ms=0.2 backward_ms=0.1 launches=20 calls=1
    loss.backward()
    optimizer.step()
"""
ONCE = {"batches": 70, "marks": "embed(words)", "ms": 0.7, "calls": 1}


@pytest.mark.parametrize(
    ("facts", "lines"),
    [
        ({}, [2]),
        ({"ms": 0.4}, []),  # how many samples an update sees is more important
        ({"calls": 6}, []),  # once for each sample
        ({"marks": "tensor([len(one) for one in words])"}, []),
        ({"batches": 1}, []),  # no more samples
    ],
)
def test_steps_that_train_and_hardly_compute(facts: dict[str, object], lines: list[int]) -> None:
    example = read_example(LEARNS.format(**ONCE | facts))
    found = diagnose(example.profile, texts(example)).findings
    assert [one.line for one in found if one.rule == "small-batch"] == lines


DEEP = """\
#> device kind=cpu; steps step_ms=20; memory peak_bytes=1000000000 free_bytes=8000000000
from torch.utils.data import DataLoader
optimizer = SGD(net.parameters())  #> site optimizer type=SGD

class Tower(Module):
    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
            #^ cost step_ms=14 device_ms=9 backward_ms=6 idle_ms=5 launches=90 calls=12
            #^ op aten::linear shapes={rows}
        return x

loader = DataLoader(recipes, batch_size=6)  #> site loader batch_size=6 batches_per_epoch=70
for words in loader:  #> cost step_ms=1 cpu_ms=1 idle_ms=1 loader_ms=1 calls=1; use loader
    loss = net(words)  #> cost step_ms=1 device_ms=1 launches=4 calls=1
    loss.backward()
    optimizer.step()  #> cost step_ms=4 device_ms=2 idle_ms=2 launches=90 calls=1; use optimizer
"""


@pytest.mark.parametrize(
    ("rows", "after_ms", "found", "changed"),
    [
        ("[[6,30],[30,30]]", 14.0, [10], Replace),
        ("[[6,30],[30,30]]", 16.0, [], Replace),  # twice the rows take longer
        ("[[30],[30,30]]", 14.0, [10], Scale),  # one sample after the other
    ],
)
def test_layers_that_run_more_often_than_a_batch_has_samples(
    rows: str, after_ms: float, found: list[int], changed: type
) -> None:
    example = read_example(DEEP.format(rows=rows))
    made = list[Change]()

    def predict(profile: object, change: Change) -> Predicted:
        made.extend(change.changes if isinstance(change, Together) else ())
        return Predicted(after_ms, 20 / after_ms, "probed")

    diagnosis = diagnose(example.profile, texts(example), predict=predict)
    assert [one.line for one in diagnosis.findings if one.rule == "small-batch"] == found
    at = {one.places[0][1]: one for one in made if isinstance(one, (Replace, Scale)) and one.places}
    assert isinstance(at[7], changed)
    assert at[14] == Scale((at[14].places[0],), device=0.5)  # as many parameters


QUEUED = """\
#> device kind=cpu; steps step_ms=20; memory peak_bytes=1000000000 free_bytes=8000000000
import collections
from dataclasses import dataclass
import torch

@dataclass
class Config:
    most: int = 6

class Desk:
    def __init__(self, rows):
        self.waiting = collections.deque(rows)

    def take(self, most):
        {take}  #> cost step_ms=0.1 cpu_ms=0.1 calls=1
        return torch.stack(taken)

def serve(cfg, model, desk):
    while desk.waiting:
        rows = desk.take(cfg.most)  #> cost step_ms=0.1 cpu_ms=0.1 calls=1
        found.append(model(rows))
        #^ cost step_ms=19 device_ms=19 calls=1; op aten::linear shapes=[[{rows},700],[900,700],[900]]
        #^ op aten::addmm shapes=[[900],[{rows},700],[700,900]] device_ms=19
"""
LEAST = "taken = [self.waiting.popleft() for _ in range(min(most, len(self.waiting)))]"
WHILE = """taken = []
        while self.waiting and len(taken) < most:
            taken.append(self.waiting.pop(0))"""
BREAK = """taken = []
        for _ in range(most):
            if not self.waiting:
                break
            taken.append(self.waiting.popleft())"""
CUT = "taken, self.waiting = self.waiting[:most], self.waiting[most:]"
DELETED = """taken = list(self.waiting[:most])  #> cost step_ms=0.1 cpu_ms=0.1 calls=1
        del self.waiting[:most]"""


@pytest.mark.parametrize(
    ("take", "rows", "found"),
    [
        (LEAST, 6, True),
        (WHILE, 6, True),
        (BREAK, 6, True),
        (CUT, 6, True),
        (DELETED, 6, True),
        (LEAST, 5, False),  # no more waited
        ("taken = [self.waiting.popleft() for _ in range(most)]", 6, False),  # it may find nothing
        ("taken = list(self.waiting)[:most]", 6, False),  # the same again
        (WHILE.replace("self.waiting and ", ""), 6, False),
    ],
)
def test_what_waits_in_a_queue(take: str, rows: int, found: bool) -> None:
    assert found_at(QUEUED.format(take=take, rows=rows), 13.0) == [7] * found


DRAWN = """\
#> device kind=cpu; steps step_ms=20; memory peak_bytes=1000000000 free_bytes=8000000000
import random
import numpy as np
import torch
LOT = 6

class Shelf:
    def sample(self, lot):
        return {draw}  #> cost step_ms=0.1 cpu_ms=0.1 calls={calls}

for turn in range(1000):
    x = torch.stack([shelf.rows[at] for at in shelf.sample(LOT)])  #> cost step_ms=0.1 cpu_ms=0.1 calls=1
    out = model(x)
    #^ cost step_ms=19 device_ms=7 idle_ms=12 calls=1 launches=300
    #^ op aten::linear shapes=[[6,700],[900,700],[900]]
"""


@pytest.mark.parametrize(
    ("draw", "calls", "found"),
    [
        ("random.sample(range(len(self)), lot)", 1, True),
        ("torch.randint(len(self), (lot,))", 1, True),
        ("torch.randperm(len(self))[:lot]", 1, True),
        ("np.random.choice(len(self), size=lot, replace=False)", 1, True),
        ("self.rng.integers(0, len(self), (lot,))", 1, True),
        ("torch.randint(len(self), (lot, 9))", 1, False),  # no places of samples
        ("torch.randint(len(self), (lot + 1,))", 1, False),  # other rows than the layers have
        ("random.sample(range(len(self)), lot)", 6, False),  # for each sample
    ],
)
def test_what_is_drawn_at_random(draw: str, calls: int, found: bool) -> None:
    assert found_at(DRAWN.format(draw=draw, calls=calls), 13.0) == [4] * found


PARTLY = """\
#> device kind=cpu; steps step_ms=20; memory peak_bytes=1000000000 free_bytes=8000000000
import random
import torch
from torch.utils.data import DataLoader, Sampler

class Mixed({base}):
    def __init__(self, kinds, of_each={of_each}):
        self.kinds, self.of_each = kinds, of_each

    def __iter__(self):
        while True:
            yield [at for kind in self.kinds for at in random.sample(kind, self.of_each)]
            #^ cost step_ms=0.1 cpu_ms=0.1 calls={calls}

loader = DataLoader(rows, batch_sampler=Mixed(kinds))
#^ site loader num_workers=0 with.batch_sampler={given}
for x in loader:  #> cost step_ms=0.1 cpu_ms=0.1 calls=1; use loader
    out = model(x)
    #^ cost step_ms=19 device_ms=7 idle_ms=12 calls=1 launches=300
    #^ op aten::linear shapes=[[6,700],[900,700],[900]]
"""


@pytest.mark.parametrize(
    ("calls", "of_each", "given", "found"),
    [
        (2, 3, "Mixed", True),
        (6, 1, "Mixed", True),
        (6, 1, "Other", False),  # one for each row, as of an augmentation
        (3, 3, "Mixed", False),  # other rows than the layers have
    ],
)
def test_a_batch_of_several_draws(calls: int, of_each: int, given: str, found: bool) -> None:
    text = PARTLY.format(base="Sampler", calls=calls, of_each=of_each, given=given)
    assert found_at(text, 13.0) == [6] * found


CUT_OUT = """\
#> device kind=cpu; steps step_ms=20; memory peak_bytes=1000000000 free_bytes=8000000000
import torch

class Rows:
    def more(self, lot):
        start = self.at
        {ahead}
        return {rows}  #> cost step_ms=0.1 cpu_ms=0.1 calls={calls}

for turn in range(1000):
    x = torch.from_numpy(shelf.more(6))  #> cost step_ms=0.1 cpu_ms=0.1 calls=1
    out = model(x)
    #^ cost step_ms=19 device_ms=7 idle_ms=12 calls=1 launches=300
    #^ op aten::linear shapes=[[6,700],[900,700],[900]]
"""


@pytest.mark.parametrize(
    ("ahead", "rows", "calls", "found"),
    [
        ("self.at += lot", "self.x[start : self.at]", 1, True),
        ("self.at = self.at + lot", "self.x[start : self.at]", 1, True),
        ("self.at += lot", "self.x[start : start + lot]", 1, True),
        ("self.at += lot", "self.x[start : self.at]", 6, False),  # of each row
        ("self.at += lot", "self.x[:, start : self.at]", 1, False),  # columns
        ("self.at += lot", "[one[start : self.at] for one in self.x]", 1, False),
    ],
)
def test_the_next_rows_of_an_array(ahead: str, rows: str, calls: int, found: bool) -> None:
    assert found_at(CUT_OUT.format(ahead=ahead, rows=rows, calls=calls), 13.0) == [10] * found


SETTINGS = """\
#> device kind=cpu; steps step_ms=20; memory peak_bytes=1000000000 free_bytes=8000000000
import yaml

def scores(net, rows, lot):
    for at in range(0, len(rows), lot):
        kept.append(net(rows[at : at + lot]))
        #^ cost step_ms=19 device_ms=7 idle_ms=12 calls=1 launches=300
        #^ op aten::linear shapes=[[{rows},700],[900,700]]
        #^ op aten::linear shapes=[[{others},700],[900,700]]

def main(path):
    with open(path) as file:
        settings = yaml.safe_load(file)
    scores(net, rows, settings["lot"])
    {again}
"""


@pytest.mark.parametrize(
    ("rows", "others", "again", "line"),
    [
        (6, 6, "", 10),
        (6, 6, "scores(net, others, 9)", 4),  # it is not known which call
        (6, 24, "", None),  # nor which number
    ],
)
def test_a_size_that_is_not_in_the_text(rows: int, others: int, again: str, line: int | None) -> None:
    found = found_at(SETTINGS.format(rows=rows, others=others, again=again), 13.0)
    assert found == ([] if line is None else [line])


ONE_BY_ONE = """\
#> device kind=cpu; steps step_ms=20; memory peak_bytes=1000000000 free_bytes=8000000000
import torch
{before}
for turn, (x, y) in {over}:
    {out} = net({given})
    #^ cost step_ms=18 device_ms=3 idle_ms=15 calls=1 launches=300 backward_ms={backward}
    #^ op aten::linear shapes=[[{rows},700],[900,700]]
    loss_of(out, y).backward()  #> cost step_ms=1 cpu_ms=1 calls=1
"""
EACH = {
    "before": "pairs = list(zip(rows, marks))",
    "over": "enumerate(pairs)",
    "out": "out",
    "given": "x",
    "backward": 1,
    "rows": 1,
}


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({}, True),
        ({"over": "enumerate(zip(rows, self.marks))"}, True),
        ({"rows": 2}, False),
        ({"out": "out, state", "given": "x, state"}, False),  # the next turn needs it
        ({"over": "enumerate(read(path))"}, False),  # nothing says what is there
    ],
)
def test_rows_that_training_takes_one_by_one(facts: dict[str, object], found: bool) -> None:
    assert found_at(ONE_BY_ONE.format(**EACH | facts), 13.0) == [3] * found


ANSWERED = """\
#> device kind=cpu; steps step_ms=20; memory peak_bytes=1000000000 free_bytes=8000000000
import torch
def answer(row):
    return {call}(row)
    #^ cost step_ms=19 device_ms=3 idle_ms=16 calls={calls} launches=300
    #^ op aten::linear shapes=[[{rows},700],[900,700]]{more}
answers = []
for row in {over}:
    answers.append({given})  #> cost step_ms=1 cpu_ms=1 calls={calls}
"""
ASKED = {"call": "model", "calls": 1, "rows": 1, "more": "", "over": "rows", "given": "answer(row)"}
GROWING = "".join(
    f"\n    #^ op aten::cat count=1 shapes=[[1,{length},64,1,1,64],[]]" for length in (5, 6, 7, 8)
)


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({}, True),
        ({"over": "range(len(rows))"}, True),
        ({"over": "range(turns)"}, False),  # nothing says what is there
        ({"over": "read(path)"}, False),
        ({"given": "answer(same)"}, False),  # trials of the same
        ({"rows": 2}, False),
        ({"more": GROWING}, False),  # a sequence, whose tokens follow each other
    ],
)
def test_rows_that_a_model_gets_one_by_one(facts: dict[str, object], found: bool) -> None:
    code = ANSWERED.format(**ASKED | facts)
    assert found_at(code, 13.0) == [5] * found


@pytest.mark.parametrize(
    ("facts", "prefills", "found"),
    [
        ({}, 0.1, True),
        ({"more": GROWING}, 0.1, True),
        ({}, 0.0, False),  # one long call
        ({"over": "requests()"}, 0.1, False),  # nothing says that the next waits
        ({"rows": 4}, 0.1, False),
    ],
)
def test_prompts_that_generate_gets_one_by_one(
    facts: dict[str, object], prefills: float, found: bool
) -> None:
    """The steps are tokens: a call takes many of them, and so does a turn of the loop."""
    example = read_example(ANSWERED.format(**ASKED | {"call": "model.generate", "calls": 0.1} | facts))
    generating, calling = example.profile.lines
    tokens = Tokens(Passes(prefills, 1, 10, 5, 5, 9), Passes(0.9, 15, 16, 2, 14, 15), 2, 0)
    lines = (
        replace(generating, tokens=tokens, function="answer"),
        replace(calling, called=((FILE, "answer"),)),
    )
    context = Context(replace(example.profile, lines=lines), texts(example))
    assert [one.line for one in SmallBatch().find(context)] == [5] * found


GATHERED = """\
#> device kind=cpu; steps step_ms=20; memory peak_bytes=1000000000 free_bytes=8000000000
import torch

def lots(lines, lot):
    some = []
    for line in lines:  #> cost step_ms=0.1 cpu_ms=0.1 calls=7
        some.append(line)
        if len(some) {least} lot:
            yield torch.stack(some)  #> cost step_ms=0.1 cpu_ms=0.1 calls=1
            some = []

for x in lots(lines, 6):
    out = model(x)
    #^ cost step_ms=19 device_ms=7 idle_ms=12 calls=1 launches=300
    #^ op aten::linear shapes=[[{rows},700],[900,700]]
"""


@pytest.mark.parametrize(
    ("least", "rows", "found"), [("==", 6, True), (">=", 6, True), (">", 6, False), ("==", 5, False)]
)
def test_what_a_generator_gathers(least: str, rows: int, found: bool) -> None:
    assert found_at(GATHERED.format(least=least, rows=rows), 13.0) == [11] * found


CHOSEN = """\
import os
from dataclasses import dataclass

import torch
from torch.utils.data import DataLoader, TensorDataset

TINY = os.environ.get("TINY") == "1"

@dataclass
class Config:
    width: int = 16
    batch: int = 2 if TINY else 8

def main(config):
    net = torch.nn.Sequential(*[torch.nn.Linear(config.width, config.width) for _ in range(8)])
    rows = TensorDataset(torch.randn(40 * config.batch, config.width))
    with torch.no_grad():
        for (x,) in DataLoader(rows, batch_size=config.batch):
            net(x)

main(Config())
"""
IN_A_DICT = (
    CHOSEN.replace("    batch: int = 2 if TINY else 8\n", "")
    .replace("main(Config())", 'main({"width": 16, "loader": {"batch_size": 2 if TINY else 8}})')
    .replace("batch_size=config.batch", '**config["loader"]')
    .replace("config.batch", "8")
    .replace("config.width", 'config["width"]')
)


@pytest.mark.process
@pytest.mark.parametrize("code", [CHOSEN, IN_A_DICT])
def test_one_of_two_values_that_a_condition_chooses(tmp_path: Path, code: str) -> None:
    (script := tmp_path / "chosen.py").write_text(code)
    done = warpline("profile", "--steps", "3", script.name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (run,) = (path.parent for path in (tmp_path / ".warpline/runs").glob("*/manifest.json"))
    profile = pipeline.profile_of(run)
    context = Context(profile, profile.sources.get)
    (site,) = context.sites("loader")
    text = apply(code, doubled(context, site, 8).edits)
    assert text == code.replace("2 if TINY else 8", "2 if TINY else 16")


LIBRARY_S = """\
SERVICE = {"top": 1, "batch_size": 6}
score = bound(classifier, **SERVICE)
for texts in queue:
    found = score(texts)  #> site loader batch_size=6 num_workers=0
"""


@pytest.mark.parametrize("held", [True, False])
def test_a_loader_that_a_library_makes_has_its_size_where_that_is_written(held: bool) -> None:
    example = read_example(LIBRARY_S)
    holder = Holder("entry", FILE, 1, LIBRARY_S.index("6")) if held else None
    given = Argument("batch_size", 6, passed=True, holder=holder)
    context = Context(example.profile, texts(example))
    (site,) = (replace(one, arguments=(given,)) for one in context.sites("loader"))
    if held:
        assert '"batch_size": 12}' in apply(example.text, doubled(context, site, 6).edits)
    else:
        with pytest.raises(Refused):
            doubled(context, site, 6)


ACCUMULATED = """\
#> steps step_ms=40 device_busy_percent=30; memory peak_bytes=4000000000
from accelerate import Accelerator
from torch.utils.data import DataLoader
desk = Accelerator(gradient_accumulation_steps={parts})
#^ site framework construction=accelerate.Accelerator with.gradient_accumulation_steps={parts}
trays = DataLoader(letters, batch_size=4, num_workers=8)  #> site loader batch_size=4 num_workers=8
for tray in trays:  #> cost cpu_ms=0.1; use loader
    with desk.accumulate(model):
        loss = model(tray)  #> cost step_ms=25 device_ms=6 idle_ms=19 cpu_ms=25 launches=1500
        desk.backward(loss)  #> cost step_ms=15 device_ms=5 idle_ms=10 cpu_ms=15 launches=1000
        optimizer.step()
"""


@pytest.mark.parametrize(("parts", "joined"), [(6, [JoinedBatches(2)]), (1, [])])
def test_losses_of_accumulated_batches_are_told_to_be_added(parts: int, joined: list[JoinedBatches]) -> None:
    example = read_example(ACCUMULATED.format(parts=parts))
    diagnosis = diagnose(example.profile, texts(example))
    (mine,) = (one for one in diagnosis.findings if one.rule == "small-batch")
    change = diagnosis.changes[mine.id]
    assert isinstance(change, Together)
    assert [one for one in change.changes if isinstance(one, JoinedBatches)] == joined
