"""Wrong input: one clear line and the exit status of the contract; no half run folder, no process left."""

from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.capture.launching import Captured, left_behind, request, write
from warpline import runs
from warpline.capture import again, launch, replayed
from warpline.capture.outcome import Outcome
from warpline.capture.tries import Tries
from warpline.model.problem import Problem
from warpline.wire.control import Purpose
from warpline.wire.messages import Ended
from warpline.wire.run import Request

STEP = "optimizer.zero_grad()\n    net(torch.randn(4, 16)).sum().backward()\n    optimizer.step()\n"
START = (
    "import torch, sys, time\nnet = torch.nn.Linear(16, 4)\n"
    "optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)\n"
)


def problem_of(asked: Request, folder: Path, cancelled: threading.Event | None = None) -> Problem:
    """Capture it; checks that nothing is left of it. The script's output is in ``output.txt``."""
    mark = f"WARPLINE_TEST={folder}"
    name, _, value = mark.partition("=")
    asked.environment[name] = value
    with (folder / "output.txt").open("wb") as output, pytest.raises(Problem) as caught:
        launch.capture(asked, folder / "runs" / "run", cancelled=cancelled, output=output.fileno())
    assert "\n" not in str(caught.value)
    place = folder / "runs"
    assert not place.is_dir() or list(place.iterdir()) == []
    assert left_behind(mark) == []
    return caught.value


def output(folder: Path) -> str:
    return (folder / "output.txt").read_text()


def test_no_such_script(tmp_path: Path) -> None:
    problem = problem_of(request(tmp_path / "train.py"), tmp_path)
    assert (str(problem), problem.status) == (f"there is no script {tmp_path}/train.py", 2)


def test_no_such_interpreter(tmp_path: Path) -> None:
    problem = problem_of(request(write(tmp_path, START), str(tmp_path / "python")), tmp_path)
    assert (str(problem), problem.status) == (f"there is no Python interpreter {tmp_path}/python", 2)


def test_no_such_launcher(tmp_path: Path) -> None:
    problem = problem_of(request(write(tmp_path, START), launcher=("no-such-launcher", "-n", "2")), tmp_path)
    assert str(problem).startswith("there is no launcher no-such-launcher on the PATH, nor beside ")
    assert problem.status == 2


def test_a_syntax_error(tmp_path: Path) -> None:
    problem = problem_of(request(write(tmp_path, "import torch\ndef (")), tmp_path)
    assert problem.status == 1
    assert str(problem).startswith("train.py failed with SyntaxError: ")
    assert str(problem).endswith(", before its first step")
    assert output(tmp_path).startswith(f'  File "{tmp_path}/train.py", line 2\n')


def test_it_dies_before_its_first_step(tmp_path: Path) -> None:
    problem = problem_of(request(write(tmp_path, START + "raise LookupError('no data')\n")), tmp_path)
    assert (str(problem), problem.status) == (
        "train.py failed with LookupError: no data, before its first step",
        1,
    )
    assert output(tmp_path).splitlines()[-1] == "LookupError: no data"


@pytest.mark.parametrize(
    ("error", "message", "said"),
    [
        (
            "ModuleNotFoundError",
            "No module named 'data'",
            "it ran in /a/python; --python chooses another interpreter",
        ),
        (
            "ImportError",
            "attempted relative import with no known parent package",
            "run a file of a package as a module: -m pkg.train",
        ),
        ("ImportError", "cannot import name 'x' from 'y'", ""),
    ],
)
def test_what_helps_is_said_of_failed_imports(tmp_path: Path, error: str, message: str, said: str) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/__init__.py").touch()
    asked = Request(target=str(tmp_path / "pkg/train.py"), python="/a/python")
    outcome = Outcome(ended=Ended(error=error, message=message))
    assert outcome.remedy(asked).removeprefix("; ") == said


def test_a_launcher_that_fails_is_named() -> None:
    asked = Request(target="/a/train.py", launcher=("torchrun", "--nproc-per-node"))
    assert Outcome().remedy(asked) == "; torchrun started it and may have printed the reason"
    assert Outcome(ended=Ended(error="ValueError")).remedy(asked) == ""


READS = START + f"print(input())\nfor at in range(3):\n    {STEP}"


