"""Run folders and settings: what is read is checked, whoever it comes from."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from warpline import project, runs
from warpline.model.problem import Problem
from warpline.wire.run import RUN_FORMAT, DeviceFacts, Facts, Manifest, Request


def make(folder: Path, script: str = "/train.py", format: int = RUN_FORMAT) -> Path:
    run = runs.new_run(folder)
    run.mkdir(parents=True)
    manifest = Manifest(
        format, 1, script, (), "3.12.1", "2.13.0", DeviceFacts(), Request(), "optimizer", (), (), "none", ()
    )
    runs.write_json(run, runs.MANIFEST, manifest)
    return run


def test_runs_are_hidden_from_git_and_sort_by_time(tmp_path: Path) -> None:
    folder = runs.runs_folder(tmp_path)
    assert (tmp_path / ".warpline/.gitignore").read_text() == "*\n"
    made = [make(folder) for _ in range(5)]
    assert made == sorted(made)
    assert len(set(made)) == 5
    assert runs.newest(folder) == made[-1]


def test_the_newest_of_a_script(tmp_path: Path) -> None:
    first, _ = make(tmp_path, str(tmp_path / "a.py")), make(tmp_path, str(tmp_path / "b.py"))
    assert runs.newest(tmp_path, tmp_path / "a.py") == first
    with pytest.raises(Problem, match=r"no run of .*c\.py"):
        runs.newest(tmp_path, tmp_path / "c.py")


def test_a_folder_without_manifest_is_no_run(tmp_path: Path) -> None:
    run = make(tmp_path)
    (tmp_path / "9999").mkdir()
    assert runs.newest(tmp_path) == run
    with pytest.raises(Problem, match="is not a run folder"):
        runs.manifest(tmp_path / "9999")


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"\xff\xfe", b'{"format": "1", "losses": 1}', b"[" * 100_000]
)
def test_malformed_parts_are_a_problem(tmp_path: Path, text: bytes) -> None:
    run = make(tmp_path)
    (run / runs.MANIFEST).write_bytes(text)
    with pytest.raises(Problem, match="malformed"):
        runs.manifest(run)
    (run / runs.FACTS).write_bytes(text)
    with pytest.raises(Problem, match="malformed"):
        runs.facts(run)


def test_a_newer_format_is_not_guessed_at(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="update it"):
        runs.manifest(make(tmp_path, format=RUN_FORMAT + 1))


def test_writing_replaces_as_a_whole(tmp_path: Path) -> None:
    runs.write_json(tmp_path, runs.FACTS, Facts(losses=(1.0,)))
    runs.write_json(tmp_path, runs.FACTS, Facts(losses=(2.0,)))
    assert runs.facts(tmp_path).losses == (2.0,)
    assert [entry.name for entry in tmp_path.iterdir()] == [runs.FACTS]
    assert msgspec.json.decode((tmp_path / runs.FACTS).read_bytes())["losses"] == [2.0]


def test_settings_come_from_the_nearest_pyproject(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.warpline]\ninclude = ["lib"]\nignore = ["fp32-matmul"]\n'
        'steps = 7\nhints = 2\npython = "py/bin"\n'
    )
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    found = project.settings(inner)
    assert found.folder == str(tmp_path)
    assert found.include == (str(tmp_path / "lib"),)
    assert found.ignore == ("fp32-matmul",)
    assert (found.steps, found.hints, found.python) == (7, 2.0, str(tmp_path / "py/bin"))


def test_an_interpreter_may_be_a_name_on_the_path(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.warpline]\npython = "python3.12"\n')
    assert project.settings(tmp_path).python == "python3.12"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.warpline]\nstep = 7", "unknown setting tool.warpline.step "),
        ("[tool.warpline]\nsteps = 'x'", "tool.warpline.steps must be a whole number"),
        ("[tool.warpline]\nsteps = 0", "tool.warpline.steps must be a whole number of at least 1"),
        ("[tool.warpline]\ntimeout = 0", "tool.warpline.timeout must be a number above 0"),
        ("[tool.warpline]\nkeep-days = 'x'", "tool.warpline.keep-days must be a number"),
        ("[tool.warpline]\nwarmup = 2.5", "tool.warpline.warmup must be a whole number"),
        ("[tool.warpline]\nignore = 'x'", "tool.warpline.ignore must be a list in brackets"),
        ("[tool.warpline]\nignore = [3]", "tool.warpline.ignore[0] must be text in quotes"),
        ("[tool]\nwarpline = 1", "must be a table"),
        ("[tool", "is not valid TOML"),
    ],
)
def test_settings_that_cannot_be_understood(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(Problem, match=r"pyproject\.toml") as caught:
        project.settings(tmp_path)
    assert message in str(caught.value)


@pytest.mark.parametrize("linked", [".warpline", ".warpline/runs"])
def test_a_link_out_of_the_project_is_not_written_through(tmp_path: Path, linked: str) -> None:
    outside, project = tmp_path / "outside", tmp_path / "project"
    outside.mkdir()
    (project / linked).parent.mkdir(parents=True)
    (project / linked).symlink_to(outside, target_is_directory=True)
    with pytest.raises(Problem, match=r"leads out of .*--run-dir"):
        runs.runs_folder(project)
    assert not list(outside.iterdir())


def test_a_link_inside_the_project_is_followed(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "kept").mkdir()
    (tmp_path / "part").mkdir()
    (tmp_path / "part/.warpline").symlink_to(tmp_path / "kept", target_is_directory=True)
    assert runs.runs_folder(tmp_path / "part").is_dir()
    assert (tmp_path / "kept/.gitignore").read_text(encoding="utf-8") == "*\n"


def test_a_file_that_is_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "outside.txt"
    (tmp_path / ".warpline").mkdir()
    (tmp_path / ".warpline/.gitignore").symlink_to(target)
    runs.runs_folder(tmp_path)
    assert not target.exists()
    target.write_text("mine", encoding="utf-8")
    runs.write(tmp_path / ".warpline/.gitignore", b"*\n")
    assert target.read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / ".warpline/.gitignore").is_symlink()
