"""Lists that get longer in each step, and of which Python computes something in each step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.diagnosis import diagnose
from warpline.text.lines import lines_of

CODE = """\
#> device kind=cpu; steps step_ms=10
import numpy as np
from sklearn.metrics import roc_auc_score

def judge(net, sea):
    depths{made}
    for wave in sea:{again}
        depth = net(wave)  #> cost step_ms=8 device_ms=8 calls=1; op aten::mm device_ms=8
        depths.append(depth.numpy())  #> cost step_ms=0.1 calls=1
        shown{read}  #> cost step_ms=0.9 calls=1 {ops}
    return depths

def other(rows):
    depths = [row * 2 for row in rows]
    return depths
"""


def found(read: str, ops: str = "", again: str = "", made: str = " = []") -> list[tuple[str, str]]:
    text = CODE.format(read=read, ops=ops, again=again, made=made)
    example = read_example(text)
    diagnosis = diagnose(example.profile, texts(example))
    assert not [note for note in diagnosis.notes if "failed" in note]
    lines = example.text.splitlines()
    return [
        (one.rule, lines[one.line - 1].strip()) for one in diagnosis.findings if one.rule == "memory-growth"
    ]


@pytest.mark.parametrize(
    "read",
    [
        " = np.concatenate(depths).mean()",
        " = [np.median(one) for one in depths]",
        " = sum(float(one.max()) for at, one in enumerate(depths)) / len(depths)",
        " = round(np.mean([one.std() for one in depths]).item(), 3)",
        " = roc_auc_score(list(sea)[: len(depths)], depths)",
    ],
)
def test_the_line_that_goes_through_all_is_found(read: str) -> None:
    assert found(read) == [("memory-growth", f"shown{read}")]


@pytest.mark.parametrize(
    ("read", "facts"),
    [
        (" = np.mean(depths[-9:])", {}),
        (" = len(depths)", {}),
        (" = np.mean(wave)", {}),
        (" = draw(depths)", {}),  # what it reads is not known
        (" = report(np.mean(depths))", {}),  # the report may be what takes the time
        (" = np.stack(depths)", {"ops": "; op aten::mm device_ms=0.9"}),  # something else is computed there
        (" = np.stack(depths)", {"again": "\n        depths = []  #> cost calls=1"}),
        (" = np.stack(depths)", {"made": " = deque(maxlen=100)"}),
        (" = np.stack(depths)", {"again": "\n        depths[:] = depths[-100:]"}),
    ],
)
def test_nothing_is_found(read: str, facts: dict[str, str]) -> None:
    assert found(read, **facts) == []


def test_a_name_that_a_function_declares_may_be_another() -> None:
    read = " = np.stack(depths)"
    assert found(read, again="\n        nonlocal depths") == []


LOOP = """\
#> device kind=cpu; steps step_ms=10
import numpy as np

def tally(heights, edges):
    counts = np.zeros(len(edges) - 1)
    for height in heights:  #> cost step_ms=0.1 calls=41 {ops}
        counts += np.histogram(height, edges)[0]  #> cost step_ms=0.9 calls=40
        {ends}
    return counts

def judge(net, sea, edges):
    heights, names = [], []
    for wave in sea:
        height = net(wave)  #> cost step_ms=7 device_ms=7 calls=1; op aten::mm device_ms=7
        heights.append(height.numpy())  #> cost step_ms=0.1 calls=1
        lowest = height.min()  #> cost calls=1
        counts = tally({given}, edges)  #> cost calls={often}
        {again}
    return heights
"""


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        ({}, "for height in heights:"),
        ({"given": "height"}, None),
        ({"given": "heights[-20:]"}, None),
        ({"often": 0.1}, None),  # other steps than these give it the list
        ({"ends": "if counts.sum() > 50: break"}, None),
        ({"ops": "; op aten::mm device_ms=0.1"}, None),
        ({"again": "heights.clear()  #> cost calls=1"}, None),
    ],
)
def test_a_loop_over_all_in_a_function_that_is_given_the_list(
    facts: dict[str, object], line: str | None
) -> None:
    known = {"given": "heights", "often": 1, "ends": "", "ops": "", "again": ""} | facts
    example = read_example(LOOP.format(**known))
    diagnosis = diagnose(example.profile, texts(example))
    found = [one for one in diagnosis.findings if one.rule == "memory-growth"]
    assert [lines_of(example.text)[one.line - 1].strip() for one in found] == [line] * (line is not None)
    assert all("takes 1.00 ms" in one.message for one in found)


@pytest.mark.parametrize(("others", "spent"), [("", "1.50 ms (15 %)"), ("counts = tally", "1.00 ms (10 %)")])
def test_functions_that_only_the_loop_calls_are_its_work(others: str, spent: str) -> None:
    code = LOOP.format(given="heights", often=1, ends="", ops="", again="")
    example = read_example(f"{code}def inner(one):\n    return one - 3  #> cost step_ms=0.5 calls=40\n")
    calling = ("counts += ", others or "counts += ")
    texts_of = lines_of(example.text)
    lines = tuple(
        replace(line, called=((FILE, "inner"),))
        if any(one in texts_of[line.line - 1] for one in calling)
        else replace(line, function="inner")
        if "one - 3" in texts_of[line.line - 1]
        else line
        for line in example.profile.lines
    )
    diagnosis = diagnose(replace(example.profile, lines=lines), texts(example))
    (found,) = [one for one in diagnosis.findings if one.rule == "memory-growth"]
    assert f"takes {spent}" in found.message
