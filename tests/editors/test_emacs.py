"""A session in Emacs with its own client (eglot) and nothing but the snippet of docs/editors/emacs.md."""

from __future__ import annotations

import json
from pathlib import Path

from tests.editors.desk import CALLS_LIBRARY, Desk, until
from tests.editors.emacs.session import Emacs


def test_a_session(editors: Path, desk: Desk) -> None:
    with Emacs(desk, editors / "emacs", desk.script) as emacs:
        # Cancelled once: the script waits for its data, so it is surely still running.
        desk.hold.touch()
        emacs.ask("(warpline-profile)")
        until("the script runs", desk.targets)
        until("progress has begun", lambda: "begin" in emacs.ask("(t-progress)"))
        emacs.ask("(warpline-cancel)")
        until("the script is ended", lambda: not desk.targets())
        until("progress has ended", lambda: "end" in emacs.ask("(t-progress)"))
        assert desk.runs() == []

        # And finished.
        desk.hold.unlink()
        emacs.ask(r'(warpline-profile "--name \"the first\"")')
        until("the run is complete", desk.runs)
        assert desk.arguments() == ["--name", "the first"]
        costly = desk.costly()
        hottest, code = next(iter(costly.items()))

        def hinted() -> dict[int, str] | None:
            found = emacs.hints()
            return found if hottest in found else None

        hints = until("a hint on the costliest line", hinted)
        assert set(costly) <= set(hints), hints
        until("the hint is on the screen", lambda: hints[hottest] in emacs.screen())
        ms, percent = hints[hottest].split(" · ")
        spoken = f"{percent} of the step · {ms}"
        until("the hover speaks of the line", lambda: spoken in emacs.ask(f"(t-hover {hottest} 8)"))

        # The quick fix, through the client's own menu.
        site = desk.line("DataLoader(Numbers()")
        until("the finding is there", lambda: any(line == site for line, _ in emacs.ask("(t-diagnostics)")))
        emacs.ask(f'(t-actions {site} "worker process")')
        until("the fix is in the buffer", lambda: "num_workers" in emacs.ask("(t-text)"))
        emacs.ask("(save-buffer)")
        assert "num_workers" in desk.script.read_text()

        # Lines inserted above: the hint goes down with its line.
        above = "# Trains a small net\n# on rows of numbers.\n"
        emacs.ask(f"(t-insert {json.dumps(above)})")
        label, moved = hints[hottest], desk.line(code.strip())
        until("the hint moved with its line", lambda: emacs.hints().get(moved) == label)

    with Emacs(desk, editors / "emacs", desk.script) as again:
        until("in a new session the hints are back", lambda: again.hints().get(moved) == label)


def test_a_library_s_file(editors: Path, desk: Desk) -> None:
    desk.script.write_text(CALLS_LIBRARY)
    desk.profile(desk.script.name)
    library, line = desk.in_library()
    with Emacs(desk, editors / "emacs", desk.script) as emacs:
        until("the script has hints", emacs.hints)
        # It asks for hints of what is on screen.
        emacs.ask(f'(progn (find-file "{library}") (t-goto {line} 0))')
        until("the library's line has its hint", lambda: line in emacs.hints())
        until("the hover names the script's line", lambda: "train.py:8" in emacs.ask(f"(t-hover {line} 8)"))
        assert emacs.ask("(t-diagnostics)") == []