def test_a_file_is_read_again_when_the_script_runs_a_second_time(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("left out\nsaid\n")
    with (tmp_path / "words").open("rb", buffering=0) as words, (tmp_path / "output").open("wb") as output:
        words.seek(len("left out\n"))
        asked = request(write(tmp_path, READS))
        launch.capture(asked, tmp_path / "run", stdin=words.fileno(), output=output.fileno())
    assert (tmp_path / "output").read_text() == "said\nsaid\n"


@pytest.mark.parametrize("kept", [True, False])
def test_a_pipe_is_read_again_from_what_is_kept_of_it(
    kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kept:
        monkeypatch.setattr(replayed, "MOST_BYTES", 3)
    end, start = os.pipe()
    os.write(start, b"said\n")
    os.close(start)
    asked = request(write(tmp_path, READS))
    with (tmp_path / "output").open("wb") as output:
        outcome = contextlib.nullcontext() if kept else pytest.raises(Problem)
        with outcome as caught:
            launch.capture(asked, tmp_path / "run", stdin=end, output=output.fileno())
    os.close(end)
    if caught is None:
        assert (tmp_path / "output").read_text() == "said\nsaid\n"
    else:
        said = "; it was run a second time, but the first run had already read its standard input"
        assert str(caught.value).endswith(said)


def test_it_dies_at_its_third_step(tmp_path: Path) -> None:
    text = START + f"for at in range(9):\n    if at == 2: sys.exit('planted')\n    {STEP}"
    problem = problem_of(request(write(tmp_path, text)), tmp_path)
    assert (str(problem), problem.status) == (
        "train.py exited with status 1 after 2 steps, before it was measured",
        1,
    )
    assert output(tmp_path) == "planted\n"


def test_it_is_killed(tmp_path: Path) -> None:
    text = "import os, signal, torch\nos.kill(os.getpid(), signal.SIGKILL)\n"
    problem = problem_of(request(write(tmp_path, text)), tmp_path)
    assert (str(problem), problem.status) == ("train.py was killed by SIGKILL before its first step", 1)


def test_it_dies_at_its_tenth_step(tmp_path: Path) -> None:
    """A report can be made of the steps before: when it is run again, with windows that end in time."""
    text = START + f"for at in range(20):\n    if at == 9: raise KeyError('planted')\n    {STEP}"
    captured = Captured(request(write(tmp_path, text), steps=2), tmp_path)
    assert len(captured.manifest.captured) == 2
    assert captured.manifest.notes[0] == (
        "the script failed with KeyError after 9 steps: it was run a second time, with shorter windows"
    )
    assert captured.output.count("KeyError: 'planted'") == 1, (
        "of the first run; the second was stopped before"
    )


@pytest.mark.parametrize(
    ("status", "note"),
    [
        (0, "the script makes only 8 steps: it was run a second time, with shorter windows"),
        (
            3,
            "the script exited with status 3 after 8 steps: it was run a second time, with shorter windows",
        ),
    ],
)
def test_it_leaves_by_os_exit_after_some_steps(tmp_path: Path, status: int, note: str) -> None:
    text = f"import os\n{START}for _ in range(8):\n    {STEP}os._exit({status})\n"
    captured = Captured(request(write(tmp_path, text), steps=2), tmp_path)
    assert len(captured.manifest.captured) == 2
    assert captured.manifest.notes[0] == note


def test_it_leaves_by_os_exit_before_a_step(tmp_path: Path) -> None:
    text = "import os, torch\nif os.fork() == 0: os._exit(4)\nos.wait()\nos._exit(5)\n"
    problem = problem_of(request(write(tmp_path, text)), tmp_path)
    assert (str(problem), problem.status) == ("train.py exited with status 5 before its first step", 1)


def test_it_makes_one_step_and_leaves_by_os_exit(tmp_path: Path) -> None:
    text = f"import os\n{START}if True:\n    {STEP}os._exit(0)\n"
    captured = Captured(request(write(tmp_path, text)), tmp_path, sampled=True)
    assert "measured as a whole" in captured.manifest.notes[0]
    assert captured.facts.samples.why == "too few steps", "py-spy is there"


def test_it_ends_abruptly_after_some_steps(tmp_path: Path) -> None:
    text = f"import ctypes\n{START}for _ in range(8):\n    {STEP}ctypes.CDLL(None)._exit(0)\n"
    problem = problem_of(request(write(tmp_path, text)), tmp_path)
    assert (str(problem), problem.status) == (
        "train.py ended abruptly with exit status 0 before it was measured",
        1,
    )


def test_it_closes_all_descriptors(tmp_path: Path) -> None:
    """As a daemon does. Its own files get our numbers, and nothing of ours is written into them."""
    taken = "own = [open(f'own{n}', 'w+') for n in range(30)]\n"
    text = f"import os\n{START}os.closerange(3, 1000)\n{taken}while True:\n    {STEP}"
    captured = Captured(request(write(tmp_path, text), steps=2), tmp_path)
    assert len(captured.manifest.captured) == 2
    assert [path.name for path in tmp_path.glob("own*") if path.stat().st_size] == []


def test_work_done_by_other_processes_is_said() -> None:
    ended = Ended(clean=True, torch=True, whole_ns=10_000_000_000)
    _, _, notes = again.second_try(Request(), Outcome(ended=replace(ended, children_s=12.0)))
    assert notes[1].startswith("processes that the script started used 12.0 s of CPU time")
    _, _, notes = again.second_try(Request(), Outcome(ended=replace(ended, children_s=0.4)))
    assert len(notes) == 1
    for own_s, said in ((2.0, True), (6.0, False)):  # a busy machine: they had a third of the time
        outcome = Outcome(ended=replace(ended, children_s=3.5, own_s=own_s))
        _, _, notes = again.second_try(Request(), outcome)
        assert len(notes) == 1 + said
        tries = Tries(Request(), "")
        tries.go_on(outcome)
        assert tries.purpose is (Purpose.WHOLE if said else Purpose.LOOPS), "its loops only wait for them"


def test_it_never_makes_a_step(tmp_path: Path) -> None:
    # It also has a child of its own, in a session of its own, which must go as well.
    text = START + (
        "import subprocess\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'], start_new_session=True)\n"
        "while True:\n    time.sleep(0.01)\n"
    )
    problem = problem_of(request(write(tmp_path, text), timeout_s=6.0), tmp_path)
    assert (str(problem), problem.status) == ("train.py made no step within 6 s (--timeout)", 1)


def test_it_does_not_use_torch(tmp_path: Path) -> None:
    problem = problem_of(request(write(tmp_path, "print('hello')\n")), tmp_path)
    assert (str(problem), problem.status) == (
        "train.py ended without importing torch: there is nothing to measure",
        1,
    )


def torch_folder(folder: Path, version: str | None) -> dict[str, str]:
    """An environment in which torch is this version, or not there. Nothing of it may be imported."""
    fake = folder / "packages"
    (fake / "torch").mkdir(parents=True)
    if version is None:
        (fake / "sitecustomize.py").write_text(
            "import sys\n"
            "class Hidden:\n"
            "    def find_spec(self, name, path=None, target=None):\n"
            "        if name == 'torch':\n            raise ModuleNotFoundError(name)\n"
            "sys.meta_path.insert(0, Hidden())\n"
        )
    else:
        (fake / "torch" / "__init__.py").write_text("raise RuntimeError('imported')\n")
        (fake / "torch" / "version.py").write_text(f"__version__ = '{version}'\n")
    return {"PYTHONPATH": str(fake)}


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (None, "has no torch: name the interpreter that has it with --python"),
        ("1.13.1+cu117", "has torch 1.13.1+cu117; Warpline needs 2.4 or newer"),
    ],
)
def test_torch_is_missing_or_too_old(tmp_path: Path, version: str | None, message: str) -> None:
    asked = request(write(tmp_path, START), environment=torch_folder(tmp_path, version))
    problem = problem_of(asked, tmp_path)
    assert problem.status == 2
    assert str(problem).endswith(message)
    assert output(tmp_path) == ""


