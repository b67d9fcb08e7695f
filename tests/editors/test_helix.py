"""Hints, hover and actions in Helix with nothing but the snippets of docs/editors/helix.md."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from tests.editors.desk import CALLS_LIBRARY, Desk, snippet, until
from tests.editors.terminal import Terminal


class Helix(Terminal):
    leave = (":quit-all!", "Enter")

    def press(self, key: str, mode: str) -> None:
        """A key that changes the mode. The status line shows it; keys after an Escape must wait for that."""
        self.keys(key)
        until(f"mode {mode}", lambda: f" {mode} " in self.screen())

    def goto(self, line: int) -> None:
        self.press("Escape", "NOR")
        self.type(f":{line}")
        self.keys("Enter")

    def hint(self, code: str) -> str | None:
        """The hint behind a line with this text. Helix asks for hints when the text has changed, and takes no
        refresh: an edit and its undo."""
        self.press("i", "INS")
        self.type(" ")
        self.press("Escape", "NOR")
        self.keys("u")
        end = time.monotonic() + 5
        while time.monotonic() < end:
            behind = [row.partition(code)[2].strip() for row in self.screen().splitlines() if code in row]
            if behind and "ms" in behind[0]:
                return behind[0]
            time.sleep(0.1)
        return None


def configure(desk: Desk) -> None:
    languages, config = snippet("helix.md", "toml").split("[editor.lsp]", 1)
    settings = desk.out / "home" / "config" / "helix"
    settings.mkdir(parents=True)
    (settings / "languages.toml").write_text(languages)
    (settings / "config.toml").write_text("[editor.lsp]" + config)


def test_hints_hover_and_actions(editors: Path, desk: Desk) -> None:
    configure(desk)
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

    with Helix(desk, [str(editors / "helix" / "hx"), desk.script.name]) as helix:
        until("the file is open", lambda: "class Block" in helix.screen())

        hint = until("a hint stands behind the costliest line", lambda: helix.hint(code))

        helix.goto(hottest)
        helix.keys("Space", "k")
        ms, percent = hint.split(" · ")
        until("the hover speaks of the line", lambda: f"{percent} of the step · {ms}" in helix.screen())

        helix.goto(site)
        helix.keys("Space", "a")
        until("the menu offers workers", lambda: "worker process" in helix.screen())
        helix.keys("Enter")
        until("the fix is in the buffer", lambda: "num_workers=" in helix.screen())
        helix.type(":write")
        helix.keys("Enter")
        until("the fix is in the file", lambda: desk.written("num_workers="))

        # The report beside the file. A key right after an Escape would be read as Alt and that key.
        helix.press("Escape", "NOR")
        helix.keys("Space")
        until("the menu of Space is open", lambda: "Open file picker" in helix.screen())
        helix.keys("w")
        until(
            "the report is open beside the file",
            lambda: "measured without the profiler" in helix.screen() and "class Block" in helix.screen(),
        )


def test_a_library_s_file(editors: Path, desk: Desk) -> None:
    configure(desk)
    desk.script.write_text(CALLS_LIBRARY)
    desk.profile(desk.script.name)
    library, line = desk.in_library()
    code = library.read_text().splitlines()[line - 1].strip()
    with Helix(desk, [str(editors / "helix" / "hx"), desk.script.name]) as helix:
        until("the file is open", lambda: "import yaml" in helix.screen())
        until("the script has hints", lambda: helix.hint("# here"))
        helix.type(f":open {library}:{line}")
        helix.keys("Enter")
        hint = until("the library's line has its hint", lambda: helix.hint(code))
        helix.goto(line)
        helix.keys("Space", "k")
        ms, percent = hint.split(" · ")
        until("the hover speaks of the line", lambda: f"{percent} of the step · {ms}" in helix.screen())
