"""Exit statuses, one-line errors, and who may print where."""

from __future__ import annotations

import gc
import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import LIMIT_S, ROOT, environment, warpline
from warpline.__main__ import main
from warpline.commands import COMMANDS, rules
from warpline.toml import tomllib

TINY = """\
import os
import torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(int(os.environ.get('TINY_STEPS', 100_000))):
    loss = model(torch.ones(2, 4)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("the script's own line")
"""


def one_line(text: str) -> str:
    (line,) = text.splitlines()
    return line


def test_modules_in_the_working_folder_are_not_taken_for_pythons_own(tmp_path: Path) -> None:
    for name in ("argparse", "pathlib", "queue", "msgspec"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong one')\n")
    (tmp_path / "train.py").write_text("import queue\n")
    done = warpline("show", "train.py", cwd=tmp_path)
    assert done.returncode == 2
    assert one_line(done.stderr).startswith("warpline: train.py is not a run folder")


def test_garbage_is_not_looked_for_while_the_process_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen: list[bool] = []
    monkeypatch.setattr(sys, "argv", ["warpline", "--version"])
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    monkeypatch.setattr(gc, "set_threshold", lambda *_: None)
    assert main(["--version"]) == 0  # within another program
    assert not frozen
    assert main() == 0
    assert frozen


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_an_import_starts_no_threads_of_numpys(tmp_path: Path) -> None:
    code = """
import os
from warpline.commands import import_
import_._import_numpy()
print(len(os.listdir("/proc/self/task")), os.environ.get("OPENBLAS_NUM_THREADS"))
"""
    usual = environment()
    del usual["OMP_NUM_THREADS"]  # which OpenBLAS looks at, too
    for more, expected in (({}, "1 None"), ({"OPENBLAS_NUM_THREADS": "1"}, "1 1")):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=usual | more, capture_output=True, text=True, timeout=LIMIT_S, check=True,
        )  # fmt: skip
        assert done.stdout.split() == expected.split()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["profle", "x.py"], "there is no command 'profle'; did you mean 'profile'?"),
        (["train.py"], "did you mean 'warpline profile train.py'?"),
        (["profile"], "say what to run"),
        (["profile", "missing.py"], "there is no script missing.py"),
        (["profile", "python3", "here.py"], "omit the interpreter, or choose it with --python"),
        (
            ["profile", "torchrun", "--nproc-per-node", "2", "here.py", "--steps", "5"],
            "torchrun is a launcher: say --launcher 'torchrun --nproc-per-node 2' here.py --steps 5",
        ),
        (["profile", "torchrun", "-m", "here", "--steps", "5"], "name it with --launcher 'torchrun …', and"),
        (
            ["profile", "--launcher", "torchrun", "--nproc-per-node", "2", "here.py"],
            "(a launcher and its options are one argument: --launcher 'torchrun …')",
        ),
        (["profile", "here.ipynb"], "here.ipynb is a notebook"),
        (
            ["profile", "missing.py", "--steps", "3"],
            "(--steps was passed to the script: ",
        ),
        (["fix", "here.py", "--diff"], "(--diff was passed to the script"),
        (["tune"], "say what to run"),
        (["profile", "--include", "gone", "here.py"], "there is no folder gone to include"),
        (["profile", "."], ". is a folder without __main__.py"),
        (["profile", "--steps", "0", "x.py"], "'0' is not a whole number of at least 1"),
        (["profile", "--timeout", "soon", "x.py"], "'soon' is not a number of seconds above 0"),
        (["attach", "--seconds", "0", "1"], "'0' is not a number of seconds above 0"),
        (["profile", "--bogus", "here.py"], "unrecognized arguments: --bogus"),
        (["profile", "--python", "/no/python", "here.py"], "/no/python"),
        (["profile", "--launcher", "torchrun 'x", "here.py"], "--launcher"),
        (["profile", "--json", "no/where.json", "here.py"], "there is no such folder"),
        (["show"], "no run in"),
        (["show", "gone"], "there is no run gone"),
        (["show", "here.py"], "here.py is not a run folder"),
        (["compare", "a"], "no run in"),
        (["report"], "no run in"),
        (["report", "--by", "color"], "invalid choice: 'color'"),
        (["show", "--top", "0"], "'0' is not a whole number of at least 1"),
        (["import", "gone.json"], "gone.json"),
        (["explain", "no-such-rule"], "no-such-rule"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_input_is_one_line_and_status_2(tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "here.py").write_text(TINY)
    (tmp_path / "here.ipynb").write_text("{}")
    done = warpline(*words, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert said in one_line(done.stderr)
    assert done.stdout == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_is_one_line_and_status_2(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "warpline", "rules"],
            cwd=tmp_path,
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=LIMIT_S,
        )
    assert (done.returncode, done.stderr) == (2, "warpline: no space left to write the output\n")


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="only Linux has a folder that root cannot write")
def test_a_folder_without_write_permission_is_one_line_and_status_2(tmp_path: Path) -> None:
    (tmp_path / "tiny.py").write_text(TINY)
    for words, folder in (((), Path("/sys/kernel")), (("--run-dir", "/sys/kernel/runs"), tmp_path)):
        done = warpline("profile", *words, tmp_path / "tiny.py", cwd=folder)
        assert done.returncode == 2
        assert one_line(done.stderr).startswith("warpline: cannot write to /sys/kernel")