def test_runs_cannot_be_written(tmp_path: Path) -> None:
    # A file stands where the folder should be: this fails for root as well.
    (tmp_path / "runs").write_text("")
    problem = problem_of(request(write(tmp_path, START)), tmp_path)
    assert (str(problem), problem.status) == (f"cannot write to {tmp_path}/runs: not a directory", 2)
    (tmp_path / ".warpline").write_text("")
    with pytest.raises(Problem, match=r"cannot write to .*\.warpline/runs: .*--run-dir") as caught:
        runs.runs_folder(tmp_path)
    assert caught.value.status == 2


def test_the_disk_is_full(tmp_path: Path) -> None:
    # A limit on the size of files fails a write as a full disk does.
    text = START + (
        "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        f"for at in range(100000):\n    {STEP}"
    )
    problem = problem_of(request(write(tmp_path, text), warmup=1), tmp_path)
    assert problem.status == 2
    assert str(problem).startswith("cannot write the run: ")


def test_cancel_ends_the_whole_tree(tmp_path: Path) -> None:
    text = START + (
        "data = torch.utils.data.DataLoader(range(10**9), batch_size=4, num_workers=2)\n"
        f"for x in data:\n    open('stepped', 'w').close()\n    {STEP}    time.sleep(0.05)\n"
    )
    cancelled = threading.Event()

    def cancel_at_a_step() -> None:
        while not (tmp_path / "stepped").exists():
            if cancelled.wait(0.05):
                return
        cancelled.set()

    waiter = threading.Thread(target=cancel_at_a_step)
    waiter.start()
    problem = problem_of(request(write(tmp_path, text), warmup=10**6), tmp_path, cancelled)
    cancelled.set()
    waiter.join()
    assert (str(problem), problem.status) == ("cancelled", 130)
