"""Prepares the script, runs it, and reports how it ended."""

from __future__ import annotations

import os
import signal
import sys

from ...wire.messages import Failed, Replaced
from ...wire.stages import STARTING
from . import endings, imports, overlay, reexec, script, tracebacks
from .control import Control, read
from .endings import Stopped
from .pipe import Pipe
from .session import Session
from .texts import Texts
from .workers import ending


def run(path: str, injected: list[str]) -> None:
    """Run the script that the control file at ``path`` names; exits with the script's own exit status.

    ``injected``: arguments that a launcher has put before the script's own.
    """
    control = Control(read(path), injected)
    pipe = Pipe(control.pipe, control.rank)
    missing = imports.torch_problem()
    if missing:
        pipe.send(Failed(missing, 2))
        sys.exit(2)
    die_with_parent()
    overlay.install(control.overlay, overlay.__file__)
    texts = Texts(control.request.include, control.overlay)
    session = Session(control, pipe, texts)
    session.prepare_loops()
    imports.when_imported("torch", session.torch_is_here)
    os.register_at_fork(after_in_child=session.forget)
    reexec.watch(path, lambda program: pipe.send(Replaced(program)))
    endings.watch_exits(session.exits)
    pipe.progress(STARTING, 0, None, "starting the script")
    session.before.start()
    _hear_of_silence(session)
    try:
        script.run(control, session.first_line_is_here)
        left = endings.wait(session.progressed, lambda: session.stopping)
    except BaseException as error:
        _end_with(session, error)
    else:
        _end_well(session, left)


def _hear_of_silence(session: Session) -> None:
    """The server sends ``SIGURG``, which does nothing by itself, where steps are awaited for too long."""
    if signal.getsignal(signal.SIGURG) is signal.SIG_DFL:
        signal.signal(signal.SIGURG, lambda number, frame: session.silent(frame))
        signal.siginterrupt(signal.SIGURG, False)


def _end_well(session: Session, left: list[str]) -> None:
    """The script has ended or was stopped; ``left``: names of its threads that still run."""
    session.left(left)
    session.ended(None)
    ending.end()  # after ``ended``: a whole script's time must not include it
    if left:
        endings.leave(0)
    if session.stopping:
        sys.exit(0)


def _end_with(session: Session, error: BaseException) -> None:
    """``error`` has ended the script. It may only mean that another thread asked this one to stop."""
    if _asked(session, error) or session.forgives(error):
        ending.end()
        _end_well(session, endings.wait(session.progressed, lambda: True))
        return
    if not isinstance(error, SystemExit):
        tracebacks.show_and_silence(error)
    try:
        left = endings.wait(session.progressed, lambda: session.stopping)
    except BaseException:  # stopped, or interrupted, while it waited
        left = endings.wait(session.progressed, lambda: True)
    session.left(left)
    session.ended(error)
    ending.end()
    if left:
        endings.leave(0 if isinstance(error, SystemExit) and error.code in (None, 0) else 1)
    raise error


def _asked(session: Session, error: BaseException | None) -> bool:
    """Whether the script ended because we asked it to; Lightning exits with a status of its own then."""
    while isinstance(error, SystemExit):
        error = error.__context__
    return isinstance(error, Stopped) or (session.stopping and isinstance(error, KeyboardInterrupt))


def die_with_parent() -> None:
    """Linux: have this process killed when its parent dies."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    pr_set_pdeathsig = 1
    try:
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    except (OSError, AttributeError):
        pass
