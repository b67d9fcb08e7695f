"""Rule pages as files beside the runs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from warpline.lsp.methods import pages


def test_a_link_in_the_place_of_a_page_is_replaced(tmp_path: Path) -> None:
    """A repository may carry one; pages are written without being asked for, when findings are shown."""
    outside, project = tmp_path / "outside.md", tmp_path / "project"
    outside.write_text("keep")
    page = project / ".warpline" / "rules" / "sync-in-step.md"
    page.parent.mkdir(parents=True)
    page.symlink_to(outside)

    async def ask(*_: object, **__: object) -> dict[str, str]:
        return {"markdown": "# sync-in-step"}

    server: Any = SimpleNamespace(
        desk=SimpleNamespace(ask=ask), folders=SimpleNamespace(home=lambda _: project)
    )
    assert asyncio.run(pages.written(server, "sync-in-step", str(project / "a.py"))) == page
    assert page.read_text() == "# sync-in-step"
    assert not page.is_symlink()
    assert outside.read_text() == "keep"
