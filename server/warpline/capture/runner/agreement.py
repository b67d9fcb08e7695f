"""Joint decisions of the ranks of a job, where each has recorded something else.

If one rank restarted its capture, or captured fewer steps, the others would wait for it inside their captured
steps, and its table could not be compared with theirs. All ranks ask at the same step boundary, because each
step has collectives that all take part in. So there is no deadlock.

Ranks of one machine exchange answers in files. Ranks of several machines may share no folder; they use the
store of the script's own process group.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from .control import Control

FOLDER = ".agreed"
#: Seconds to wait for another rank. A rank that does not answer is not asked again.
PATIENCE_S = 20.0


class Board(Protocol):
    """Where each rank writes its answers, and reads those of ``others``."""

    me: int
    others: set[int]
    poll_s: float

    def write(self, question: str, answer: int) -> None:
        """Raises OSError where that is not possible."""

    def read(self, question: str, ranks: set[int], late: bool) -> dict[int, int]:
        """The answers of ``ranks`` so far. ``late``: this is the last read, so it must return every answer
        that exists. Raises OSError if there will be no answers."""

    def clear(self) -> None:
        """Remove questions and answers, so that the next run does not read them."""


class Agreement:
    def __init__(self, control: Control) -> None:
        self.control = control
        self.board: Board | None = None  # from the first question on: then the script's ranks have met
        self.silent: set[int] = set()  # ranks that have not answered
        self.asked: Counter[str] = Counter()

    def of(self, about: str, mine: int, patience_s: float = PATIENCE_S) -> list[int]:
        """The answers of all ranks to the question ``about``, this rank's ``mine`` first; a rank that does
        not answer in time is left out. The n-th call with a question gets the n-th answers to it."""
        if self.control.world == 1 and self.control.local_world == 1:
            return [mine]
        if self.board is None:
            self.board = board_of(self.control)
        board, said = self.board, {self.board.me: mine}
        waiting = board.others - self.silent
        if not waiting:
            return [mine]
        self.asked[about] += 1
        question = "%s%d" % (about, self.asked[about])
        until = time.monotonic() + patience_s
        try:
            board.write(question, mine)
            late = False
            while waiting and not late:
                late = time.monotonic() >= until
                found = board.read(question, waiting, late)
                said |= found
                waiting -= set(found)
                time.sleep(board.poll_s if waiting else 0)
        except OSError:
            pass  # the other ranks go on without this one's answer after a while
        self.silent |= waiting
        return list(said.values())

    def wait_for_other_machines(self, patience_s: float) -> None:
        """Wait until ranks of other machines have written too. If one ended before, the script's store, or
        the launcher that keeps the other ranks alive, could end with it."""
        if self.control.world > self.control.local_world:
            self.of("written", 1, patience_s)

    def forget(self) -> None:
        """Remove all questions and answers; there will be no more."""
        if self.board is not None:
            self.board.clear()


def board_of(control: Control) -> Board:
    """A board for the ranks of this job: torch's store across machines, files on one machine."""
    if control.world > control.local_world:
        store = default_store()
        if store is not None:
            return StoreBoard(store, control.rank, control.world)
    return FolderBoard(control.root, control.pipe, control.local_rank, control.local_world)


def default_store() -> Any:
    """The store of the script's process group; None where it has none."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            return None
        return distributed.distributed_c10d._get_default_store()
    except (AttributeError, RuntimeError, ValueError):
        return None


class FolderBoard:
    """A file for each answer, below the folder of the run."""

    poll_s = 0.005

    def __init__(self, root: str, pipe: str, local_rank: int, local_world: int) -> None:
        # The pipe's folder has a name of its own for each run of the script: a second try reads no answer
        # of the first.
        self.all_runs = os.path.join(root, FOLDER)
        self.root = os.path.join(self.all_runs, os.path.basename(os.path.dirname(pipe)))
        self.me = local_rank
        self.others = set(range(local_world)) - {local_rank}

    def write(self, question: str, answer: int) -> None:
        os.makedirs(self.root, exist_ok=True)
        path = self._path(question, self.me)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(str(int(answer)))
        os.replace(path + ".new", path)

    def read(self, question: str, ranks: set[int], late: bool) -> dict[int, int]:
        """The answers that can be read so far, by rank."""
        found = {}
        for rank in ranks:
            try:
                with open(self._path(question, rank), encoding="utf-8") as file:
                    found[rank] = int(file.read())
            except (OSError, ValueError):
                continue
        return found

    def clear(self) -> None:
        """Remove the folder of all questions."""
        shutil.rmtree(self.all_runs, ignore_errors=True)

    def _path(self, question: str, rank: int) -> str:
        return os.path.join(self.root, "%s-%d" % (question, rank))


class StoreBoard:
    """A key for each answer, in a store of torch's (``torch.distributed.Store``).

    Nothing blocks: a call that waits for a key would keep the script's own threads off the store. And there
    is one call for all answers, since there may be a thousand ranks.
    """

    poll_s = 0.05

    def __init__(self, store: Any, rank: int, world: int) -> None:
        self.store = store
        self.me = rank
        self.others = set(range(world)) - {rank}

    def write(self, question: str, answer: int) -> None:
        """Raises OSError if the store is gone."""
        try:
            self.store.set(self._key(question, self.me), str(int(answer)))
        except RuntimeError as error:  # torch's errors of networks are of this kind
            raise OSError(str(error)) from None

    def read(self, question: str, ranks: set[int], late: bool) -> dict[int, int]:
        """Answers of ``ranks`` that are there; raises OSError if the store is gone."""
        keys = {rank: self._key(question, rank) for rank in ranks}
        try:
            if self.store.check(list(keys.values())):
                there = ranks
            else:
                there = {rank for rank, key in keys.items() if late and self.store.check([key])}
            return {rank: int(self.store.get(keys[rank])) for rank in there}
        except (RuntimeError, ValueError) as error:
            raise OSError(str(error)) from None

    def clear(self) -> None:
        """The keys stay: another rank may still be going to read them. They go with the script."""

    def _key(self, question: str, rank: int) -> str:
        return "warpline/%s-%d" % (question, rank)
