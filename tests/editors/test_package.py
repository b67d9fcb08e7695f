"""``package.json`` says what the code and the server do. Needs no editor."""

from __future__ import annotations

import fnmatch
import json
import re
import subprocess
from pathlib import Path

import pytest

import warpline
from tests.editors.desk import ROOT
from warpline.lsp.state import torch_use
from warpline.lsp.state.settings import Settings, merged
from warpline.toml import tomllib

PACKAGE = json.loads((ROOT / "package.json").read_text())
SETTINGS = PACKAGE["contributes"]["configuration"]["properties"]
SOURCES = "\n".join(path.read_text() for path in (ROOT / "extension" / "src").glob("*.ts"))
PROTOCOL = (ROOT / "server" / "warpline" / "lsp" / "PROTOCOL.md").read_text()


def test_the_version_is_the_server_s() -> None:
    assert PACKAGE["version"] == warpline.__version__


def test_every_command_is_registered_and_the_other_way_round() -> None:
    contributed = {command["command"] for command in PACKAGE["contributes"]["commands"]}
    registered = set(re.findall(r'^    "(warpline\.\w+)": ', SOURCES, re.MULTILINE))
    assert registered - contributed == {"warpline.goTo", "warpline.typeInTerminal"}  # of items and buttons
    assert contributed <= registered
    assert not contributed & set(re.findall(r"^\| `(warpline\.\w+)` \|", PROTOCOL, re.MULTILINE))


def test_every_setting_of_the_server_can_be_set() -> None:
    rows = re.findall(r"^\| (`warpline\.[\w.]+`(?:, `warpline\.[\w.]+`)*) \|", PROTOCOL, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(warpline\.[\w.]+)`", row)}
    commands = {
        f"warpline.{name}"
        for name in ("profile", "cancel", "explain", "overview", "measure", "kernel", "tune")
    }
    client = {"warpline.server.python", "warpline.heat.enabled", "warpline.trace.server"}
    assert named - commands == set(SETTINGS) - client


def test_untouched_settings_change_nothing(tmp_path: Path) -> None:
    section: dict[str, object] = {}
    for name, setting in SETTINGS.items():
        section[name.removeprefix("warpline.")] = setting["default"]
    assert merged(tmp_path, section) == merged(tmp_path, {}) == Settings()
    (tmp_path / "pyproject.toml").write_text("[tool.warpline]\nhints = 7.0\nsteps = 3\n")
    assert merged(tmp_path, section) == merged(tmp_path, {})


def test_what_may_name_a_program_waits_for_trust() -> None:
    restricted = set(PACKAGE["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"])
    assert {"warpline.python", "warpline.server.python", "warpline.launcher", "warpline.env"} <= restricted
    assert all(name in SETTINGS for name in restricted)


@pytest.mark.parametrize(
    "text",
    [
        SETTINGS["warpline.python"]["markdownDescription"],
        (ROOT / "README.md").read_text(),
        (ROOT / "docs" / "editors" / "vscode.md").read_text(),
        PROTOCOL,
    ],
    ids=["setting", "README", "docs/editors/vscode.md", "PROTOCOL"],
)
def test_all_say_in_which_order_an_interpreter_is_looked_for(text: str) -> None:
    """As ``capture/interpreter.py`` does; ``tests/capture/test_interpreter.py`` has that."""
    words = re.sub(r"[`\s]+", " ", text)
    active = r"(?:VIRTUAL_ENV ?|active virtual environment)"
    assert re.search(active + r", .{0,10}\.venv or venv .{0,80}own .{0,20}torch, .{0,12}python3", words)


def test_the_extension_and_the_server_offer_the_same_files() -> None:
    packages = re.search(r"\(\?:import\|from\)\\s\+\(\?:(.*?)\)\\b/m", SOURCES)
    assert packages is not None
    mine = set(packages[1].replace("torch\\w*", "torch|torchvision|torchaudio").split("|"))
    assert mine == set(torch_use._PACKAGES.split("|"))


@pytest.mark.process
def test_the_server_s_environment_gets_what_pyproject_names() -> None:
    """Comments between the dependencies, and behind them, once broke the build."""
    built = subprocess.run(["node", "extension/build.mjs"], cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    wanted = [requirement for requirement in named if not requirement.startswith("pandas")]
    assert (ROOT / "dist" / "requirements.txt").read_text().splitlines() == wanted


def test_pictures_are_there() -> None:
    """Those of the walkthrough lie in the package; those of its page are loaded from the repository."""
    packed = [line[1:] for line in (ROOT / ".vscodeignore").read_text().splitlines() if line[:1] == "!"]
    steps = [step for tour in PACKAGE["contributes"]["walkthroughs"] for step in tour["steps"]]
    for name in {name for step in steps for name in step["media"]["image"].values()}:
        assert (ROOT / name).is_file() and any(fnmatch.fnmatch(name, pattern) for pattern in packed), name
    page = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", (ROOT / "extension" / "README.md").read_text())
    assert page and all((ROOT / name).is_file() for name in page)
