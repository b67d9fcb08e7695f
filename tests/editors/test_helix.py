"""Hints, hover and actions in Helix with nothing but the snippets of docs/editors/helix.md."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.editors.desk import Desk, snippet, until
from tests.editors.terminal import Terminal


def test_hints_hover_and_actions(editors: Path, desk: Desk) -> None:
    languages, config = snippet("helix.md", "toml").split("[editor.lsp]", 1)
    settings = desk.out / "home" / "config" / "helix"
    settings.mkdir(parents=True)
    (settings / "languages.toml").write_text(languages)
    (settings / "config.toml").write_text("[editor.lsp]" + config)
    # What the page's key runs, before Helix asks for hints the first time.
    made = subprocess.run(
        ["warpline", "profile", desk.script.name],
        cwd=desk.workspace,
        env=desk.environment,
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    hottest, code = next(iter(desk.costly().items()))
    site = desk.line("DataLoader(Numbers()")

    with Terminal(desk, [str(editors / "helix" / "hx"), desk.script.name]) as helix:
        until("the file is open", lambda: "class Block" in helix.screen())

        def hinted() -> bool:
            helix.keys("j", "k")  # it asks for hints when the cursor has moved
            return any(code in row and " ms" in row for row in helix.screen().splitlines())

        until("a hint stands behind the costliest line", hinted)

        def on(line: int) -> None:
            helix.keys("Escape")
            helix.type(f":{line}")
            helix.keys("Enter")

        on(hottest)
        helix.keys("Space", "k")
        until("the hover has the line's parts", lambda: "forward" in helix.screen().lower())
        helix.keys("Escape")

        on(site)
        helix.keys("Space", "a")
        until("the menu offers workers", lambda: "worker process" in helix.screen())
        helix.keys("Enter")
        until("the fix is in the buffer", lambda: "num_workers=" in helix.screen())
        helix.type(":write")
        helix.keys("Enter")
        until("the fix is in the file", lambda: "num_workers=" in desk.script.read_text())
