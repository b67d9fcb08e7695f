"""Profiles through the server: real scripts in real interpreters, followed, cancelled, killed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lsp.client import SILENCE, Client, Error

SCRIPT = """\
import pathlib, sys, torch

model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
pathlib.Path("started").write_text(" ".join(sys.argv[1:]))
while not pathlib.Path("enough").exists():
    loss = model(torch.randn(32, 64)).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
#: Never takes a step (it has no need of torch for that), and has a child that would outlive it; both
#: write their process ids.
HANGS = """\
import os, pathlib, subprocess, sys

child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
pathlib.Path("pids.part").write_text(f"{os.getpid()} {child.pid}")
os.rename("pids.part", "pids")
print("a line that the script prints", flush=True)
child.wait()
"""


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture
def hanging(tmp_path: Path) -> Path:
    path = tmp_path / "hangs.py"
    path.write_text(HANGS)
    return path


def running(client: Client, folder: Path) -> list[int]:
    """The processes of ``HANGS``, once they are there."""
    return list(
        map(int, client.until(lambda: (folder / "pids").exists() and (folder / "pids").read_text()).split())
    )


def gone(client: Client, processes: list[int]) -> bool:
    return client.until(lambda: not any(map(alive, processes)))


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_profile_a_file_and_again_with_the_last_arguments(
    tmp_path: Path, connect: Callable[..., Client]
) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    client = connect(tmp_path)
    uri = client.open(script)
    assert client.hints(uri) == []
    params = {
        "uri": uri,
        "python": sys.executable,
        "args": ["--epochs", "2"],
        "steps": 2,
        "workDoneToken": "mine",
    }
    answer = client.request("warpline/profile", params)
    assert answer["script"] == str(script)
    assert Path(answer["run"]).parent == tmp_path / ".warpline/runs"
    assert answer["stepMs"] > 0 and answer["lines"] > 0

    # The hot lines are those of the loop, and they are where the text has them.
    heat = client.request("warpline/heat", {"uri": uri})
    assert heat["run"] == answer["run"]
    assert {line["line"] for line in heat["lines"]} >= {6, 7, 8}
    assert {4} & {line["line"] for line in heat["lines"]} == set()
    total = sum(line["stepMs"] for line in heat["lines"])
    assert total == pytest.approx(answer["stepMs"], rel=0.1)

    stages = [progress["stage"] for progress in client.messages("warpline/progress")]
    assert list(dict.fromkeys(stages))[:1] == ["starting"]
    assert {"timing", "capturing", "reading"} <= set(stages)
    bar = [m["value"] for m in client.messages("$/progress") if m["token"] == "mine"]
    assert bar[0]["kind"] == "begin" and bar[0]["cancellable"] and bar[-1]["kind"] == "end"
    percents = [value["percentage"] for value in bar[1:-1]]
    assert percents == sorted(percents) and percents[-1] > 85

    # Again, by the command of the lens, with the arguments of the last time.
    (tmp_path / "started").unlink()
    again = client.command("warpline.profile", {"uri": uri, "python": sys.executable, "steps": 2})
    assert again is not None, client.messages("window/showMessage")
    assert (tmp_path / "started").read_text() == "--epochs 2"
    assert again["run"] > answer["run"]
    created = client.messages("window/workDoneProgress/create")
    assert len(created) == 1
    overview = client.request("warpline/overview", {"uri": uri})
    assert overview["run"] == again["run"]
    assert overview["argv"] == ["--epochs", "2"]
    assert overview["previousStepMs"] == pytest.approx(answer["stepMs"])
    compared = client.request("warpline/compare", {"uri": uri})
    assert compared["before"]["run"] == answer["run"] and compared["after"]["run"] == again["run"]
    assert {row["line"] for row in compared["lines"]} >= {6, 7, 8}

    # Its page, whose lines are found where they stand now; no other file is.
    made = client.request("warpline/page", {"uri": uri})
    assert made == {
        "run": again["run"],
        "script": str(script),
        "file": str(Path(again["run"]) / "report.html"),
    }
    assert "Content-Security-Policy" in Path(made["file"]).read_text()
    client.edit(uri, (0, 0), (0, 0), "\n")
    asked = {"run": again["run"], "file": str(script), "line": 7}
    assert client.request("warpline/place", asked) == {"uri": uri, "line": 7}
    assert client.request("warpline/place", {**asked, "file": "/etc/passwd"}) is None
    assert client.request("warpline/place", {**asked, "run": str(tmp_path)}) is None
    with pytest.raises(Error):
        client.request("warpline/place", {"run": 5})


