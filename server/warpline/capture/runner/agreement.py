"""Joint decisions of the ranks of one machine, where each has recorded something else.

One that begins its capture again, or captures fewer steps, while the others go on leaves them waiting inside
their captured steps, and its table cannot be compared with theirs. They are at the same step boundary when
they ask, since each step has exchanges that all take part in: so none waits for one that waits for it.
Ranks of other machines are not asked; a folder that all can write to may not exist.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .control import Control

FOLDER = ".agreed"
#: How long another rank is waited for. One that does not answer is not asked again.
PATIENCE_S = 20.0
POLL_S = 0.005


class Agreement:
    def __init__(self, control: Control) -> None:
        # The pipe's folder has a name of its own for each run of the script: a second try reads no answer
        # of the first.
        self.all_runs = os.path.join(control.root, FOLDER)
        self.root = os.path.join(self.all_runs, os.path.basename(os.path.dirname(control.pipe)))
        self.me = control.local_rank
        self.others = set(range(control.local_world)) - {self.me}
        self.asked: Counter[str] = Counter()

    def of(self, about: str, mine: int, patience_s: float = PATIENCE_S) -> list[int]:
        """What each rank that answers says ``about`` something, this one among them. It may be asked several
        times: the first answer of each is for the first time."""
        said = {self.me: mine}
        if not self.others:
            return [mine]
        self.asked[about] += 1
        question = "%s%d" % (about, self.asked[about])
        try:
            os.makedirs(self.root, exist_ok=True)
            path = self._path(question, self.me)
            with open(path + ".new", "w", encoding="utf-8") as file:
                file.write(str(int(mine)))
            os.replace(path + ".new", path)
        except OSError:
            return [mine]  # the others wait for a while, and go on without it
        until = time.monotonic() + patience_s
        while self.others - set(said) and time.monotonic() < until:
            for rank in self.others - set(said):
                answer = self._answer(question, rank)
                if answer is not None:
                    said[rank] = answer
            time.sleep(POLL_S)
        self.others &= set(said)
        return list(said.values())

    def forget(self) -> None:
        """Nobody asks any more."""
        shutil.rmtree(self.all_runs, ignore_errors=True)

    def _answer(self, question: str, rank: int) -> int | None:
        try:
            with open(self._path(question, rank), encoding="utf-8") as file:
                return int(file.read())
        except (OSError, ValueError):
            return None

    def _path(self, question: str, rank: int) -> str:
        return os.path.join(self.root, "%s-%d" % (question, rank))
