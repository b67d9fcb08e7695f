"""`warpline check` as a pull request runs it: a passed and a failed budget, and what others read."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT, ExampleRun, warpline
from warpline.commands import COMMANDS, check, profile

WORKFLOW = ROOT / "docs/examples/warpline.yml"


@pytest.fixture(scope="module")
def folder(example_run: ExampleRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with two runs whose steps were all of one length: nothing depends on this machine."""
    place = tmp_path_factory.mktemp("pull-request")
    (place / ".git").mkdir()
    shutil.copy(example_run.script, place / "slow.py")
    for name in ("before", "now"):
        run = place / ".warpline/runs" / name
        shutil.copytree(example_run.run, run)
        manifest = json.loads((run / "manifest.json").read_text())
        manifest["timed_ns"] = [round(example_run.report.steps.step_ms * 1e6)] * 8
        (run / "manifest.json").write_text(json.dumps(manifest))
    return place


def budget(folder: Path, text: str) -> str:
    (folder / "budgets.toml").write_text(text)
    return "budgets.toml"


def test_a_budget_that_holds_is_status_0(folder: Path) -> None:
    step = "[step]\nmax_ms = 1e6\nmax_increase_percent = 5\n"
    text = f"{step}[[function]]\nname = 'Norm.forward'\nmax_percent = 99\n"
    done = warpline("check", "--budget", budget(folder, text), "--against", "before", "now", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "no budget of 3 exceeded" in done.stdout


def test_a_budget_that_is_exceeded_is_status_1_and_says_where(folder: Path) -> None:
    name = budget(folder, "[[line]]\nfile = 'slow.py'\ntext = 'loss.backward()'\nmax_ms = 1e-6\n")
    words = ("--sarif", "out.sarif", "--json", "out.json", "--github")
    done = warpline("check", "--budget", name, *words, "now", cwd=folder)
    assert done.returncode == 1, done.stderr
    assert "1 of 1 budgets exceeded" in done.stdout
    written = [line.strip() for line in (folder / "slow.py").read_text().splitlines()]
    number = 1 + written.index("loss.backward()")
    assert f"line slow.py:{number}: at most" in done.stdout
    assert re.search(rf"^::error file=.*slow\.py,line={number},title=warpline%3A budget::", done.stdout, re.M)
    (run,) = json.loads((folder / "out.sarif").read_text())["runs"]
    assert run["results"][0]["ruleId"] == "budget-exceeded"
    said = json.loads((folder / "out.json").read_text())
    assert said["held"] is False
    assert said["budgets"][0]["outcome"] == "exceeded"


def test_several_runs_are_judged_by_their_mean(folder: Path) -> None:
    name = budget(folder, "[step]\nmax_increase_percent = 0\n")
    shutil.copytree(folder / ".warpline/runs", folder / "main")
    done = warpline("check", "--budget", name, "--against", "main", "before", "now", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Baseline: ") == 2
    assert done.stdout.count("Run: ") == 2


def test_of_a_folder_the_other_runs_of_the_script_are_the_baseline(folder: Path) -> None:
    """Neither those that are checked, nor another script's. The script may lie in another clone."""
    name = budget(folder, "[step]\nmax_increase_percent = 0\n")
    place = folder / "several"
    shutil.copytree(folder / ".warpline/runs", place)
    for run, script in (("another", "/work/eval.py"), ("clone", "/elsewhere/slow.py")):
        shutil.copytree(place / "before", place / run)
        manifest = json.loads((place / run / "manifest.json").read_text())
        (place / run / "manifest.json").write_text(json.dumps({**manifest, "script": script}))
    words = ("check", "--budget", name, "--against", "several")
    done = warpline(*words, "several/now", cwd=folder)
    assert done.returncode == 0, done.stderr
    found = [Path(line.split()[1]).name for line in done.stdout.splitlines() if line.startswith("Baseline: ")]
    assert found == ["before", "clone"]
    alone = warpline(*words, "several/another", cwd=folder)
    assert (alone.returncode, alone.stdout) == (2, "")
    assert alone.stderr == ("warpline: several has no run of eval.py besides those that are checked\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "say what to check or to write"),
        (["--budget", "gone.toml"], "cannot read gone.toml"),
        (["--sarif", "no/where.sarif"], "cannot write"),
        (["--budget", "budgets.toml", "gone"], "there is no run gone"),
    ],
)
def test_wrong_input_is_one_line_and_status_2(folder: Path, words: list[str], said: str) -> None:
    budget(folder, "[step]\nmax_ms = 1\n")
    done = warpline("check", *words, cwd=folder)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert said in line


def test_the_example_workflow_runs_commands_that_exist() -> None:
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    lines = [
        line.strip()
        for job in jobs.values()
        for step in job["steps"]
        for line in step.get("run", "").splitlines()
    ]
    ours = [shlex.split(line) for line in lines if line.startswith("warpline ")]
    assert {words[1] for words in ours} == {"profile", "check"}
    for _, command, *rest in ours:
        assert command in COMMANDS
        parser = argparse.ArgumentParser(allow_abbrev=False)
        {"profile": profile, "check": check}[command].configure(parser)
        parser.parse_args(rest)


def test_the_budgets_of_the_page_are_understood(tmp_path: Path) -> None:
    from warpline.check import budgets

    page = (ROOT / "docs/pull-requests.md").read_text()
    (text,) = re.findall(r"```toml\n(.*?)```", page, re.S)
    (tmp_path / "budgets.toml").write_text(text)
    found = budgets.read(tmp_path / "budgets.toml")
    assert (found.step, len(found.function), len(found.line)) != (None, 0, 0)
