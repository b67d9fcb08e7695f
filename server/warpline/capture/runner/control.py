"""What the server asked for, read from the control file."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import Any

from ...wire import control as wire
from ...wire.control import Purpose, Windows
from ...wire.loops import Loop
from ...wire.run import Request
from .launched import of_launcher


class Control:
    """The fields of ``wire.control.Control``, and what the launcher's environment says.

    ``local_rank`` and ``local_world`` count the ranks on this machine. ``folder`` is this rank's own,
    ``root`` that of rank 0.
    """

    def __init__(self, control: wire.Control, injected: list[str]) -> None:
        """``injected``: arguments that a launcher has put before the script's own."""
        self.request = control.request
        self.argv = [*injected, *control.request.argv]
        self.purpose = control.purpose
        self.pipe = control.pipe
        self.notes = control.notes
        self.seed = control.seed
        self.overlay = dict(control.overlay)
        self.turn = control.turn
        self.turn_s = control.turn_s
        ranks = of_launcher(control.request.launcher)
        self.rank, self.world, self.local_rank, self.local_world = ranks
        self.windows = control.windows if self.world == 1 else same_for_all_ranks(control.windows)
        self.root = control.folder
        self.folder = self.folder_of(self.local_rank)

    def folder_of(self, local_rank: int) -> str:
        """The run folder of a rank on this machine; rank 0 has the run's own."""
        return self.root if local_rank == 0 else os.path.join(self.root, "ranks", str(local_rank))


def read(path: str) -> wire.Control:
    """The control file. Raises OSError or ValueError where it cannot be read."""
    with open(path, encoding="utf-8") as file:
        fields = json.load(file)
    request, windows = _tuples(fields["request"]), _tuples(fields["windows"])
    if request.get("loop") is not None:
        request["loop"] = Loop(**request["loop"])
    windows["loops"] = tuple(Loop(**loop) for loop in windows.get("loops", ()))
    return wire.Control(
        **{
            **_tuples(fields),
            "request": Request(**request),
            "purpose": Purpose(fields["purpose"]),
            "windows": Windows(**windows),
        }
    )


def same_for_all_ranks(windows: Windows) -> Windows:
    """Ranks wait for each other: their windows must begin and end at the same steps."""
    return replace(
        windows,
        warmup=10 if windows.warmup is None else windows.warmup,
        timed=20 if windows.timed is None else windows.timed,
        sampled=20 if windows.sampled is None else windows.sampled,
    )


def _tuples(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields as dataclasses have them: JSON has lists for tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
