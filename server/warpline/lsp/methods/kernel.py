"""warpline/kernel and the command warpline.kernel: Nsight Compute looks inside the kernel of a finding."""

from __future__ import annotations

from typing import Any

import msgspec

from warpline.lsp import convert
from warpline.lsp.methods.request import Refused, parameters
from warpline.lsp.methods.under_way import entrances, turn, under_way
from warpline.lsp.server import Server


class KernelParams(msgspec.Struct, rename="camel"):
    """Fields as PROTOCOL.md has them."""

    uri: str
    line: int
    work_done_token: int | str | None = None


async def look(ls: Server, argument: Any, bar: bool) -> dict[str, Any]:
    """Run the script of the results once more, up to one launch of that kernel; what is found is kept with
    the run. Raises Refused, Failed. ``bar``: show progress also where the client named no token for it.
    """
    params = parameters(argument, KernelParams)
    path = convert.path(params.uri)
    session = ls.folders.session(path) if path else None
    anchor = session.anchor(path) if session is not None and path is not None else None
    if path is None or session is None or anchor is None:
        raise Refused("there are no results for this file: profile it first")
    await turn(ls, session.folder, "refuse", params.uri)
    title = "Warpline: looking inside the kernel"
    work = under_way(ls, session.folder, params.uri, params.work_done_token, title, bar, "Looking inside")
    async with work as (engine, at):
        answer: dict[str, Any] = await engine.ask(
            "kernel", at.report, run=str(session.results.run), file=path, line=anchor.origin(params.line) + 1
        )
    await ls.folders.look()
    return answer


on_request, command = entrances(look, "{summary}. Hover over the kernel's lines to see more.")
