"""Which calls give the same for each sample, and where what they give may be kept."""

from __future__ import annotations

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.rulekit import Context, Refused
from warpline.rulekit.same_samples import kept_in_init, same_calls
from warpline.text.edits import apply

BODY = "rows = np.arange(SIZE) * step\n    return np.exp(-(rows[:, None] ** 2))"
CALL = "mask = taper(self.step)"
USE = "mask @ self.rows[index]"
CODE = """\
import math
import numpy as np
import random
from scipy import signal
SIZE, KINDS = 64, [1, 2]
def taper(step):
    {body}
class Echoes:
    def __init__(self, rows, step):
        self.rows = rows
        self.step = step
        self.rng = np.random.default_rng(0)
    def __getitem__(self, index):
        {call}
        return {use}
    {more}
"""
LINE = CODE[: CODE.index("{call}")].count("\n") + BODY.count("\n") + 1


def kept(body: str = BODY, call: str = CALL, use: str = USE, more: str = "") -> str | None:
    """The text with the edit; "" where there is none, None where the call may give something else."""
    code = CODE.format(body=body, call=call, use=use, more=more)
    line = next(at for at, text in enumerate(code.splitlines(), 1) if text.strip() == call)
    example = read_example(code)
    context = Context(example.profile, texts(example))
    found = [one for one in same_calls(context, [(FILE, line)]) if one.functions]
    if not found:
        return None
    (same,) = found
    assert same.runs((FILE, 7))
    try:
        return apply(example.text, kept_in_init(same).edits)
    except Refused:
        return ""


@pytest.mark.parametrize(
    ("body", "call"),
    [
        (BODY, CALL),
        (BODY, "mask = taper(0.5)"),
        (BODY, "mask = taper(SIZE)"),
        ("return signal.windows.hann(SIZE) * math.sqrt(step)", CALL),
        (
            "found = []\n    for at in range(9):\n        found.append(step)\n    return np.stack(found)",
            CALL,
        ),
        ("bank = np.zeros(SIZE)\n    bank[3:5] = step\n    bank /= bank.sum()\n    return bank", CALL),
    ],
)
def test_what_is_made_of_numbers_is_kept(body: str, call: str) -> None:
    text = kept(body, call)
    assert text is not None
    assert f"default_rng(0)\n        self.{call}\n    def __getitem__" in text
    assert "\n        mask = self.mask\n" in text


@pytest.mark.parametrize(
    ("body", "call"),
    [
        (BODY, "mask = taper(index)"),
        (BODY, "mask = taper(self.rows[index])"),
        ("return np.random.rand(SIZE) * step", CALL),
        ("return random.random() * step", CALL),
        ("return step.normal(size=SIZE)", "mask = taper(self.rng)"),
        ("return step(SIZE)", CALL),
        ("return step.read()", CALL),
        ("step += 1\n    return np.ones(SIZE) * step", CALL),
        ("step[0] = 1\n    return step * 2", CALL),
        ("import time\n    return time.time() * step", CALL),
        ("global SIZE\n    SIZE = SIZE + 1\n    return np.ones(SIZE)", CALL),
        ("return open(step).read()", CALL),
        ("return np.ones(next(SOURCE))", CALL),
    ],
)
def test_what_may_differ_from_sample_to_sample_is_left(body: str, call: str) -> None:
    assert kept(body, call) is None


@pytest.mark.parametrize(
    "more",
    [
        "def harder(self):\n        self.step = 2 * self.step",
        "def harder(self):\n        self.step += 1",
        "def harder(self):\n        self.step[0] = 1",
        "def harder(self):\n        self.step.append(2)",
    ],
)
def test_attributes_that_change_later(more: str) -> None:
    assert kept(more=more) is None


@pytest.mark.parametrize(
    ("use", "safe"),
    [
        ("np.dot(mask, self.rows[index])", True),
        ("self.rows[index] * mask[0]", True),
        ("self.rows[index] @ mask.T", True),
        ("mask", False),
        ("(mask, self.rows[index])", False),
        ("self.rows[index].apply(mask)", False),
        ("np.multiply(self.rows[index], 2, out=mask)", False),
        ("mask.sort()", False),
    ],
)
def test_what_may_be_written_or_returned_is_not_kept(use: str, safe: bool) -> None:
    text = kept(use=use)
    assert text is not None
    assert bool(text) == safe


def test_a_list_of_the_file_that_grows() -> None:
    body = "return np.ones(SIZE) * sum(KINDS)"
    assert kept(body)
    assert kept(body, more="def grow(self):\n        KINDS.append(3)") is None


def test_a_function_that_others_call_as_well_is_not_the_call_s_alone() -> None:
    assert kept(more="def __len__(self):\n        return len(taper(3))") is None


def test_a_mask_that_is_changed_in_place_is_not_kept() -> None:
    assert kept(call="mask = taper(self.step); mask *= 2") == ""
