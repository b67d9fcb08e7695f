"""``package.json`` says what the code and the server do. Needs no editor."""

from __future__ import annotations

import json
import re
from pathlib import Path

import warpline
from tests.editors.desk import ROOT
from warpline.lsp.settings import Settings, merged

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
