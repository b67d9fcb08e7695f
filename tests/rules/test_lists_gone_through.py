"""Lists that get longer in each step, and of which Python computes something in each step."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.diagnosis import diagnose

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
