"""A notebook's code cells as a script that can be profiled like any other."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from lsprotocol import types

from warpline import runs
from warpline.lsp.methods.remedies import run_in_terminal
from warpline.lsp.methods.request import ProfileParams, Refused
from warpline.lsp.server import Server
from warpline.model.problem import Problem
from warpline.notebook.exported import export
from warpline.wire.run import Request


def written(ls: Server, path: str, folder: Path) -> str:
    """Writes the cells as they are in the editor below ``.warpline/notebooks``, at the notebook's own place
    in ``folder``: another notebook may have the same name. The script's path. Raises Refused."""
    cells, name = ls.documents.cells(path), Path(path).name
    if cells is None:
        convert_it = f"python -m jupyter nbconvert --to script {name}"
        raise Refused(
            "open the notebook in an editor that supports notebook cells (VS Code), or save it as a "
            f"script with `{convert_it}` and profile that",
            remedies=[run_in_terminal(convert_it)],
        )
    try:
        exported = export(path, [cell.text for cell in cells])
        place = runs.runs_folder(folder).parent / "notebooks" / Path(path).parent.relative_to(folder)
        place.mkdir(parents=True, exist_ok=True)
        script = runs.write(place / f"{name}.py", exported.text.encode("utf-8", "replace"))
    except (Problem, OSError) as problem:
        raise Refused(f"{name}: {problem}") from None
    if exported.left_out:
        ls.show(
            f"{name}: magics and shell commands are not run ({', '.join(exported.left_out)})",
            types.MessageType.Info,
        )
    return str(script)


def in_place(wanted: Request, notebook: str, params: ProfileParams) -> Request:
    """Run where a kernel would run: in the notebook's folder, so that it can import modules from there."""
    folder = str(Path(notebook).parent)
    known = wanted.environment.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    environment = {
        "MPLBACKEND": "agg",  # no window waits to be closed
        **wanted.environment,
        "PYTHONPATH": os.pathsep.join(filter(None, dict.fromkeys((folder, *known.split(os.pathsep))))),
    }
    return replace(wanted, cwd=params.cwd or folder, environment=environment)
