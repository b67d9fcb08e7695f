"""``generate`` with real models: prefill and decode, against what the script itself counts and times."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pytest

from tests.conftest import environment
from tests.frameworks.bench import OFFLINE, Bench, profiled
from tests.frameworks.installed import PYTHON
from warpline.model.profile import LineCost
from warpline.model.report import Tokens


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return profiled("generating_batches", Path(tmp_path_factory.mktemp("batches")))


@pytest.fixture(scope="module")
def clocked(bench: Bench) -> dict[str, Any]:
    """What the script says in a run without Warpline: the tokens of each call by the shape of its result, and
    the seconds of each pass."""
    command = [PYTHON, bench.script, "clocked"]
    done = subprocess.run(
        command, cwd=bench.folder, env=environment(**OFFLINE), capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def called(bench: Bench, text: str) -> tuple[LineCost, Tokens]:
    number = next(at for at, line in enumerate(bench.script.read_text().splitlines(), 1) if text in line)
    (cost,) = (cost for cost in bench.profile.lines if cost.line == number)
    assert cost.tokens is not None
    return cost, cost.tokens


def adds_up(cost: LineCost) -> None:
    tokens = cost.tokens
    assert tokens is not None
    parts = tokens.prefill.step_ms, tokens.decode.step_ms, tokens.other_ms, tokens.outside_ms
    assert min(parts) >= 0
    assert sum(parts) == pytest.approx(cost.step_ms, rel=1e-6)


def test_tokens_are_counted_where_texts_end_early(bench: Bench, clocked: dict[str, Any]) -> None:
    """The steps are batches. Each pass makes one token of each sequence, the prefill the first."""
    cost, tokens = called(bench, "writer.generate")
    adds_up(cost)
    assert tokens.prefill.count == 1
    made = [count for count, _ in clocked["counts"]]
    assert min(made) < max(made), "some texts end early"
    passed = len(clocked["passes"]["writer"]) / len(made)
    assert passed == pytest.approx(fmean(made)), "the clock's passes are the shape's tokens"
    assert 1 + tokens.decode.count == pytest.approx(fmean(made), rel=0.35)  # other steps were timed


def test_an_encoder_s_pass_is_of_the_prefill(bench: Bench, clocked: dict[str, Any]) -> None:
    cost, tokens = called(bench, "translator.generate")
    adds_up(cost)
    assert tokens.prefill.count == 1 and tokens.decode.count == 7
    assert {made for _, made in clocked["counts"]} == {8}
    assert len(clocked["passes"]["translator"]) == 8 * len(clocked["counts"])
    encoders = [each for each in cost.inside if (each.module or "").startswith("model.encoder")]
    assert sum(each.prefill_ms for each in encoders) == pytest.approx(
        sum(e.step_ms for e in encoders), rel=0.02
    )
    assert sum(each.decode_ms for each in encoders) <= 0.02 * sum(each.step_ms for each in encoders)


@pytest.mark.parametrize("model", ["writer", "translator"])
def test_a_pass_takes_what_the_script_s_clock_says(bench: Bench, clocked: dict[str, Any], model: str) -> None:
    """Within a factor, since the machine may have other work in one of the runs. Their ratio is the point:
    what is told of a pass is not the whole step, nor a layer."""
    _, tokens = called(bench, f"{model}.generate")
    seconds = clocked["passes"][model]
    usual = 1000 * median(seconds[len(seconds) // 4 :])
    assert usual / 3 < tokens.decode.pass_ms < usual * 3
    assert tokens.decode.pass_host_ms == pytest.approx(tokens.decode.pass_ms, rel=0.5)


def test_library_lines_are_divided_between_the_passes(bench: Bench) -> None:
    for text in ("writer.generate", "translator.generate"):
        cost, tokens = called(bench, text)
        within = sum(each.prefill_ms for each in cost.inside), sum(each.decode_ms for each in cost.inside)
        assert all(each.prefill_ms + each.decode_ms <= each.step_ms * 1.0001 for each in cost.inside)
        assert within[0] > 0 and within[1] > tokens.decode.step_ms / 3
        layers = [each for each in cost.inside if ".*." in (each.module or "")]
        spent = sum(each.step_ms for each in layers)
        assert sum(each.prefill_ms + each.decode_ms for each in layers) == pytest.approx(spent, rel=0.02)
