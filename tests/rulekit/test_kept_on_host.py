"""Tensors of the host that outlive the steps, and the edit that pins them: run before and after it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.rulekit import Context, Draft
from warpline.rules.pageable_host_copy import PageableHostCopy
from warpline.text.edits import apply
from warpline.wire.run import Site

HEAD = """\
import dataclasses

import numpy as np
import torch

device = torch.device("cpu")

def survey():
    return np.arange(80.0, dtype=np.float32).reshape(20, 4)

"""
COST = """\
#^ cost device_ms=9 copy_ms=9 cpu_ms=9
#^ kernel 'Memcpy HtoD (Pageable -> Device)' kind=copy device_ms=9 bytes=100663296
"""
#: A slice of rows, or one row, of a tensor from before the step, and its copy.
SLICE = """\
#^ node aten.slice.Tensor args=[%9,0,2,5] shape=[3,4]; node aten._to_copy.default args=[%0] shape=[3,4]
#^ tensor %9 shape=[20,4] dtype=float32
"""
ROW = SLICE.replace(
    "aten.slice.Tensor args=[%9,0,2,5] shape=[3,4]", "aten.select.int args=[%9,0,2] shape=[4]"
)
COLUMNS = SLICE.replace("%9,0,2,5", "%9,1,2,5")
INDEX = SLICE.replace("aten.slice.Tensor args=[%9,0,2,5]", "aten.index.Tensor args=[%9,[%8]]")

CONSTRUCTOR = """\
class Archive:
    def __init__(self, table):
        self.traces = torch.from_numpy(table)

    def runs(self):
        for start in (2, 7):
            x = self.traces[start : start + 3].to(device, non_blocking=True)  # here
            yield x

for x in Archive(survey()).runs():
    seen(x)
"""
MODULE = """\
TABLE = torch.from_numpy(survey())
for start in (2, 7):
    x = TABLE[start : start + 3].to(device)  # here
    seen(x)
"""
LIST = """\
tables = [torch.from_numpy(survey() + at) for at in range(2)]
for step in range(4):
    x = tables[step % 2][2:5].to(device)  # here
    seen(x)
"""
APPENDED = """\
class Shards:
    def __init__(self):
        self.tables = []
        for at in range(2):
            self.tables.append(torch.from_numpy(survey() + at))

shards = Shards()
for table in shards.tables:
    x = table[2:5].to(device)  # here
    seen(x)
"""
DICT = """\
data = {"size": 20, "x": torch.from_numpy(survey()), "y": torch.ones(3)}
for step in range(4):
    x = data["x"][2:5].to(device)  # here
    seen(x)
"""
FILLED_DICT = """\
tables = {}
for name in ("a", "b"):
    tables[name] = torch.from_numpy(survey())
for name in ("a", "b"):
    x = tables[name][2:5].to(device)  # here
    seen(x)
"""
FIELD = """\
@dataclasses.dataclass
class Survey:
    name: str
    traces: torch.Tensor

held = Survey("north", torch.from_numpy(survey()))
for start in (2, 7):
    part = held.traces[start : start + 3]
    x = part.to(device)  # here
    seen(x)
"""
FILLED = """\
buffer = torch.zeros(20, 4)
for at, row in enumerate(survey()):
    buffer[at] = torch.from_numpy(row)
for start in (2, 7):
    x = buffer[start : start + 3].to(device)  # here
    seen(x)
"""
RETURNED = """\
def load(scale):
    table = torch.from_numpy(survey())
    return table * scale

def train(table):
    for step in range(4):
        x = table[step].to(device)  # here
        seen(x)

train(load(2.0))
"""
UNBOUND = """\
rows = torch.cat([torch.ones(2, 4), torch.zeros(2, 4)]).unbind(0)
for row in rows:
    x = row.to(device)  # here
    seen(x)
"""
SPLIT = """\
parts = torch.split(torch.cat([torch.ones(2, 4), torch.zeros(2, 4)]), 2)
for step in range(4):
    x = parts[step % 2].to(device)  # here
    seen(x)
"""
#: The same copy of a tensor from before the step as it is.
WHOLE = """\
#^ node aten._to_copy.default args=[%9] shape=[2,4]; tensor %9 shape=[2,4]
"""
DERIVED = CONSTRUCTOR.replace("    def runs", "class Runs(Archive):\n    def runs").replace(
    "in Archive(", "in Runs("
)
LOADED = """\
def read():
    return {"x": torch.ones(20, 4)}

class Held:
    def __init__(self, tables):
        self.x = tables["x"] + 0

held = Held(read())
for start in (2, 7):
    x = held.x[start : start + 3].to(device)  # here
    seen(x)