def cancel_request(client: Client, uri: str) -> None:
    number = client.begin("warpline/profile", {"uri": uri, "python": sys.executable})
    processes = running(client, Path(client.folders[0]))
    client.cancel(number)
    with pytest.raises(Error) as error:
        client.answer(number)
    assert error.value.code == -32800
    assert gone(client, processes)
    # Who sends the request without a token shows the progress itself, and gets no second bar.
    assert client.messages("warpline/progress") and client.messages("window/workDoneProgress/create") == []


def cancel_progress(client: Client, uri: str) -> None:
    number = client.begin("workspace/executeCommand", {"command": "warpline.profile", "arguments": [uri]})
    processes = running(client, Path(client.folders[0]))
    token = client.messages("window/workDoneProgress/create")[0]["token"]
    client.notify("window/workDoneProgress/cancel", {"token": token})
    assert client.answer(number) is None
    assert gone(client, processes)
    assert client.messages("$/progress")[-1]["value"] == {"kind": "end", "message": "cancelled"}


def cancel_command(client: Client, uri: str) -> None:
    number = client.begin("workspace/executeCommand", {"command": "warpline.profile", "arguments": [uri]})
    processes = running(client, Path(client.folders[0]))
    client.cancel(number)
    with pytest.raises(Error) as error:
        client.answer(number)
    assert error.value.code == -32800
    assert gone(client, processes)


def cancel_by_lens(client: Client, uri: str) -> None:
    number = client.begin("warpline/profile", {"uri": uri})
    processes = running(client, Path(client.folders[0]))
    lens = client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})[0]["command"]
    assert lens["command"] == "warpline.cancel"
    assert client.command(lens["command"], *lens["arguments"]) is True
    with pytest.raises(Error) as error:
        client.answer(number)
    assert error.value.code == -32800
    assert gone(client, processes)


@pytest.mark.parametrize("cancel", [cancel_request, cancel_progress, cancel_command, cancel_by_lens])
def test_cancel_ends_the_script_and_its_children(
    hanging: Path, connect: Callable[..., Client], cancel: Callable[[Client, str], None]
) -> None:
    settings = {"python": sys.executable}
    client = connect(hanging.parent, settings=settings)
    uri = client.open(hanging)
    cancel(client, uri)
    # Nothing is left over, and the next profile may begin.
    client.until(lambda: list((hanging.parent / ".warpline/runs").iterdir()) == [])
    client.until(lambda: client.command("warpline.cancel") is False)


def test_one_at_a_time_others_are_refused_or_queue(hanging: Path, connect: Callable[..., Client]) -> None:
    client = connect(hanging.parent, settings={"python": sys.executable})
    uri = client.open(hanging)
    first = client.begin("warpline/profile", {"uri": uri})
    processes = running(client, hanging.parent)
    with pytest.raises(Error, match="is being profiled") as error:
        client.request("warpline/profile", {"uri": uri})
    assert (error.value.code, error.value.data["reason"]) == (-32803, "busy")
    (hanging.parent / "pids").unlink()
    second = client.begin("warpline/profile", {"uri": uri, "whenBusy": "queue"})
    client.wait(lambda: any(p["stage"] == "queued" for p in client.messages("warpline/progress")))
    client.cancel(first)
    assert gone(client, processes)
    others = running(client, hanging.parent)
    # The server answers while a profile runs, and shows what the script prints.
    assert client.hints(uri) == []
    client.wait(
        lambda: any("that the script prints" in m["message"] for m in client.messages("window/logMessage"))
    )
    client.cancel(second)
    assert gone(client, others)


