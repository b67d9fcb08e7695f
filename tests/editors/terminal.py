"""A program with a screen of its own, in tmux: keys go in, the screen's text comes out."""

from __future__ import annotations

import shlex
import subprocess
from typing import TypeVar

from tests.editors.desk import Desk, until

Self = TypeVar("Self", bound="Terminal")


class Terminal:
    """Use it in a ``with``: it ends what it started, whatever happens."""

    #: The keys that end the program.
    leave: tuple[str, ...] = ()

    def __init__(self, desk: Desk, command: list[str]) -> None:
        self.desk = desk
        self.home = desk.out / "home"
        self.home.mkdir(exist_ok=True)
        self.socket = str(desk.out / "tmux")
        xdg = {
            f"XDG_{name}_HOME": str(self.home / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")
        }
        self.environment = {
            **desk.environment,
            **xdg,
            "HOME": str(self.home),
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
        }
        line = f"cd {shlex.quote(str(desk.workspace))} && exec {shlex.join(command)} 2>>{desk.out}/stderr"
        size = ("-x", "140", "-y", "50")
        self._tmux("-f", "/dev/null", "new-session", "-d", *size, line)

    def ready(self) -> None:
        """Wait until it can be used."""

    def quit(self) -> None:
        """End it as a user would."""
        self.keys(*self.leave)
        until("it has ended", lambda: not self.running())

    def running(self) -> bool:
        listed = subprocess.run(
            ["tmux", "-S", self.socket, "has-session"], env=self.environment, capture_output=True
        )
        return listed.returncode == 0

    def __enter__(self: Self) -> Self:
        try:
            self.ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.quit()
        finally:
            self.close()

    def keys(self, *keys: str) -> None:
        """Press keys by tmux's names: "j", "Escape", "Enter"."""
        self._tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p")

    def close(self) -> None:
        (self.desk.out / "screen").write_text(self.screen())
        self._tmux("kill-server")

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", self.socket, *words],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.stdout
