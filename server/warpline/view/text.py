"""Text from outside (sources, paths, kernel names) made fit for a screen."""

from __future__ import annotations

from pathlib import Path


def printable(text: str) -> str:
    """``text`` in one line, with tabs expanded and control and direction characters replaced.

    A run may come from a stranger: no escape sequence of theirs reaches the terminal, and nothing
    turns the direction of what follows.
    """
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text.expandtabs(4))


def short_path(path: str, cwd: str) -> str:
    """``path`` as seen from ``cwd`` when it lies there, with ``~`` for the home folder else."""
    for folder, sign in ((cwd, ""), (str(Path.home()), "~/")):
        inside = folder.rstrip("/") + "/"
        if len(inside) > 1 and path.startswith(inside):
            return printable(sign + path[len(inside) :])
    return printable(path)


def names(paths: set[str], cwd: str) -> dict[str, str]:
    """A name for each path: the shortest tail that no other path shares, the whole path at worst."""
    found: dict[str, str] = {}
    for path in paths:
        parts = path.replace("\\", "/").split("/")
        for length in range(1, len(parts)):
            tail = "/".join(parts[-length:])
            if not any(other != path and _ends(other, tail) for other in paths):
                break
        else:
            tail = short_path(path, cwd)
        found[path] = printable(tail)
    return found


def _ends(path: str, tail: str) -> bool:
    path = path.replace("\\", "/")
    return path == tail or path.endswith("/" + tail)
