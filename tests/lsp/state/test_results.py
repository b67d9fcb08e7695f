"""Where results come from: the newest run, made by whomever, complete or not, theirs or a stranger's."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tests.lsp.client import Client
from tests.lsp.conftest import TRAIN
from tests.lsp.folder import finding, lines, write_report, write_run

TWICE = TRAIN.replace("# 20 ms", "# 60 ms")


def label(client: Client, uri: str) -> str | None:
    return client.hint_lines(uri).get(4)


def test_results_are_there_after_a_restart(script: Path, connect: Callable[..., Client]) -> None:
    write_run(script.parent, {script: TRAIN})
    for _ in range(2):
        client = connect(script.parent)
        uri = client.open(script)
        client.until(lambda c=client, u=uri: label(c, u) == "20.0 ms · 50 %")
        client.process.kill()


def test_a_run_made_elsewhere_appears_and_replaces_the_old_as_a_whole(
    script: Path, connect: Callable[..., Client]
) -> None:
    other = script.with_name("model.py")
    other.write_text("y = x * 2  # 40 ms\n")
    client = connect(script.parent)  # there is no .warpline yet
    uri, second = client.open(script), client.open(other)
    assert (
        client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})[0]["range"]["start"]["line"]
        == 0
    )
    assert client.request("warpline/overview", {}) is None
    first = write_run(script.parent, {script: TRAIN, other: other.read_text()})
    client.wait(lambda: client.messages("warpline/results"))
    assert client.messages("warpline/results")[0] == {
        "run": str(first),
        "script": str(script),
        "stepMs": 80.0,
        "uris": [second, uri],
    }
    assert client.hint_lines(second) == {0: "40.0 ms · 50 %"}

    # Complete, and its report a moment later, as `warpline profile` in a terminal leaves it.
    run = write_run(script.parent, {script: TWICE}, report=False)
    assert client.hint_lines(second) == {0: "40.0 ms · 50 %"}
    write_report(run, script, tuple(lines(script, TWICE)), (), 80.0)
    client.wait(lambda: len(client.messages("warpline/results")) == 2)
    assert client.hint_lines(second) == {}
    assert label(client, uri) == "60.0 ms · 75 %"
    totals = client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    titles = {lens["range"]["start"]["line"]: lens["command"]["title"] for lens in totals[1:]}
    assert titles == {
        0: "80.0 ms a step",
        3: "self 64.0 ms · 80 %, was 24.0 ms",
        8: "self 16.0 ms · 20 %",
    }
    rows = client.request("warpline/compare", {"uri": uri})["lines"]
    assert {(row["uri"], row["line"], row["deltaMs"]) for row in rows[:2]} == {
        (uri, 4, 40.0),
        (second, -1, -40.0),
    }
    gone = next(row for row in rows if row["uri"] == second)
    assert (gone["line"], gone["beforeMs"], gone["afterMs"]) == (-1, 40.0, None)


def test_a_run_that_cannot_be_read_leaves_the_last_good_one(
    script: Path, connect: Callable[..., Client]
) -> None:
    good = write_run(script.parent, {script: TRAIN}, name="20260101-000000-000")
    for name, part, text in [
        ("20260101-000000-001", "report.json", "{"),
        ("20260101-000000-002", "report.json", '{"format": 99}'),
        ("20260101-000000-003", "manifest.json", "[" * 100_000),
        ("20260101-000000-004", "sources.json", '{"a": 1}'),
        ("20260101-000000-005", "report.json", '"\\ud800'),
    ]:
        bad = write_run(script.parent, {script: TWICE}, name=name)
        (bad / part).write_text(text)
    client = connect(script.parent)
    uri = client.open(script)
    client.until(lambda: label(client, uri) == "20.0 ms · 50 %")
    assert client.request("warpline/overview", {})["run"] == str(good)


def test_a_strangers_run_can_do_no_harm(script: Path, connect: Callable[..., Client]) -> None:
    evil = "[click](command:workbench.action.quit) ![x](http://evil/x.png) <img src=x> | `a` http://evil/"
    run = write_run(script.parent, {script: TRAIN}, findings=[finding(script, 5, message=evil)])
    report = (run / "report.json").read_text()
    (run / "report.json").write_text(report.replace("void gemm<float, 128>", "`](command:x)|<img src=x>"))
    client = connect(script.parent)
    uri = client.open(script)
    client.until(lambda: label(client, uri))
    words = client.at("textDocument/hover", uri, 4)["contents"]["value"]
    # Outside of code spans nothing that Markdown would make a link, an image, a tag or a cell of.
    prose = re.sub(r"`[^`\n]*`", "", words.replace("\\`", ""))
    assert not re.search(r"(?<!\\)[\[\]<>`]|://", prose), prose
    assert all(line.count("|") in (0, 4) for line in prose.replace("\\|", "").split("\n"))
    for notice in client.diagnostics(uri):
        assert notice.get("codeDescription", {}).get("href", "file:").startswith("file:")


def test_two_servers_on_one_workspace(script: Path, connect: Callable[..., Client]) -> None:
    clients = [connect(script.parent), connect(script.parent, name="nvim-0.12.4")]
    uris = [client.open(script) for client in clients]
    write_run(script.parent, {script: TRAIN})
    for client, uri in zip(clients, uris, strict=True):
        client.until(lambda c=client, u=uri: label(c, u) == "20.0 ms · 50 %")
    clients[0].edit(uris[0], (0, 0), (0, 0), "\n")
    firsts = [next(iter(client.hint_lines(uri))) for client, uri in zip(clients, uris, strict=True)]
    assert firsts == [5, 4]


def test_several_folders_and_files_in_none(tmp_path: Path, connect: Callable[..., Client]) -> None:
    places = [tmp_path / name for name in ("one", "two", "elsewhere")]
    for n, place in enumerate(places):
        place.mkdir()
        (place / "train.py").write_text(TRAIN)
        text = TRAIN.replace("# 20 ms", f"# {n + 1}00 ms")
        write_run(place, {place / "train.py": text})
    client = connect(*places[:2])
    uris = [client.open(place / "train.py") for place in places]
    for n, uri in enumerate(uris):
        client.until(lambda u=uri, n=n: (label(client, u) or "").startswith(f"{n + 1}00 ms"))
    # A folder that is added while the server runs, and one that is removed.
    late = tmp_path / "late"
    late.mkdir()
    (late / "train.py").write_text(TRAIN)
    write_run(late, {late / "train.py": TRAIN})
    change = {
        "added": [{"uri": late.as_uri(), "name": "late"}],
        "removed": [{"uri": places[0].as_uri(), "name": "one"}],
    }
    client.notify("workspace/didChangeWorkspaceFolders", {"event": change})
    uri = client.open(late / "train.py")
    client.until(lambda: label(client, uri) == "20.0 ms · 50 %")
    assert client.hints(uris[0]) == []
    assert client.request("warpline/overview", {"uri": uris[1]})["script"] == str(places[1] / "train.py")
    # A buffer that is no file has no results, and costs nothing.
    untitled = client.open("untitled:Untitled-1", TRAIN)
    assert client.hints(untitled) == [] and client.diagnostics(untitled) == []
    assert client.at("textDocument/hover", untitled, 4) is None


def test_a_run_made_in_a_folder_below(tmp_path: Path, connect: Callable[..., Client]) -> None:
    below = tmp_path / "experiments" / "one"
    below.mkdir(parents=True)
    script = below / "train.py"
    script.write_text(TRAIN)
    write_run(below, {script: TRAIN})
    client = connect(tmp_path)
    uri = client.open(script)
    client.until(lambda: label(client, uri) == "20.0 ms · 50 %")
