"""``warpline tune`` and ``fix --measure`` as a user runs them, on a recorded run.

The search of ``tune`` was ended when all was timed, with step times that are made up: so it starts no
process. What the search makes of times stands in test_search.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import ExampleRun, warpline
from warpline.measure import numbers
from warpline.measure.numbers import Number
from warpline.measure.pairs import Pairs
from warpline.measure.timed import Timed
from warpline.measure.verdict import NOT_TIMED, ONCE

RULE = "loader-without-workers"
STEPS = (20.0, 20.1, 19.9, 20.0)


@dataclass(frozen=True)
class Tuned:
    script: Path
    run: Path
    words: tuple[str | Path, ...]


@pytest.fixture(scope="module")
def tuned(example_run: ExampleRun, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tuned]:
    from warpline import pipeline
    from warpline.measure.ledger import Ledger
    from warpline.measure.proposals import Workbench
    from warpline.measure.search import PROVED, TRIED
    from warpline.syntax.files import text_of

    folder = tmp_path_factory.mktemp("tune")
    run = folder / "runs" / example_run.run.name
    shutil.copytree(example_run.run, run)
    profile = pipeline.profile_of(run)
    bench = Workbench(profile, text_of)
    findings = [one for one in pipeline.report_of(run).findings if one.rule == RULE]
    ledger = Ledger(run, profile, text_of)
    proposals = bench.proposals(findings)
    losses = (2.0, 1.9, 1.8)
    plain = [Timed(step, losses) for step in STEPS]
    changed = [Timed(step / 2, losses) for step in STEPS]
    candidate = bench.candidate(proposals)
    assert candidate is not None
    written = bench.written(proposals)
    assert written, "the fix writes a number of workers"
    cores = profile.facts.flags.cpu_count
    for name, number in written.items():
        for value in numbers.others(name, number, cores):
            other = bench.candidate(proposals, {name: Number(value, number)})
            assert other is not None
            ledger.keep(Pairs(other, plain[:1], [Timed(STEPS[0] / 1.9, losses)], list(STEPS[:1])), TRIED)
    for role, rounds in ((TRIED, 1), (PROVED, len(STEPS))):
        pairs = Pairs(candidate, plain[:rounds], changed[:rounds], list(STEPS[:rounds]))
        ledger.keep(pairs, role)
    words = ("tune", "--run-dir", run.parent, "--rule", RULE, "--budget", "300")
    yield Tuned(example_run.script, run, words)


def test_json_is_the_contracts_and_nothing_is_run_again(tuned: Tuned, example_run: ExampleRun) -> None:
    before = tuned.script.read_bytes()
    done = warpline(*tuned.words, "--json", "-", "--progress-fd", "2", tuned.script, cwd=example_run.folder)
    assert done.returncode == 0, done.stderr
    assert "measuring" not in done.stderr
    found = json.loads(done.stdout)
    assert list(found) == ["format", "baseline_step_ms", "candidates", "best"]
    (only,) = (one for one in found["candidates"] if one["kept"])
    assert only["low"] < 2 < only["high"]
    assert only["speedup"] == pytest.approx(2)
    assert found["best"]["fixes"] == only["fixes"]
    assert tuned.script.read_bytes() == before


def test_the_table_and_the_patch(tuned: Tuned, example_run: ExampleRun, tmp_path: Path) -> None:
    done = warpline(*tuned.words, tuned.script, cwd=example_run.folder)
    assert done.returncode == 0, done.stderr
    assert f"Best: {RULE}, 2.00x" in done.stdout
    copy = tmp_path / tuned.script.name
    copy.write_bytes(tuned.script.read_bytes())
    subprocess.run(["git", "apply", tuned.run / "tune.patch"], cwd=tmp_path, check=True)
    assert "num_workers=" in copy.read_text()


def test_a_rule_that_finds_nothing_leaves_nothing_to_try(tuned: Tuned, example_run: ExampleRun) -> None:
    words = [word if word != RULE else "graph-break" for word in tuned.words]
    done = warpline(*words, tuned.script, cwd=example_run.folder)
    assert done.returncode == 0, done.stderr
    assert "There is no fix to try." in done.stdout


def test_a_script_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = warpline("tune", "none.py", cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_one_fix_is_measured_on_the_running_script(tuned: Tuned, example_run: ExampleRun) -> None:
    before = tuned.script.read_bytes()
    from warpline import pipeline

    rules = [one.rule for one in pipeline.report_of(tuned.run).findings if one.fixes]
    rule = next(rule for rule in rules if rules.count(rule) == 1)  # on a busy machine not always the same
    words = ("--run", tuned.run, "--rule", rule, "--budget", "40")
    done = warpline(
        "fix", "--measure", *words, "--json", "-", "--progress-fd", "2", tuned.script, cwd=example_run.folder
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (only,) = found["candidates"]
    assert tuned.script.read_bytes() == before
    assert '"measuring"' in done.stderr
    if only["high"] is None:  # a machine so busy that there was no time for two rounds: that is said
        assert not only["kept"]
        assert only["reason"] in (ONCE, NOT_TIMED)
        return
    assert only["low"] <= only["speedup"] <= only["high"], only
    assert only["loss_drift"] is not None
    # It stands in the report from now on.
    shown = warpline("show", "--json", "-", tuned.run, cwd=example_run.folder)
    measured = {one["id"]: one["measured"] for one in json.loads(shown.stdout)["findings"]}
    assert measured[only["fixes"][0]]["speedup"] == only["speedup"]
