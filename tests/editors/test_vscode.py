"""A session in both VS Codes, with the ``.vsix`` as it is shipped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.editors.desk import HERE, ROOT, Desk


@pytest.mark.parametrize("version", ["vscode-new", "vscode-old"])
def test_a_session(version: str, editors: Path, vsix: Path, desk: Desk) -> None:
    (desk.workspace / ".warpline").mkdir()
    (desk.workspace / ".warpline" / ".gitignore").write_text("*\n")
    options: dict[str, Any] = {
        "codeServer": str(editors / version / "code-server"),
        "vsix": str(vsix),
        "out": str(desk.out),
        "workspace": str(desk.workspace),
        "env": {**desk.environment, "PIP_CACHE_DIR": str(editors / "pip")},
        "settings": {"warpline.python": sys.executable},
    }
    # The old one makes the server's environment on first start, the new one is told of one.
    if version == "vscode-new":
        options["env"]["PYTHONPATH"] = str(ROOT / "server")
        options["settings"]["warpline.server.python"] = sys.executable
    if os.environ.get("WARPLINE_PICTURES") and version == "vscode-new":
        options["pictures"] = str(ROOT / "docs" / "images")
    session = subprocess.run(
        ["node", str(HERE / "vscode" / "scenario.mjs"), json.dumps(options)], capture_output=True, text=True
    )
    (desk.out / "session.log").write_text(session.stdout + session.stderr)
    assert session.returncode == 0, session.stdout + session.stderr
