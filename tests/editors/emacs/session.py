"""Real Emacs with the page's snippet as its init file, asked through emacsclient."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.editors.desk import HERE, Desk, snippet, until
from tests.editors.terminal import Terminal


class Emacs(Terminal):
    leave = ("C-x", "C-c")

    def __init__(self, desk: Desk, folder: Path, file: Path) -> None:
        self.client = folder / "emacsclient"
        self.server = desk.out / "emacs.socket"
        self.server.unlink(missing_ok=True)
        init = desk.out / "init.el"
        init.write_text(
            f'(setq server-socket-dir "{desk.out}" server-name "emacs.socket")\n'
            f"{snippet('emacs.md', 'elisp')}\n"
            f'(load "{HERE}/emacs/harness.el" nil t)\n(server-start)\n'
        )
        super().__init__(desk, [str(folder / "emacs"), "-nw", "-Q", "-l", str(init), str(file)])

    def ready(self) -> None:
        until("Emacs listens", self.server.exists)
        until("the server is attached", lambda: self.ask("(t-managed)"))

    def ask(self, form: str) -> Any:
        """The value of a Lisp form in the file's buffer."""
        done = subprocess.run(
            [self.client, "-s", self.server, "--eval", f"(t-ask '{form})"],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, f"{form}: {done.stderr or done.stdout}\n{self.screen()}"
        # Emacs prints the JSON as a Lisp string; its escapes are JSON's for all that is in it here.
        return json.loads(json.loads(done.stdout))

    def hints(self) -> dict[int, str]:
        return {line: label.strip() for line, label in self.ask("(t-hints)")}
