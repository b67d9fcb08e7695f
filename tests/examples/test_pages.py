"""README, docs and examples say what is so: reports, commands, settings, links."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest

from docs.print_reports import BLOCK, SAMPLES, pages
from tests.conftest import ROOT
from warpline import __version__
from warpline.commands import COMMANDS
from warpline.project import Settings

README = (ROOT / "README.md").read_text(encoding="utf-8")


def reports() -> list[tuple[str, str]]:
    """(script, what stands below its marker) of every page."""
    found = []
    for page in pages():
        for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
            found.append((block[1], block[0].split("```\n")[1]))
    return found


def test_the_front_page_and_the_four_cases_show_a_report() -> None:
    assert {script for script, _ in reports()} == {
        f"examples/{name}/slow.py"
        for name in (
            "quickstart",
            "loader-without-workers",
            "fp32-bert",
            "transpose-kernel",
            "layernorm-finetune",
        )
    }


@pytest.mark.parametrize(("script", "text"), reports(), ids=[script for script, _ in reports()])
def test_a_printed_report_is_of_the_script_as_it_is(script: str, text: str) -> None:
    """Every source line shown is the one with that number; `make readme` prints them anew."""
    lines = text.partition("\nFindings\n")[0].splitlines()
    assert lines[0].startswith(f"{script} ─")
    assert re.match(r"[\d.]+ ms a step, measured without the profiler; ", lines[1])
    assert "\nNot attributed to any line: " in text
    shown = 0
    place: Path | None = None
    for line in lines:
        if heading := re.match(r"\S.*?  (\w+\.py):\d+  [\d.]+ m?s, ", line):
            place = ROOT / Path(script).parent / heading[1]
        elif place and re.match(r" *\d+ (?!more line)", line):
            number = int(line.split()[0])
            source = place.read_text(encoding="utf-8").splitlines()[number - 1].strip()
            assert source[:20].strip() in line, f"{script}:{number}"
            shown += 1
    assert shown >= 1  # in one example a single line is nearly all of the step


def batches(script: Path) -> list[int]:
    """Each value that the script gives its constant BATCH, in one assignment with others, as they stand."""
    found: list[int] = []
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign) and "BATCH" in (
            names := ast.unparse(node.targets[0]).strip("()").split(", ")
        ):
            values = (
                [node.value.body, node.value.orelse] if isinstance(node.value, ast.IfExp) else [node.value]
            )
            found += [ast.literal_eval(value.elts[names.index("BATCH")]) for value in values]
    return found


@pytest.mark.parametrize(
    "fixed", sorted((ROOT / "examples").glob("*/fixed.py")), ids=lambda file: file.parent.name
)
def test_samples_per_step_are_those_of_the_scripts(fixed: Path) -> None:
    pairs = zip(batches(fixed.with_name("slow.py")), batches(fixed), strict=True)
    ratios = {after / before for before, after in pairs} or {1.0}
    assert ratios == {SAMPLES.get(fixed.parent.name, 1.0)}


def test_the_front_page_names_every_command() -> None:
    table = README.split("## What it does")[1].split("\n## ")[0]
    assert set(re.findall(r"`(?:warpline )(\w+)", table)) | {"compare", "explain"} == set(COMMANDS)


def test_the_front_page_names_every_setting() -> None:
    block = README.split("[tool.warpline]\n")[1].split("```")[0]
    names = {name.replace("-", "_") for name in re.findall(r"^([\w-]+) =", block, re.MULTILINE)}
    assert names == {f.name for f in fields(Settings)} - {"folder"}


def test_the_changelog_knows_this_version() -> None:
    assert f"\n## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "page",
    [*pages(), *sorted((ROOT / "docs").rglob("*.md")), ROOT / "server/ARCHITECTURE.md"],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target
