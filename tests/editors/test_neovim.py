"""A session in Neovim with its own client and nothing but the snippet of docs/editors/neovim.md."""

from __future__ import annotations

import re
from pathlib import Path

from tests.editors.desk import CALLS_LIBRARY, Desk, until
from tests.editors.nvim.neovim import Neovim


def test_a_session(editors: Path, desk: Desk) -> None:
    program = editors / "nvim" / "nvim"
    with Neovim(desk, program, desk.script) as nvim:
        # Cancelled once: the script waits for its data, so it is surely still running.
        desk.hold.touch()
        nvim.ask("command", "WarplineProfile")
        until("the script runs", desk.targets)
        until(
            "progress has begun",
            lambda: any(entry["kind"] == "begin" for entry in nvim.ask("get", "progress")),
        )
        until("progress is on the screen", lambda: re.search(r"Warpline \d+ % \w", nvim.screen()))
        nvim.ask("command", "WarplineCancel")
        until("the script is ended", lambda: not desk.targets())
        until(
            "progress has ended", lambda: any(entry["kind"] == "end" for entry in nvim.ask("get", "progress"))
        )
        assert desk.runs() == []

        # And finished.
        desk.hold.unlink()
        nvim.ask("command", "WarplineProfile --name first")
        until("the run is complete", desk.runs)
        assert desk.arguments() == ["--name", "first"]
        costly = desk.costly()
        hottest, code = next(iter(costly.items()))

        def hinted() -> dict[int, str] | None:
            found = nvim.hints()
            return found if hottest in found else None

        hints = until("a hint on the costliest line", hinted)
        assert set(costly) <= set(hints), hints
        until("the hint is on the screen", lambda: f"{code} {hints[hottest].strip()}" in nvim.screen())
        until("a lens has a total", lambda: any(" ms" in title for _, title in nvim.ask("lenses")))

        nvim.ask("hover", hottest, 8)
        ms, percent = hints[hottest].strip().split(" · ")
        assert f"{percent} of the step · {ms}" in until("the hover opens", lambda: nvim.ask("float"))

        # The quick fix, through the client's own menu.
        site = desk.line("DataLoader(Numbers()")
        until(
            "the finding is there once",
            lambda: nvim.ask("diagnostics").count([site, "loader-without-workers"]) == 1,
        )
        nvim.ask("actions", site, "worker process")
        until("the menu was offered", lambda: nvim.ask("get", "offered"))
        nvim_saved = lambda: nvim.ask("command", "silent write") or "num_workers" in desk.script.read_text()  # noqa: E731
        until("the fix is in the file", nvim_saved)

        # Lines inserted above: the hint goes down with its line.
        nvim.ask("insert", ["# Trains a small net", "# on rows of numbers."])
        nvim.ask("command", "silent write")
        label, moved = hints[hottest], desk.line(code.strip())
        until("the hint moved with its line", lambda: nvim.hints().get(moved) == label)

    with Neovim(desk, program, desk.script) as again:
        until("in a new session the hints are back", lambda: again.hints().get(moved) == label)


def test_a_library_s_file(editors: Path, desk: Desk) -> None:
    desk.script.write_text(CALLS_LIBRARY)
    desk.profile(desk.script.name)
    library, line = desk.in_library()
    with Neovim(desk, editors / "nvim" / "nvim", desk.script) as nvim:
        until("the script has hints", nvim.hints)
        nvim.ask("command", f"edit {library}")
        until("the library's line has its hint", lambda: line in nvim.hints())
        nvim.ask("hover", line, 8)
        until("the hover names the script's line", lambda: "train.py:8" in nvim.ask("float"))
        assert nvim.ask("diagnostics") == []
