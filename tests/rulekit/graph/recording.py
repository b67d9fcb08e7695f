"""Functions recorded as the runner records a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from warpline.rulekit.graph import Graph
from warpline.rulekit.graph.known import known
from warpline.wire.dataflow import Dataflow


def recorded(act: Callable[[], Any], modules: Sequence[Any] = ()) -> Graph:
    """What ``act`` computes, by way of the run folder's JSON. Files in this one's folder are the user's.

    ``modules``: those of the script.
    """
    flow, _ = _recorded(act, modules)
    assert flow.missing == ""
    return _graph(flow)


def calls(act: Callable[[], Any]) -> list[str]:
    """The calls that would do what ``act`` does, all families."""
    return [match.call for matches in known(recorded(act)).values() for match in matches]


def two_steps(step: Callable[[int], Any]) -> Graph:
    """The first of two steps, with what the second one computes again, and what follows what."""
    from warpline.capture.runner.dataflow.again import again, followed, remade

    (flow, first), (_, second) = (_recorded(partial(step, at)) for at in range(2))
    both = first, second
    return _graph(replace(flow, again=again(*both), remade=remade(*both), followed=followed(*both)))


def _recorded(act: Callable[[], Any], modules: Sequence[Any] = ()) -> tuple[Dataflow, Any]:
    """What the runner records of ``act``, and its dispatch mode."""
    from warpline.capture.runner.dataflow.mode import Recording
    from warpline.capture.runner.lines.names import QualifiedNames
    from warpline.capture.runner.lines.userfiles import UserFiles

    files = UserFiles([str(Path(__file__).parent)], [])
    sites: Any = SimpleNamespace(user_files=files, names=QualifiedNames())
    recording = Recording(sites, modules=lambda: list(modules))
    recording.start()
    try:
        act()
    finally:
        flow = recording.stop()
    return flow, recording.mode


def _graph(flow: Dataflow) -> Graph:
    from warpline.capture.runner.folder import finite

    return Graph(msgspec.json.decode(msgspec.json.encode(finite(flow)), type=Dataflow))
