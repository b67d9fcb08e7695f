"""The order of things around the script: prepare, run it, tell how it ended."""

from __future__ import annotations

import os
import sys

from ...wire.messages import Failed
from ...wire.stages import STARTING
from . import imports, overlay, script, tracebacks
from .control import Control
from .pipe import Pipe
from .session import Session, Stopped
from .texts import Texts
from .workers import ending


def run(path: str, injected: list[str]) -> None:
    """Run the script that the control file at ``path`` names; ends as the script ends.

    ``injected``: arguments that a launcher has put before the script's own.
    """
    control = Control(path, injected)
    pipe = Pipe(control.pipe, control.rank)
    missing = imports.torch_problem()
    if missing:
        pipe.send(Failed(missing, 2))
        sys.exit(2)
    die_with_parent()
    overlay.install(control.overlay, overlay.__file__)
    texts = Texts(control.request.include, control.overlay)
    session = Session(control, pipe, texts)
    imports.when_imported("torch", session.torch_is_here)
    os.register_at_fork(after_in_child=session.forget)
    pipe.progress(STARTING, 0, None, "starting the script")
    session.before.start()
    try:
        script.run(control)
    except Stopped:
        ending.end()
        session.ended(None)
        sys.exit(0)
    except KeyboardInterrupt as error:
        if session.stopping:  # another thread asked the main thread to stop
            ending.end()
            session.ended(None)
            sys.exit(0)
        session.ended(error)
        tracebacks.show_and_silence(error)
        raise
    except SystemExit as error:
        session.ended(error)
        raise
    except BaseException as error:
        session.ended(error)
        tracebacks.show_and_silence(error)
        raise
    else:
        session.ended(None)


def die_with_parent() -> None:
    """On Linux: should the one who started us be killed, this process goes as well."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes
    import signal

    pr_set_pdeathsig = 1
    try:
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    except (OSError, AttributeError):
        pass