"""


def found(
    script: str, record: str = "", cost: str = "", needed: dict[str, float] | None = None, keep: bool = False
) -> tuple[str, Draft]:
    """``cost``: a line that runs in each step."""
    lines = []
    for line in (HEAD + script).splitlines(keepends=True):
        lines.append(line)
        lines += [COST + record] if "# here" in line else []
        lines += ["#^ cost cpu_ms=0.1\n"] if cost and cost in line else []
    example = read_example("".join(lines))
    at = next(at for at, line in enumerate(example.text.split("\n"), 1) if "# here" in line)
    move = Site("to", FILE, at, "<module>", {"pinned": False, "non_blocking": True, **(needed or {})})
    others = example.profile.facts.sites if keep else ()
    facts = replace(example.profile.facts, sites=(*others, move))
    (draft,) = PageableHostCopy().find(Context(replace(example.profile, facts=facts), texts(example)))
    return example.text, draft


def ran(text: str, gpu: bool, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], list[bool]]:
    """What the script copied, and whether that was a part of pinned memory: of what a stand-in for
    ``pin_memory`` made, as there is no GPU."""
    import torch

    pinned, copied, parts = [], [], []
    zeros = torch.zeros

    def pin(tensor: Any) -> Any:
        pinned.append(tensor.clone())
        return pinned[-1]

    def make(*size: int, pin_memory: bool = False) -> Any:
        return pin(zeros(*size)) if pin_memory else zeros(*size)

    def seen(x: Any) -> None:
        copied.append(x.tolist())
        parts.append(
            any(x.untyped_storage().data_ptr() == one.untyped_storage().data_ptr() for one in pinned)
        )

    with monkeypatch.context() as patched:
        patched.setattr(torch.cuda, "is_available", lambda: gpu)
        patched.setattr(torch.Tensor, "pin_memory", pin)
        patched.setattr(torch, "zeros", make)
        exec(text, {"seen": seen, "__name__": "__main__"})
    return copied, parts


CASES = {
    "a constructor": (CONSTRUCTOR, SLICE, "self.traces = torch.from_numpy"),
    "a constructor without a record": (CONSTRUCTOR, "", "self.traces = torch.from_numpy"),
    "a module": (MODULE, SLICE, "TABLE ="),
    "a list": (LIST, SLICE, "tables = ["),
    "a list that is filled": (APPENDED, SLICE, "append("),
    "a dict": (DICT, SLICE, "data = {"),
    "a dict that is filled": (FILLED_DICT, SLICE, "tables[name] ="),
    "a dataclass": (FIELD, "", "held ="),
    "a buffer that is filled": (FILLED, SLICE, "buffer ="),
    "a function that returns it": (RETURNED, ROW, "return table * scale"),
    "views that were made before": (UNBOUND, "", "rows ="),
    "parts that were split off before": (SPLIT, WHOLE, "parts ="),
    "a class that it is derived from": (DERIVED, SLICE, "self.traces = torch.from_numpy"),
    "an entry of a mapping": (LOADED, SLICE, "self.x ="),
}


@pytest.mark.parametrize("case", CASES)
def test_a_tensor_that_stays_is_pinned_where_it_is_made(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    script, record, place = CASES[case]
    text, draft = found(script, record)
    assert place in text.split("\n")[draft.line - 1], draft.message
    assert draft.fixes, draft.message
    fixed = apply(text, draft.fixes[0].edits)
    before, none = ran(text, True, monkeypatch)
    after, all_ = ran(fixed, True, monkeypatch)
    assert before == after == ran(fixed, False, monkeypatch)[0] != []
    assert not any(none)
    assert all(all_)
    assert fixed.count("non_blocking=True") == 1


def test_a_script_for_gpus_alone_pins_without_asking() -> None:
    text, draft = found(MODULE.replace("to(device)", 'to("cuda")'), SLICE)
    assert "TABLE = torch.from_numpy(survey()).pin_memory()\n" in apply(text, draft.fixes[0].edits)


NOT = [
    # New memory in each step, or not in one piece.
    (MODULE, "TABLE[start : start + 3]", "TABLE[[2, 3, 4]]", INDEX),
    (MODULE, "TABLE[start : start + 3]", "TABLE[:, 2:5]", COLUMNS),
    (MODULE, "TABLE[start : start + 3]", "TABLE[picks]", ""),
    (MODULE, "TABLE[start : start + 3]", "TABLE[2:9:2]", ""),
    (MODULE, "TABLE[start : start + 3]", "TABLE.view(-1, 4)[picks]", ""),
    (MODULE, "to(device)", "to(device, torch.float16)", SLICE),
    # It may be written to while it is copied, or what it shares memory with is.
    (MODULE, "    seen(x)", "    TABLE[0] = 1.0\n    seen(x)", SLICE),
    (MODULE, "    seen(x)", "    TABLE.add_(1.0)\n    seen(x)", SLICE),
    (
        CONSTRUCTOR,
        "    def runs",
        "    def refill(self):\n        self.traces[0] = 1.0\n\n    def runs",
        SLICE,
    ),
    (CONSTRUCTOR, "    seen(x)", "    archive.traces.zero_()", SLICE),
    (CONSTRUCTOR, "(table)\n\n", "(table)\n        table[0] = 1.0\n\n", SLICE),
    (
        MODULE,
        "TABLE = torch.from_numpy(survey())",
        "a = survey()\nTABLE = torch.from_numpy(a)\na *= 2",
        SLICE,
    ),
    # Another one for some of the steps, or it is not known which.
    (MODULE, "for start", "if len(TABLE) > 3:\n    TABLE = torch.ones(20, 4)\nfor start", SLICE),
    (MODULE, "for start", "TABLE, other = both()\nfor start", SLICE),
    (CONSTRUCTOR, "torch.from_numpy(table)", "Lazy(table)", ""),
    (DICT, "torch.from_numpy(survey())", "Lazy(survey())", ""),
    (LIST, "tables[step % 2]", "tables[step % 2][step]", ""),
    (APPENDED, "shards = Shards()", "shards = Shards()\nshards.tables.append(other)", SLICE),
    (RETURNED, "train(load(2.0))", "train(load(2.0))\ntrain(load(3.0))", ROW),
    (SPLIT, "torch.split(torch.cat(", "torch.sort(torch.cat(", WHOLE),
    (SPLIT, "), 2)", "), 2, dim=1)", WHOLE),
    (SPLIT, "torch.zeros(2, 4)]), 2)", "torch.zeros(2, 4)])[:, :2], 2)", WHOLE),
    (FIELD, "held = Survey(", "held = other.Opened(", SLICE),
    # Another process.
    (CONSTRUCTOR, "class Archive:", "class Archive(multiprocessing.Process):", SLICE),
    (MODULE, "for start", "TABLE.share_memory_()\nfor start", SLICE),
]


@pytest.mark.parametrize(("script", "old", "new", "record"), NOT)
def test_others_are_told_at_the_copy(script: str, old: str, new: str, record: str) -> None:
    assert old in script
    text, draft = found(script.replace(old, new), record)
    assert "# here" in text.split("\n")[draft.line - 1]
    assert not draft.fixes


def test_a_module_that_workers_may_run_again_does_not_pin() -> None:
    loader = "other = DataLoader(data)  #> site loader num_workers=4 pin_memory=false; use loader\n"
    loader += "last = DataLoader(data)  #> site loader num_workers=4 pin_memory=false as=last; use last\n"
    for script, pinned in ((MODULE, False), (CONSTRUCTOR, True)):
        text, draft = found(loader + script, SLICE, keep=True)
        assert ("# here" in text.split("\n")[draft.line - 1]) is not pinned


def test_one_that_each_step_makes_is_no_such_tensor() -> None:
    text, draft = found(CONSTRUCTOR, SLICE, cost="self.traces = ")
    assert "# here" in text.split("\n")[draft.line - 1]


def test_one_that_each_step_writes_to_is_not_pinned() -> None:
    written = "#^ node aten.copy_.default args=[%9,%8] shape=[20,4]\n"
    text, draft = found(MODULE, SLICE + written)
    assert "# here" in text.split("\n")[draft.line - 1]
    assert not draft.fixes


@pytest.mark.parametrize(
    ("script", "facts", "fits"),
    [
        (MODULE, {"whole_bytes": 4e9, "free_bytes": 9e9, "resident_bytes": 8e9}, True),
        (MODULE, {"whole_bytes": 4e9, "free_bytes": 7e9, "resident_bytes": 8e9}, False),
        # Of a list, the others may be as large: all are in the process's memory.
        (LIST, {"whole_bytes": 4e9, "free_bytes": 9e9, "resident_bytes": 8e9}, False),
        (FILLED_DICT, {"whole_bytes": 4e9, "free_bytes": 9e9, "resident_bytes": 8e9}, False),
        (LIST, {"whole_bytes": 4e9, "free_bytes": 17e9, "resident_bytes": 8e9}, True),
    ],
)
def test_what_does_not_fit_is_not_pinned(script: str, facts: dict[str, float], fits: bool) -> None:
    text, draft = found(script, SLICE, needed=facts)
    assert bool(draft.fixes) is fits
    assert ("# here" in text.split("\n")[draft.line - 1]) is not fits
    assert ("of pinned memory, and the host had" in draft.message) is not fits
