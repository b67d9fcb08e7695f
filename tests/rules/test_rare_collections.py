"""A ``gc.collect()`` that runs once in many steps: told by all steps of the run, not by the captured ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.diagnosis import diagnose
from warpline.model.report import Finding

CODE = """\
#> steps step_ms=20
import gc

def tidy(at):
    if at % 25 == 0:
        gc.collect()

for at, boats in enumerate(harbour):
    loss = model(boats)  #> cost step_ms=20 cpu_ms=20
    tidy(at)
"""
#: One of the captured steps had the call.
CAPTURED = CODE.replace("        gc.collect()", "        gc.collect()  #> cost step_ms=8 cpu_ms=8 gc_ms=8")
CALL, OTHER = 5, 8


def found(
    *collections: tuple[int, int, int], timed: tuple[int, ...] = (20,) * 100, code: str = CODE
) -> list[Finding]:
    """What is said where the collector ran in full at a step and line, for so many ms."""
    example = read_example(code)
    full = tuple((step, FILE, line, spent * 1_000_000) for step, line, spent in collections)
    profile = replace(
        example.profile,
        manifest=replace(example.profile.manifest, timed_ns=tuple(one * 1_000_000 for one in timed)),
        facts=replace(
            example.profile.facts, gc_full=full, gc_ns=((0, 200_000_000), (300_000_000, 300_000_100))
        ),
    )
    diagnosis = diagnose(profile, texts(example))
    assert not [note for note in diagnosis.notes if "failed" in note]
    return [one for one in diagnosis.findings if one.rule == "gc-pause-in-step"]


def test_a_call_in_some_steps() -> None:
    (one,) = found((25, CALL, 200), (50, CALL, 220), (75, CALL, 230))
    assert one.line == CALL
    assert [fix.title for fix in one.fixes] == ["Remove gc.collect() from the step"]
    said = {evidence.metric: evidence.value for evidence in one.evidence}
    assert said["steps for each call"] == 25
    # 220 ms in 25 steps of 20 ms, which were timed without it
    assert next(each.value for each in one.evidence if each.unit == "ms") == pytest.approx(20 * 8.8 / 28.8)


@pytest.mark.parametrize(
    "collections",
    [
        ((25, CALL, 200),),  # once: nothing says how often
        ((25, CALL, 2), (50, CALL, 2)),  # it costs almost nothing
        ((25, OTHER, 200), (50, OTHER, 200)),  # by itself, at a line that does something else
        ((0, CALL, 200), (0, CALL, 200)),  # before the steps
    ],
)
def test_nothing_is_found(collections: tuple[tuple[int, int, int], ...]) -> None:
    assert found(*collections) == []


def test_one_slow_call_does_not_count_for_all() -> None:
    (one,) = found((25, CALL, 100), (50, CALL, 100), (75, CALL, 2000))
    assert next(each.value for each in one.evidence if each.unit == "ms") == pytest.approx(20 * 4 / 24)


@pytest.mark.parametrize(("steps", "said"), [((25, 50, 75), 1), ((25,), 0)])
def test_one_call_in_the_captured_steps_where_few_were_timed(steps: tuple[int, ...], said: int) -> None:
    assert len(found(*((step, CALL, 200) for step in steps), timed=(20,) * 6, code=CAPTURED)) == said
