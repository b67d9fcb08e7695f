"""Real Neovim with the page's snippet as its ``init.lua``, asked through ``--remote-expr``."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.editors.desk import HERE, Desk, snippet, until
from tests.editors.terminal import Terminal


class Neovim(Terminal):
    leave = ("Escape", ":qall!", "Enter")

    def __init__(self, desk: Desk, program: Path, file: Path) -> None:
        self.program = program
        init = desk.out / "home" / "config" / "nvim" / "init.lua"
        init.parent.mkdir(parents=True, exist_ok=True)
        init.write_text(snippet("neovim.md", "lua"))
        self.socket_file = desk.out / "nvim.socket"
        self.socket_file.unlink(missing_ok=True)
        harness = HERE / "nvim" / "harness.lua"
        listen = ["--listen", str(self.socket_file), "-c", f"luafile {harness}"]
        super().__init__(desk, [str(program), "-n", *listen, str(file)])

    def ready(self) -> None:
        until("Neovim listens", self.socket_file.exists)
        until("the server is attached", lambda: self.ask("attached"))

    def ask(self, function: str, *arguments: object) -> Any:
        """Call a function of ``harness.lua``."""
        asked = json.dumps([function, *arguments]).replace("'", "''")
        done = subprocess.run(
            [
                self.program,
                "--server",
                self.socket_file,
                "--remote-expr",
                f"luaeval('T.call(_A)', '{asked}')",
            ],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, f"{function}: {done.stderr or done.stdout}\n{self.screen()}"
        # Which of the two streams it is written to differs between versions.
        return json.loads(done.stdout or done.stderr)

    def hints(self) -> dict[int, str]:
        return dict(self.ask("hints"))