def test_the_installed_command_is_this_one() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts["warpline"].partition(":")
    assert getattr(importlib.import_module(module), function) is main
    assert list(scripts) == ["warpline"]


def test_help_names_every_command(tmp_path: Path) -> None:
    done = warpline("--help", cwd=tmp_path)
    assert done.returncode == 0
    assert all(f"\n  {name} " in done.stdout for name in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(tmp_path: Path, command: str) -> None:
    done = warpline(command, "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: warpline ")


def test_a_script_that_dies_first_keeps_its_traceback_and_gives_1(tmp_path: Path) -> None:
    (tmp_path / "dies.py").write_text("def f():\n    raise ValueError('its own')\n\nf()\n")
    done = warpline("profile", "dies.py", cwd=tmp_path)
    assert done.returncode == 1
    assert 'dies.py", line 2, in f' in done.stderr
    assert "ValueError: its own" in done.stderr
    assert "runner" not in done.stderr  # no frame of ours
    assert done.stdout == ""


def test_json_to_standard_output_is_alone_there(tmp_path: Path) -> None:
    (tmp_path / "tiny.py").write_text(TINY)
    done = warpline("profile", "--whole-run", "--json", "-", "tiny.py", cwd=tmp_path, TINY_STEPS="2000")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["script"] == str(tmp_path / "tiny.py")
    assert "the script's own line" in done.stderr


def test_options_after_the_script_are_the_scripts(tmp_path: Path) -> None:
    (tmp_path / "tiny.py").write_text(TINY)
    ours = ("--run-dir", "elsewhere", "--steps", "2", "--warmup", "4", "--timeout", "90", "--top", "1")
    python = ("--python", sys.executable)
    done = warpline("profile", *ours, *python, "tiny.py", "--steps", "x", "--json", "--", "-m", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "tiny.py --steps x --json -- -m" in done.stdout
    assert not (tmp_path / ".warpline").exists()
    (manifest,) = (tmp_path / "elsewhere").glob("*/manifest.json")
    kept = json.loads(manifest.read_text())
    assert len(kept["captured"]) == 2
    asked = {name: kept["request"][name] for name in ("python", "steps", "warmup", "timeout_s")}
    assert asked == {"python": sys.executable, "steps": 2, "warmup": 4, "timeout_s": 90}
    numbered = [line for line in done.stdout.splitlines() if re.match(r" *\d+ +[\d.]+ +[\d.]+ %", line)]
    assert len(numbered) == 1


def test_progress_and_a_file_for_json(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package/tiny.py").write_text(TINY)
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "warpline", "profile", "--progress-fd", str(writer)),
            *("--json", "out.json", "--steps", "3", "-m", "package.tiny", "--mine"),
        ],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[writer],
    )
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as lines:
        stages = [json.loads(line) for line in lines]
    assert process.wait(LIMIT_S) == 0
    report = json.loads((tmp_path / "out.json").read_text())
    assert report["argv"] == ["--mine"]
    assert report["steps"]["captured"] == 3
    assert {"starting", "timing", "capturing", "reading"} <= {entry["stage"] for entry in stages}
    assert all(set(entry) == {"stage", "done", "total", "message"} for entry in stages)


def test_a_fault_of_ours_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(options: object) -> int:
        raise ZeroDivisionError("first\nsecond")

    monkeypatch.setattr(rules, "run", broken)
    assert main(["rules"]) == 2
    assert one_line(capsys.readouterr().err).startswith(
        "warpline: internal error: ZeroDivisionError: first ("
    )


def test_a_reader_who_leaves_is_no_error(tmp_path: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m warpline rules | head -1",
        shell=True,
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0
    assert done.stderr == ""
