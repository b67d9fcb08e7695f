"""Ends a recording of the capture, and writes its trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..session import Session
    from .queued import Queued


def stop(session: Session, queued: Queued) -> None:
    """End the recording after the captured steps, and keep it. If the capture has paused, this adds to what
    was found before."""
    facts, recorder = session.observers.facts, session.recorder
    queued_ns, before = queued.stop(), facts.get("queued_ns") if recorder.before else 0
    facts["queued_ns"] = None if queued_ns is None or before is None else before + queued_ns
    recorder.stop()
    by, known = recorder.earlier_ns, facts["gc_ns"] if recorder.before else []
    facts["gc_ns"] = [*known, *((begin - by, end - by) for begin, end in session.observers.garbage.stop())]


def save(session: Session, queued: Queued, before: int, wanted: int) -> int | None:
    """``stop``, and write the trace; returns its size in bytes. ``before``: captured steps that were written
    when the capture paused, of ``wanted``.

    None if there is no room for it, as on a full disk, but some were written before: then the capture is only
    those. Raises OSError if there are none.
    """
    facts = session.observers.facts
    known = {name: facts.get(name) for name in ("queued_ns", "gc_ns")}
    stop(session, queued)
    try:
        return session.recorder.save()
    except OSError as error:
        if not before:
            raise
        facts.update(known)
        session.recorder.only_before()
        session.notes.append(
            "only %d of %d captured steps could be written: %s" % (before, wanted, error.strerror or error)
        )
        return None
