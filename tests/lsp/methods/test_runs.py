"""Runs beside each other: what may be compared, what is kept, what all files have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.client import Client
from tests.lsp.conftest import TRAIN
from tests.lsp.folder import finding, write_run
from warpline.model import report as r
from warpline.wire.run import Request

TWO_RANKS = Request(target="train.py", launcher=("torchrun", "--nproc-per-node", "2"))


def whole(client: Client, uri: str) -> str:
    """The lens over the whole file."""
    lenses = client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    return next(lens["command"]["title"] for lens in lenses if " a step" in lens["command"]["title"])


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ({"scale": 2.0}, {}, "40.0 ms a step (2.00x, was 80.0 ms)"),
        ({}, {"scale": 1.28}, "51.2 ms a step (28 % slower, was 40.0 ms)"),
        ({"scale": 1.03}, {}, "40.0 ms a step"),
        ({"scale": 18.9, "argv": ("--depth", "24")}, {"argv": ("--depth", "2")}, "40.0 ms a step"),
        ({"scale": 18.9, "device": "Other"}, {}, "40.0 ms a step"),
        ({"scale": 18.9, "request": TWO_RANKS}, {}, "40.0 ms a step"),
        ({"scale": 1.5, "spread": 0.6}, {}, "40.0 ms a step"),
        ({"scale": 1.5}, {"spread": 0.6}, "40.0 ms a step"),
    ],
    ids=["faster", "slower", "the same", "arguments", "device", "launcher", "busy before", "busy after"],
)
def test_only_what_can_be_compared_is(
    script: Path, connect: Callable[..., Client], first: dict[str, Any], second: dict[str, Any], said: str
) -> None:
    write_run(script.parent, {script: TRAIN}, **first)
    write_run(script.parent, {script: TRAIN}, **second)
    client = connect(script.parent)
    uri = client.open(script)
    client.until(lambda: client.hints(uri))
    assert whole(client, uri) == said
    if "argv" in second or "device" in first or "request" in first:
        assert client.request("warpline/overview", {"uri": uri})["previousStepMs"] is None
        assert client.request("warpline/compare", {"uri": uri}) is None
        # Asked for by name they are put side by side, and the reason why that says little is told.
        runs = client.request("warpline/runs", {"uri": uri})
        compared = client.request("warpline/compare", {"uri": uri, "run": runs[1]["run"]})
        assert not compared["comparable"] and "not comparable" in compared["title"]
    elif "(" not in said:
        compared = client.request("warpline/compare", {"uri": uri, "hints": True})
        assert compared["title"].endswith("no measurable change")
        hints = client.hint_lines(uri).values()
        assert hints and all(hint.count(" · ") == 1 for hint in hints)  # no difference


def test_an_older_run_with_the_same_arguments_is_the_one_before(
    script: Path, connect: Callable[..., Client]
) -> None:
    write_run(script.parent, {script: TRAIN}, scale=2.0, argv=("--depth", "2"))
    write_run(script.parent, {script: TRAIN}, scale=30.0, argv=("--depth", "24"))
    write_run(script.parent, {script: TRAIN}, argv=("--depth", "2"))
    client = connect(script.parent)
    uri = client.open(script)
    client.until(lambda: client.hints(uri))
    assert whole(client, uri) == "40.0 ms a step (2.00x, was 80.0 ms)"


def test_the_results_of_another_script_are_kept(script: Path, connect: Callable[..., Client]) -> None:
    other = script.with_name("evaluate.py")
    other.write_text("y = 1  # 30 ms\n")
    shared = script.with_name("model.py")
    shared.write_text("z = 1  # 5 ms\n")
    sources = {script: TRAIN, shared: shared.read_text()}
    write_run(script.parent, sources, findings=[finding(script, 5), finding(shared, 1)])
    client = connect(script.parent)
    uri = client.open(script)
    client.until(lambda: client.hints(uri))
    write_run(
        script.parent,
        {other: other.read_text(), shared: "z = 1  # 7 ms\n"},
        findings=[finding(other, 1, rule="small-batch")],
    )
    client.until(lambda: client.request("warpline/overview", {})["script"] == str(other))
    assert client.hint_lines(uri)[4] == "20.0 ms · 44 %"
    assert client.hint_lines(client.open(other)) == {0: "30.0 ms · 81 %"}
    # A file of both shows the newer run.
    assert client.hint_lines(client.open(shared)) == {0: "7.00 ms · 19 %"}
    assert client.request("warpline/overview", {"uri": uri})["script"] == str(script)


def test_findings_of_files_that_are_not_open(script: Path, connect: Callable[..., Client]) -> None:
    other = script.with_name("model.py")
    other.write_text("y = 1  # 30 ms\n")
    sources = {script: TRAIN, other: other.read_text()}
    write_run(script.parent, sources, findings=[finding(script, 5), finding(other, 1)])
    client = connect(script.parent)
    ask: dict[str, Any] = {"previousResultIds": []}

    def reports() -> dict[str, Any]:
        return {item["uri"]: item for item in client.request("workspace/diagnostic", ask)["items"]}

    found = client.until(lambda: len(reports()) == 2 and reports())
    assert [d["code"] for d in found[other.as_uri()]["items"]] == ["fp32-matmul"]
    # The second time only what changed is told, and what has none any more is told once.
    uri = client.open(script)
    for _ in range(2):  # the rules' pages are written meanwhile, and are linked to then
        client.until(lambda: client.diagnostics(uri)[0].get("codeDescription"))
        ask["previousResultIds"] = [
            {"uri": u, "value": r["resultId"]} for u, r in reports().items() if "resultId" in r
        ]
    assert {item["kind"] for item in reports().values()} == {"unchanged"}
    client.edit(uri, (4, 0), (5, 0), "    scores = 0\n")
    changed = reports()
    assert (changed[uri]["kind"], changed[uri]["items"]) == ("full", [])
    assert changed[other.as_uri()]["kind"] == "unchanged"


def test_runs_are_listed_opened_and_compared(script: Path, connect: Callable[..., Client]) -> None:
    old = write_run(script.parent, {script: TRAIN}, scale=2.0, argv=("--x", "1"))
    new = write_run(script.parent, {script: TRAIN}, argv=("--x", "1"))
    client = connect(script.parent)
    uri = client.open(script)
    client.until(lambda: client.hints(uri))
    rows = client.request("warpline/runs", {})
    assert [(row["run"], row["stepMs"], row["shown"]) for row in rows] == [
        (str(new), 40.0, True),
        (str(old), 80.0, False),
    ]
    assert rows[0]["argv"] == ["--x", "1"] and rows[0]["label"] == "40.0 ms ± 2.0 %"

    assert client.request("warpline/openRun", {"run": str(old)}) is True
    assert client.hint_lines(uri)[4] == "40.0 ms · 50 %"
    assert client.request("warpline/openRun", {"run": str(new)}) is True
    assert client.hint_lines(uri)[4] == "20.0 ms · 50 %"

    compared = client.request("warpline/compare", {"uri": uri, "hints": True})
    assert compared["title"] == "80.0 ms → 40.0 ms a step: 2.00x"
    assert client.hint_lines(uri)[4] == "20.0 ms · 50 % · -20.0 ms"
    client.edit(uri, (0, 0), (0, 0), "# a line\n")
    assert client.hint_lines(uri)[5] == "20.0 ms · 50 % · -20.0 ms"
    other_way = client.request(
        "warpline/compare", {"uri": uri, "run": str(new), "with": str(old), "hints": False}
    )
    assert other_way["title"] == "40.0 ms → 80.0 ms a step: 100 % slower"
    assert client.hint_lines(uri)[5] == "20.0 ms · 50 %"
    # Another profile is shown, whatever was opened before.
    client.request("warpline/openRun", {"run": str(old)})
    write_run(script.parent, {script: TRAIN}, scale=3.0)
    client.until(lambda: client.hint_lines(uri)[5] == "60.0 ms · 50 %")


def test_the_lens_says_what_a_click_runs(tmp_path: Path, connect: Callable[..., Client]) -> None:
    plain, torch = tmp_path / "plain.py", tmp_path / "torch_user.py"
    plain.write_text("import os\n")
    torch.write_text("import os\nfrom torch import nn\n")
    client = connect(tmp_path)

    def titles(path: Path) -> list[str]:
        lenses = client.request("textDocument/codeLens", {"textDocument": {"uri": path.as_uri()}})
        return [lens["command"]["title"] for lens in lenses]

    client.open(plain)
    client.open(torch)
    assert titles(plain) == []
    assert titles(torch) == ["Profile this file"]
    (tmp_path / "requirements.txt").write_text("torch>=2.4\n")
    assert titles(plain) == ["Profile this file"]
    request = Request(target="package.torch_user", module=True, argv=("--epochs", "1"), cwd=str(tmp_path))
    write_run(tmp_path, {torch: "x = 1  # 3 ms\n"}, argv=("--epochs", "1"), request=request)
    client.until(lambda: titles(torch)[0] == "Profile module package.torch_user (--epochs 1)")
    ranks = replace(TWO_RANKS, target="package.torch_user", module=True, argv=("--epochs", "1"))
    write_run(tmp_path, {torch: "x = 1  # 3 ms\n"}, argv=ranks.argv, request=ranks)
    said = "Profile module package.torch_user with torchrun --nproc-per-node 2 (--epochs 1)"
    client.until(lambda: titles(torch)[:2] == [said, "Without torchrun"])


def test_heat_of_the_lines_on_screen(profiled: tuple[Client, str]) -> None:
    client, uri = profiled
    every = [line["line"] for line in client.request("warpline/heat", {"uri": uri})["lines"]]
    shown = client.request("warpline/heat", {"uri": uri, "first": 5, "last": 9})["lines"]
    assert [line["line"] for line in shown] == [line for line in every if 5 <= line <= 9] == [5, 9]


def test_a_measured_gain_is_told_with_its_interval(script: Path, connect: Callable[..., Client]) -> None:
    edit = r.Edit(str(script), (5, 4), (5, 10), "points")
    found = replace(
        finding(script, 5, fixes=(r.Fix("Use F.gelu", "safe", (edit,)),)),
        measured=r.Measured(1.10, 1.09, 1.12, 0.0, 0.86),
    )
    write_run(script.parent, {script: TRAIN}, findings=[found])
    client = connect(script.parent)
    uri = client.open(script)
    client.until(lambda: client.diagnostics(uri))
    words = "1.10x, 1.09 to 1.12; 14 % less memory"
    assert client.actions(uri, 4)[0]["title"] == f"Use F.gelu: {words}"
    assert f"measured {words}" in client.at("textDocument/hover", uri, 4)["contents"]["value"]
    (shown,) = client.request("warpline/overview", {"uri": uri})["findings"]
    assert shown["gain"] == words
