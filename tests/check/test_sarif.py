"""SARIF and annotations, read by others: TypeScript with the published types of SARIF."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests import samples
from tests.conftest import ROOT
from warpline.check import annotations, judge, sarif
from warpline.check.budgets import Budgets, Limit
from warpline.check.places import Run
from warpline.rules import rules

WORK = Path("/home/ada/work")
VERDICTS = judge.judge(
    Budgets(step=Limit(max_ms=9, max_increase_percent=50)),
    [Run("now", samples.report(), samples.SOURCES, (10_000_000,) * 8)],
    [Run("main", samples.report(), samples.SOURCES, (10_000_000,) * 8)],
)


@pytest.fixture(scope="module")
def log() -> sarif.Json:
    return sarif.log(samples.report(), VERDICTS, WORK, "0.1.0")


def test_findings_and_exceeded_budgets_are_results(log: sarif.Json) -> None:
    (run,) = log["runs"]
    budget, loader, sync = run["results"]
    names = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [names[result["ruleIndex"]] for result in run["results"]] == [
        result["ruleId"] for result in run["results"]
    ]
    assert (budget["ruleId"], budget["level"]) == (sarif.BUDGET, "error")
    assert loader["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "train.py", "uriBaseId": "PROJECTROOT"},
        "region": {"startLine": 4},
    }
    assert loader["relatedLocations"][0]["physicalLocation"]["region"] == {"startLine": 5}
    assert loader["partialFingerprints"] == {"warplineFinding/v1": "a1b2"}
    (replacement,) = loader["fixes"][0]["artifactChanges"][0]["replacements"]
    # 0-based columns here, 1-based in SARIF; an empty region is where the text goes.
    assert replacement["deletedRegion"] == {"startLine": 4, "startColumn": 25, "endLine": 4, "endColumn": 25}
    assert replacement["insertedContent"] == {"text": ", num_workers=8"}
    assert sync["message"]["text"].endswith("Measured gain: 1.04x.")
    assert run["originalUriBaseIds"]["PROJECTROOT"]["uri"] == "file:///home/ada/work/"


def test_the_published_types_of_sarif_take_it(log: sarif.Json, tmp_path: Path) -> None:
    """As a literal, so that unknown properties and wrong words are errors too."""
    types = ROOT / "node_modules/@types/sarif/index.d.ts"
    assert types.is_file(), "npm ci installs it"
    source = tmp_path / "log.ts"

    def complaints(value: sarif.Json) -> str:
        module = str(types).removesuffix(".d.ts")
        source.write_text(
            f'import type {{ Log }} from "{module}";\n'
            f"export const log: Log = {json.dumps(value, indent=1)};\n"
        )
        tsc = ROOT / "node_modules/typescript/bin/tsc"
        command = ["node", str(tsc), "--noEmit", "--strict", str(source)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path).stdout

    assert complaints(log) == ""
    log = json.loads(json.dumps(log))
    log["runs"][0]["results"][0]["level"] = "information"
    assert "information" in complaints(log)


def test_every_rule_has_its_help(log: sarif.Json) -> None:
    known = {rule.name for rule in rules()}
    for rule in log["runs"][0]["tool"]["driver"]["rules"]:
        assert rule["shortDescription"]["text"].endswith(".")
        if rule["id"] in known:
            assert rule["help"]["markdown"].startswith(f"# {rule['id']}\n")


def test_a_file_elsewhere_keeps_its_whole_path() -> None:
    log = sarif.log(samples.report(), (), Path("/home/ada/other"), "0.1.0")
    places = [result["locations"][0]["physicalLocation"] for result in log["runs"][0]["results"]]
    assert [place["artifactLocation"] for place in places] == [{"uri": "file:///home/ada/work/train.py"}] * 2


def test_annotations_escape_what_ends_a_command() -> None:
    report = samples.report()
    hostile = replace(report.findings[0], message="50 % slow\n::error::no", file="/home/ada/work/a,b:c.py")
    lines = annotations.lines(replace(report, findings=(hostile,)), VERDICTS, WORK)
    assert len(lines) == 2
    assert lines[0].startswith("::error file=train.py,line=1,title=warpline%3A budget::step takes 10.0 ms")
    assert lines[1].startswith(
        "::warning file=a%2Cb%3Ac.py,line=4,title=warpline%3A loader-without-workers::50 %25 slow"
    )
    assert "\n" not in lines[1]


def test_github_shows_ten_of_a_kind_and_the_first_ones_matter_most() -> None:
    report = samples.report()
    many = replace(report, findings=tuple(replace(report.findings[0], line=n) for n in range(1, 30)))
    lines = annotations.lines(many, VERDICTS, WORK)
    assert [line.split(" ")[0] for line in lines] == ["::error"] + ["::warning"] * 10