def test_a_question_that_nobody_answers(hanging: Path, connect: Callable[..., Client]) -> None:
    """It is given up in the end, and needs no answer any more once there is nothing to wait for."""
    question, both = "window/showMessageRequest", {"command": "warpline.profile"}
    answers = {question: lambda params: SILENCE}
    start = "from warpline.lsp.methods import profile; profile.ANSWER_S = {}; "
    start += "from warpline.lsp.serve import serve; serve()"
    command = [sys.executable, "-c", start.format(0.2)]
    settings = {"python": sys.executable}
    client = connect(hanging.parent, settings=settings, answers=answers, command=command)
    both["arguments"] = [client.open(hanging)]
    number = client.begin("workspace/executeCommand", both)
    running(client, hanging.parent)
    assert client.request("workspace/executeCommand", both) is None
    (said,) = client.until(lambda: client.messages("window/showMessage"))
    assert "is being profiled in this folder" in said["message"]
    assert client.command("warpline.cancel") is True and client.answer(number) is None

    (hanging.parent / "pids").unlink()
    command[-1] = start.format(3600)
    client = connect(hanging.parent, settings=settings, answers=answers, command=command)
    first = client.begin("workspace/executeCommand", both)
    processes = running(client, hanging.parent)
    (hanging.parent / "pids").unlink()
    second = client.begin("workspace/executeCommand", both)
    client.wait(lambda: client.messages(question))
    client.cancel(first)
    assert gone(client, processes)
    others = running(client, hanging.parent)
    client.cancel(second)
    assert gone(client, others)


def test_the_target_killed_costs_only_its_run(hanging: Path, connect: Callable[..., Client]) -> None:
    client = connect(hanging.parent, settings={"python": sys.executable})
    uri = client.open(hanging)
    number = client.begin("warpline/profile", {"uri": uri})
    process, child = running(client, hanging.parent)
    os.kill(process, signal.SIGKILL)
    with pytest.raises(Error, match="SIGKILL") as error:
        client.answer(number)
    assert error.value.data["reason"] == "no-steps"
    assert gone(client, [process, child])
    assert client.hints(uri) == []


@pytest.mark.parametrize("how", ["closed", "killed", "shutdown"])
def test_no_target_is_left_behind(hanging: Path, connect: Callable[..., Client], how: str) -> None:
    """The editor closed in the middle of a profile; the server killed; a proper end."""
    client = connect(hanging.parent, settings={"python": sys.executable})
    uri = client.open(hanging)
    client.begin("warpline/profile", {"uri": uri})
    processes = running(client, hanging.parent)
    if how == "closed":
        client.process.stdin.close()
    elif how == "killed":
        client.process.kill()
    else:
        client.request("shutdown", None)
        assert not any(map(alive, processes))
        client.notify("exit", None)
    client.process.wait(90)
    assert gone(client, processes)


def test_what_cannot_be_profiled_is_said_in_one_line(tmp_path: Path, connect: Callable[..., Client]) -> None:
    script = tmp_path / "train.py"
    client = connect(tmp_path)
    cases: list[tuple[str | None, dict[str, str], str, str]] = [
        (None, {}, "refused", "save it first"),
        ("pass\n", {}, "no-steps", "without importing torch"),
        ("raise ValueError('no data')\n", {}, "no-steps", "no data"),
        ("", {"python": "/no/such/python"}, "no-python", "/no/such/python"),
        ("", {"uri": "untitled:Untitled-1"}, "refused", "save the file first"),
        ("", {"uri": "git:/a.py?x"}, "refused", "git:"),
    ]
    for text, params, reason, said in cases:
        if text is not None:
            script.write_text(text)
        with pytest.raises(Error, match=said) as error:
            client.request("warpline/profile", {"uri": script.as_uri(), "python": sys.executable, **params})
        assert (error.value.code, error.value.data["reason"]) == (-32803, reason)
        assert "\n" not in str(error.value) and "Traceback" not in str(error.value)


def test_what_goes_wrong_with_a_command_is_shown(tmp_path: Path, connect: Callable[..., Client]) -> None:
    client = connect(tmp_path)
    assert client.command("warpline.profile", "untitled:Untitled-1") is None
    client.wait(lambda: client.messages("window/showMessage"))
    assert "save the file first" in client.messages("window/showMessage")[0]["message"]
